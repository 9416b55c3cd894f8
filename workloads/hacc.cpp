// hacc: the nine variables of HACC-IO, as an array of structures or a structure of arrays.
#include "workloads/hacc.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "core/units.hpp"
#include "workloads/deal.hpp"

namespace workloads {

namespace core = tapioca::core;

namespace {

/// Bytes of a particle in XX, YY, ZZ, VX, VY, VZ, phi, pid and mask.
constexpr std::int64_t variable_bytes[] = {4, 4, 4, 4, 4, 4, 4, 8, 2};
constexpr auto particle_bytes = std::accumulate(std::begin(variable_bytes), std::end(variable_bytes), std::int64_t{0});

/// Particles of each of `ranks` ranks, `mean` on average (approximately, with normal).
Deal deal(Sizes const& sizes, int ranks, std::int64_t mean)
{
    if (sizes.distribution == "uniform" && (sizes.heavy == "none" || ranks == 1)) return {ranks, mean};
    std::mt19937_64 random(sizes.seed);
    std::normal_distribution<double> normal(1, 0.25);
    std::vector<double> shares(static_cast<std::size_t>(ranks), 1);
    if (sizes.distribution == "normal")
        for (auto& part : shares) part = std::clamp(normal(random), 0.0, 2.0);
    bool const first = sizes.heavy == "first";
    if (sizes.heavy != "none" && ranks > 1) {
        auto const middle = shares.begin() + (ranks + (first ? 1 : 0)) / 2;
        auto const scale = [&](auto begin, auto end, double to) {
            auto const sum = std::accumulate(begin, end, 0.0);
            for (auto at = begin; at != end; ++at) *at *= to * ranks / sum;
        };
        scale(shares.begin(), middle, first ? sizes.share : 1 - sizes.share);
        scale(middle, shares.end(), first ? 1 - sizes.share : sizes.share);
    }
    std::vector<std::int64_t> particles;
    for (auto const part : shares) particles.push_back(std::llround(part * static_cast<double>(mean)));
    return Deal(particles);
}

/// A text such as ", normal sizes, 0.75 of them on the first half of the ranks"; empty if all are equal.
std::string label(Sizes const& sizes)
{
    auto text =
        sizes.distribution == "uniform" ? "" : fmt::format(", {} sizes (seed {})", sizes.distribution, sizes.seed);
    if (sizes.heavy != "none")
        text += fmt::format(", {} of the data on the {} half of the ranks", sizes.share, sizes.heavy);
    return text;
}

struct HaccArguments {
    std::vector<std::int64_t> particles{25000};
    std::vector<std::string> layouts{"aos", "soa"};
    Sizes sizes;
};

Chosen hacc_options(CLI::App& verb)
{
    auto const a = std::make_shared<HaccArguments>();
    verb.add_option("--particles", a->particles, "particles per rank")
        ->delimiter(',')
        ->check(CLI::Range(1, 50'000'000))
        ->option_text("N,... [25000]");
    verb.add_option("--layout", a->layouts, "aos, soa or both")
        ->delimiter(',')
        ->check(CLI::IsMember({"aos", "soa"}))
        ->option_text("LIST [aos,soa]");
    verb.add_option("--sizes", a->sizes.distribution, "distribution of particles over ranks: uniform or normal")
        ->check(CLI::IsMember({"uniform", "normal"}))
        ->option_text("KIND [uniform]");
    verb.add_option("--seed", a->sizes.seed, "seed of normal sizes")->option_text("N [1]");
    verb.add_option("--heavy", a->sizes.heavy, "the half of the ranks with the larger share: first, last or none")
        ->check(CLI::IsMember({"first", "last", "none"}))
        ->option_text("HALF [none]");
    verb.add_option("--share", a->sizes.share, "share of the data that this half has")
        ->check(CLI::Range(0.0, 1.0))
        ->option_text("F [0.75]");
    return [a] {
        std::vector<Maker> list;
        for (auto const particles : a->particles)
            for (auto const& layout : a->layouts)
                list.emplace_back([=](int ranks) { return make_hacc(ranks, particles, layout, a->sizes); });
        return list;
    };
}

core::Result<Workload> hacc_of(std::vector<std::string> const& words, int ranks)
{
    auto const particles = core::parse_bytes(words[0]);
    auto const layout = words.size() > 1 ? words[1] : "aos";
    if (!particles || *particles == 0 || *particles > 1'000'000'000 || words.size() > 2 ||
        (layout != "aos" && layout != "soa"))
        return core::fail(tapioca::Errc::invalid_argument, "expected hacc:PARTICLES,aos or hacc:PARTICLES,soa");
    return make_hacc(ranks, static_cast<std::int64_t>(*particles), layout);
}

}  // namespace

RankPart hacc_part(std::string_view layout, std::int64_t mine, std::int64_t before, std::int64_t total)
{
    RankPart part;
    std::int64_t sizes_before = 0;  // of the variables before this one, for a particle
    for (auto const size : variable_bytes) {
        auto const offset =
            layout == "aos" ? before * particle_bytes + mine * sizes_before : total * sizes_before + before * size;
        part.variables.push_back({offset, mine * size, 0, 1});
        sizes_before += size;
    }
    return part;
}

Workload make_hacc(int ranks, std::int64_t particles, std::string const& layout, Sizes const& sizes)
{
    Workload workload;
    workload.name = "hacc";
    workload.layout = layout;
    auto const what = fmt::format(" {}, {} particles a rank{}", layout, particles, label(sizes));
    workload.label = "hacc" + what;
    workload.title = "HACC-IO" + what;
    workload.block_bytes = particles * 2;
    workload.part = [dealt = deal(sizes, ranks, particles), layout](int rank) {
        return hacc_part(layout, dealt.of(rank), dealt.before(rank), dealt.total());
    };
    return workload;
}

extern constexpr WorkloadKind hacc = {.name = "hacc",
                                      .about = "HACC-IO: nine variables, 38 bytes per particle",
                                      .options = hacc_options,
                                      .text = "hacc:PARTICLES,aos|soa",
                                      .from_words = hacc_of};

}  // namespace workloads
