#include "workloads/calls.hpp"

#include <algorithm>
#include <memory>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "workloads/deal.hpp"

namespace workloads {

namespace core = tapioca::core;

namespace {

struct CallsArguments {
    std::vector<std::int64_t> blocks{4096};
    std::int64_t bytes = 16 << 20;
};

Workload make_calls(std::string const& name, std::int64_t bytes, std::int64_t block, bool spread)
{
    Workload workload;
    workload.name = name;
    workload.layout = name;
    workload.block_bytes = block;
    workload.steps = static_cast<int>(std::max<std::int64_t>(1, bytes / block));
    workload.label = fmt::format("{}, {} calls of {} bytes a rank", name, workload.steps, block);
    workload.title = workload.label;
    workload.interleaved_by = spread ? block : 0;
    workload.part = [block, apart = spread ? workload.steps * block : block](int rank) {
        return RankPart{{{rank * apart, block, 0, 1}}, {}};
    };
    return workload;
}

}  // namespace

Chosen options_of_calls(CLI::App& verb, std::string const& name, bool spread)
{
    auto const a = std::make_shared<CallsArguments>();
    take_bytes(verb.add_option("--block", a->blocks, "bytes per rank and call")->delimiter(','), std::int64_t{1} << 30,
               "BYTES,... [4K]");
    take_bytes(verb.add_option("--bytes", a->bytes, "bytes per rank"), most_bytes, "BYTES [16M]");
    return [=]() -> core::Result<std::vector<Maker>> {
        std::vector<Maker> list;
        for (auto const block : a->blocks) {
            if (a->bytes / block > 1'000'000)
                return core::fail(
                    tapioca::Errc::invalid_argument,
                    fmt::format("--bytes {} in blocks of {} are more than a million calls", a->bytes, block));
            list.emplace_back([=](int) { return make_calls(name, a->bytes, block, spread); });
        }
        return list;
    };
}

}  // namespace workloads
