// backwards: a workload that the command does not have. The last rank's bytes come first in the file.
#include <memory>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "core/units.hpp"
#include "workloads/deal.hpp"

namespace workloads {

namespace core = tapioca::core;

namespace {

Workload make_backwards(int ranks, std::int64_t bytes)
{
    Workload workload;
    workload.name = "backwards";
    workload.layout = "reversed";
    workload.label = workload.title = fmt::format("backwards, {} bytes a rank", bytes);
    workload.block_bytes = bytes;
    workload.part = [=](int rank) { return RankPart{{{(ranks - 1 - rank) * bytes, bytes, 0, 1}}, {}}; };
    return workload;
}

Chosen backwards_options(CLI::App& verb)
{
    auto const bytes = std::make_shared<std::int64_t>(4096);
    take_bytes(verb.add_option("--bytes", *bytes, "bytes per rank"), most_bytes, "BYTES [4K]");
    return [bytes] { return std::vector<Maker>{[bytes](int ranks) { return make_backwards(ranks, *bytes); }}; };
}

core::Result<Workload> backwards_of(std::vector<std::string> const& words, int ranks)
{
    auto const bytes = core::parse_bytes(words[0]);
    if (!bytes || *bytes == 0) return core::fail(tapioca::Errc::invalid_argument, "expected backwards:BYTES");
    return make_backwards(ranks, static_cast<std::int64_t>(*bytes));
}

}  // namespace

extern constexpr WorkloadKind backwards = {.name = "backwards",
                                           .about = "the last rank comes first",
                                           .options = backwards_options,
                                           .text = "backwards:BYTES",
                                           .from_words = backwards_of};

}  // namespace workloads
