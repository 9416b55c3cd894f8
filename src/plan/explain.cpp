// A plan in words.
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/units.hpp"
#include "plan/plan.hpp"

namespace tapioca::plan {

namespace {

/// "0, 4, 8" or, where there are many, "0, 1, 2, ... 15".
std::string short_list(std::vector<int> const& values)
{
    if (values.size() <= 16) return fmt::format("{}", fmt::join(values, ", "));
    std::vector<int> const head(values.begin(), values.begin() + 12);
    return fmt::format("{}, ... {}", fmt::join(head, ", "), values.back());
}

std::string describe(Network const& network)
{
    return fmt::format("        {} of the data cross nodes by {}, at most {} into one and {} out of one\n",
                       core::format_bytes(network.crossing_bytes),
                       network.transport == Transport::rma ? "put and get" : "messages",
                       core::format_bytes(network.most_in_bytes), core::format_bytes(network.most_out_bytes));
}

std::string describe(char const* verb, Route const& route, std::int64_t block_bytes)
{
    std::string text;
    if (route.way == Way::direct) {
        text += fmt::format("  {:<6}direct: every rank {}s its own pieces\n", verb, verb);
    } else {
        auto const plural = route.aggregators == 1 ? "" : "s";
        text += fmt::format("  {:<6}{} aggregator{} on rank{} {}, {} buffer{} of {} each in shared memory\n", verb,
                            route.aggregators, plural, plural, short_list(route.ranks), route.buffers,
                            route.buffers == 1 ? "" : "s", core::format_bytes(route.round_bytes));
        auto const rounds = schedule(route, block_bytes, 0);
        for (std::size_t i = 0; i < rounds.partitions.size() && i < 16; ++i) {
            auto const& p = rounds.partitions[i];
            text += fmt::format("        partition {}: bytes {} to {}, {} round{}\n", i, p.begin, p.end, p.rounds,
                                p.rounds == 1 ? "" : "s");
        }
        if (rounds.partitions.size() > 16) text += fmt::format("        and {} more\n", rounds.partitions.size() - 16);
        if (route.networked()) text += describe(route.network);
        if (!route.dense)
            text += fmt::format("        the pattern may have holes: a map of 1 bit per {} keeps them untouched\n",
                                core::format_bytes(route.granule));
    }
    text += fmt::format("        {}:", route.why());
    for (auto const& candidate : route.candidates())
        text += fmt::format(" {} {:.3f} ms;", candidate.name, candidate.seconds * 1e3);
    text.back() = '\n';
    for (auto const& note : route.notes) text += fmt::format("        note: {}\n", note);
    return text;
}

}  // namespace

std::vector<Candidate> Route::candidates() const
{
    std::vector<Candidate> list = {
        {fmt::format("{} aggregator{}", considered, considered == 1 ? "" : "s"), aggregated_s}, {"direct", direct_s}};
    if (way == Way::direct) std::swap(list[0], list[1]);
    return list;
}

std::string Route::why() const
{
    switch (reason) {
    case Reason::asked: return fmt::format("direct={} asked for", way == Way::direct ? "always" : "never");
    case Reason::large_pieces: return "pieces are large: crossing nodes would only add to their way";
    case Reason::small_pieces: return "pieces are smaller than the file system's block";
    case Reason::fastest: break;
    }
    return "predicted to be the fastest";
}

std::string explain(Plan const& plan, std::vector<std::string> const& settings)
{
    auto const& job = plan.job;
    auto const& pattern = job.pattern;
    auto const where = job.nodes == 1 ? std::string("of one node") : fmt::format("of each of {} nodes", job.nodes);
    auto text = fmt::format("plan for {} rank{} on {} core{} {}, file system {} with {}-byte blocks\n", job.ranks,
                            job.ranks == 1 ? "" : "s", job.cores, job.cores == 1 ? "" : "s", where, job.storage.name,
                            job.storage.block_bytes);
    text += fmt::format("  data  {} in {} piece{} on {} of the ranks, bytes {} to {}{}\n",
                        core::format_bytes(pattern.bytes), pattern.pieces, pattern.pieces == 1 ? "" : "s",
                        pattern.ranks_with_data, pattern.bytes == 0 ? 0 : pattern.begin, pattern.end,
                        pattern.dense() ? ", without holes or overlap" : "");
    text += describe("write", plan.write, job.storage.block_bytes);
    text += describe("read", plan.read, job.storage.block_bytes);
    text += fmt::format("  set   {}\n",
                        settings.empty() ? "nothing: all defaults" : fmt::format("{}", fmt::join(settings, ", ")));
    return text;
}

}  // namespace tapioca::plan
