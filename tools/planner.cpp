#include "planner.hpp"

#include <algorithm>
#include <random>

#include <fmt/core.h>

#include "core/units.hpp"
#include "pattern/scale.hpp"

namespace tools {

using namespace tapioca;

namespace {

std::vector<std::string> split(std::string const& text, char separator)
{
    std::vector<std::string> parts(1);
    for (char const c : text)
        if (c == separator)
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

core::Result<Workload> hacc_of(std::vector<std::string> const& words, int ranks)
{
    auto const particles = core::parse_bytes(words[0]);
    auto const layout = words.size() > 1 ? words[1] : "aos";
    if (!particles || *particles == 0 || *particles > 1'000'000'000 || words.size() > 2 ||
        (layout != "aos" && layout != "soa"))
        return core::fail(Errc::invalid_argument, "expected hacc:PARTICLES,aos or hacc:PARTICLES,soa");
    auto const mine = static_cast<std::int64_t>(*particles);
    auto const kind = layout == "aos" ? hacc::Layout::aos : hacc::Layout::soa;
    return Workload{fmt::format("HACC-IO {}, {} particles a rank", layout, mine),
                    [=](int rank) { return hacc::pattern(kind, mine, rank * mine, ranks * mine); }};
}

core::Result<Workload> interleaved_of(std::vector<std::string> const& words, int ranks)
{
    auto const block = core::parse_bytes(words[0]);
    auto const bytes = words.size() == 2 ? core::parse_bytes(words[1]) : std::optional<std::uint64_t>(core::MiB);
    if (!block || *block == 0 || !bytes || *bytes < *block || words.size() > 2 || *bytes > (core::GiB << 10))
        return core::fail(Errc::invalid_argument, "expected interleaved:BLOCK,BYTES such as interleaved:4K,1M");
    auto const length = static_cast<std::int64_t>(*block);
    auto const count = static_cast<std::int64_t>(*bytes / *block);
    return Workload{fmt::format("blocks of {} in turn, {} a rank", core::format_bytes(*block),
                                core::format_bytes(*block * static_cast<std::uint64_t>(count))),
                    [=](int rank) {
                        Pattern pattern;
                        pattern.add(Subarray{{count, ranks * length}, {0, rank * length}, {count, length}, {}, 1, 0});
                        return pattern;
                    }};
}

core::Result<Workload> sizes_of(std::vector<std::string> const& words, int ranks)
{
    std::vector<std::int64_t> start{0};
    for (auto const& word : words) {
        auto const bytes = core::parse_bytes(word);
        if (!bytes || *bytes > (core::GiB << 10) || static_cast<int>(words.size()) != ranks)
            return core::fail(Errc::invalid_argument,
                              fmt::format("expected sizes:BYTES,BYTES,... for each of the {} ranks", ranks));
        start.push_back(start.back() + static_cast<std::int64_t>(*bytes));
    }
    return Workload{"an array in parts of given sizes", [start = std::move(start)](int rank) {
                        auto const r = static_cast<std::size_t>(rank);
                        Pattern pattern;
                        pattern.add({{start[r], start[r + 1] - start[r]}});
                        return pattern;
                    }};
}

core::Result<Workload> array_of(std::vector<std::string> const& words, int ranks)
{
    auto const most = core::parse_bytes(words[0]);
    auto const kind = words.size() > 1 ? words[1] : "uniform";
    if (!most || *most == 0 || *most > (core::GiB << 10) || words.size() > 2 ||
        (kind != "uniform" && kind != "random" && kind != "normal"))
        return core::fail(Errc::invalid_argument,
                          "expected array1d:BYTES,uniform, array1d:BYTES,random or "
                          "array1d:BYTES,normal");
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> any(0, 1);
    std::normal_distribution<double> normal(0.5, 0.125);
    std::vector<std::int64_t> start{0};
    for (int rank = 0; rank < ranks; ++rank) {
        auto const share = kind == "uniform"  ? 1.0
                           : kind == "random" ? any(random)
                                              : std::clamp(normal(random), 0.0, 1.0);
        start.push_back(start.back() + static_cast<std::int64_t>(share * static_cast<double>(*most)));
    }
    return Workload{fmt::format("array, {} sizes up to {} a rank", kind, core::format_bytes(*most)),
                    [start = std::move(start)](int rank) {
                        auto const r = static_cast<std::size_t>(rank);
                        Pattern pattern;
                        pattern.add({{start[r], start[r + 1] - start[r]}});
                        return pattern;
                    }};
}

}  // namespace

core::Result<Workload> workload(std::string const& text, int ranks)
{
    auto const colon = text.find(':');
    auto const name = text.substr(0, colon);
    auto const words = split(colon == std::string::npos ? "" : text.substr(colon + 1), ',');
    auto const refuse = [&](core::Result<Workload> result) {
        if (!result) result.error().text = fmt::format("--workload {}: {}", text, result.error().text);
        return result;
    };
    if (name == "hacc") return refuse(hacc_of(words, ranks));
    if (name == "interleaved") return refuse(interleaved_of(words, ranks));
    if (name == "array1d") return refuse(array_of(words, ranks));
    if (name == "sizes") return refuse(sizes_of(words, ranks));
    return core::fail(
        Errc::invalid_argument,
        fmt::format("--workload {}: did you mean {}?", text,
                    core::nearest(name, std::vector<std::string_view>{"hacc", "interleaved", "array1d", "sizes"})));
}

Planner::Planner(std::shared_ptr<machine::Machine const> machine, int nodes, int ranks_per_node,
                 machine::Storage storage, Workload workload)
    : workload_(std::move(workload))
{
    job_.storage = std::move(storage);
    job_.ranks = nodes * ranks_per_node;
    job_.cores = machine->cores > 0 ? machine->cores : ranks_per_node;
    job_.nodes = nodes;
    std::vector<std::uint64_t> free;
    for (auto const& tier : machine->tiers)
        free.push_back(tier.capacity_bytes.value > 0 ? static_cast<std::uint64_t>(tier.capacity_bytes.value)
                                                     : std::uint64_t{1} << 60);  // unknown: as much as one likes
    job_.free_bytes = {free};
    job_.machine = std::move(machine);
    for (int rank = 0; rank < job_.ranks; ++rank) {
        if (rank % ranks_per_node == 0) nodes_.emplace_back();
        nodes_.back().push_back(rank);
        job_.pattern.add(pattern::summarise(workload_.pattern(rank).all()));
    }
}

std::vector<plan::Weight> Planner::weigh(std::vector<std::int64_t> const& cuts, std::int64_t unit) const
{
    std::vector<plan::Weight> weights;
    pattern::Scale scale(cuts, unit);
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        scale.clear();
        for (int const rank : nodes_[node]) scale.add(workload_.pattern(rank).all());
        auto const here = plan::weights_of(static_cast<int>(node), scale.weights(), nodes_.size());
        weights.insert(weights.end(), here.begin(), here.end());
    }
    return weights;
}

core::Result<plan::Plan> Planner::plan(Options const& options) const
{
    auto job = job_;
    job.options = options;
    std::vector<std::uint64_t> histogram;
    if (plan::wants_histogram(job)) {
        histogram.resize(plan::histogram_bins, 0);
        for (int rank = 0; rank < job.ranks; ++rank) {
            auto const one = pattern::histogram(workload_.pattern(rank).all(), job.pattern.begin, job.pattern.end,
                                                plan::histogram_bins);
            std::transform(one.begin(), one.end(), histogram.begin(), histogram.begin(), std::plus<>());
        }
    }
    auto plan = plan::make(job, histogram);
    if (!plan) return plan;
    auto const unit = plan->write.unit;
    plan::connect(*plan, nodes_, {[&](auto const& cuts) { return weigh(cuts, unit); }, plan::all_bids});
    for (auto const* const route : {&plan->write, &plan->read})
        if (!route->feasible) return tl::unexpected(route->feasible.error());
    return plan;
}

}  // namespace tools
