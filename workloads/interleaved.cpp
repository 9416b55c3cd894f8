// interleaved: blocks of one size, dealt to the ranks in turn.
#include <algorithm>
#include <memory>
#include <random>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "core/units.hpp"
#include "workloads/deal.hpp"

namespace workloads {

namespace core = tapioca::core;

namespace {

/// With `as_list`, the order differs in each round of the deal, and the blocks are declared as extents.
Workload make_interleaved(int ranks, std::int64_t bytes, std::int64_t block, bool as_list)
{
    Workload workload;
    auto const count = std::max<std::int64_t>(1, bytes / block);
    workload.name = "interleaved";
    workload.layout = as_list ? "list" : "strided";
    workload.label = fmt::format("interleaved {}, blocks of {} bytes", workload.layout, block);
    workload.title =
        fmt::format("blocks of {} in turn, {} a rank", core::format_bytes(static_cast<std::uint64_t>(block)),
                    core::format_bytes(static_cast<std::uint64_t>(block * count)));
    workload.block_bytes = block;
    workload.part = [=](int rank) {
        RankPart part;
        part.variables.push_back({rank * block, block, ranks * block, count});
        if (!as_list) return part;
        std::mt19937_64 random(1);  // the same on all ranks; deals in another order each time
        for (std::int64_t i = 0; i < count; ++i) {
            auto const shift = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(ranks));
            part.extents.push_back({(i * ranks + (rank + shift) % ranks) * block, block});
        }
        return part;
    };
    return workload;
}

struct InterleavedArguments {
    std::vector<std::int64_t> blocks{64, 1024, 16384};
    std::int64_t bytes = 8 << 20;
    std::string declare = "subarray";
};

Chosen interleaved_options(CLI::App& verb)
{
    auto const a = std::make_shared<InterleavedArguments>();
    take_bytes(verb.add_option("--block", a->blocks, "bytes per block")->delimiter(','), std::int64_t{1} << 30,
               "BYTES,... [64,1K,16K]");
    take_bytes(verb.add_option("--bytes", a->bytes, "bytes per rank"), most_bytes, "BYTES [8M]");
    verb.add_option("--declare", a->declare, "subarray, or list: irregular blocks as a list of extents")
        ->check(CLI::IsMember({"subarray", "list"}))
        ->option_text("KIND [subarray]");
    return [a] {
        std::vector<Maker> list;
        for (auto const block : a->blocks)
            list.emplace_back(
                [=](int ranks) { return make_interleaved(ranks, a->bytes, block, a->declare == "list"); });
        return list;
    };
}

core::Result<Workload> interleaved_of(std::vector<std::string> const& words, int ranks)
{
    auto const block = core::parse_bytes(words[0]);
    auto const bytes = words.size() == 2 ? core::parse_bytes(words[1]) : std::optional<std::uint64_t>(core::MiB);
    if (!block || *block == 0 || !bytes || *bytes < *block || words.size() > 2 || *bytes > most_bytes)
        return core::fail(tapioca::Errc::invalid_argument,
                          "expected interleaved:BLOCK,BYTES such as interleaved:4K,1M");
    return make_interleaved(ranks, static_cast<std::int64_t>(*bytes), static_cast<std::int64_t>(*block), false);
}

}  // namespace

extern constexpr WorkloadKind interleaved = {.name = "interleaved",
                                             .about = "blocks of a few bytes dealt rank by rank",
                                             .options = interleaved_options,
                                             .text = "interleaved:BLOCK,BYTES",
                                             .from_words = interleaved_of};

}  // namespace workloads
