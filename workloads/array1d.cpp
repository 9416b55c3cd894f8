// array1d: a one-dimensional array, divided into uniform, random or normally distributed parts.
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

std::vector<std::string> const distributions{"uniform", "random", "normal"};

/// Sizes per rank: uniform, random (0-100 % of `bytes`) or normal.
Deal deal(std::string const& distribution, int ranks, std::int64_t bytes)
{
    if (distribution == "uniform") return {ranks, bytes};
    std::mt19937_64 random(7);  // the same on all ranks
    std::uniform_real_distribution<double> any(0, 1);
    std::normal_distribution<double> normal(0.5, 0.125);
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < ranks; ++i) {
        double const share = distribution == "random" ? any(random) : std::clamp(normal(random), 0.0, 1.0);
        sizes.push_back(static_cast<std::int64_t>(share * static_cast<double>(bytes)));
    }
    return Deal(sizes);
}

Workload make_array1d(int ranks, std::int64_t bytes, std::string const& distribution)
{
    Workload workload;
    workload.name = "array1d";
    workload.layout = distribution;
    workload.label = fmt::format("array1d {}, up to {} bytes a rank", distribution, bytes);
    workload.title = fmt::format("array, {} sizes up to {} a rank", distribution,
                                 core::format_bytes(static_cast<std::uint64_t>(bytes)));
    workload.block_bytes = bytes;
    workload.part = [dealt = deal(distribution, ranks, bytes)](int rank) { return dealt.piece(rank); };
    return workload;
}

struct Array1dArguments {
    std::int64_t bytes = 100000;
    std::vector<std::string> distributions = workloads::distributions;
};

Chosen array1d_options(CLI::App& verb)
{
    auto const a = std::make_shared<Array1dArguments>();
    take_bytes(verb.add_option("--bytes", a->bytes, "bytes of the largest piece"), most_bytes, "BYTES [100000]");
    verb.add_option("--distribution", a->distributions, "distribution of sizes over ranks: uniform, random, normal")
        ->delimiter(',')
        ->check(CLI::IsMember(distributions))
        ->option_text("LIST [all]");
    return [a] {
        std::vector<Maker> list;
        for (auto const& distribution : a->distributions)
            list.emplace_back([=](int ranks) { return make_array1d(ranks, a->bytes, distribution); });
        return list;
    };
}

core::Result<Workload> array1d_of(std::vector<std::string> const& words, int ranks)
{
    auto const most = core::parse_bytes(words[0]);
    auto const kind = words.size() > 1 ? words[1] : "uniform";
    if (!most || *most == 0 || *most > most_bytes || words.size() > 2 ||
        std::find(distributions.begin(), distributions.end(), kind) == distributions.end())
        return core::fail(tapioca::Errc::invalid_argument,
                          "expected array1d:BYTES,uniform, array1d:BYTES,random or array1d:BYTES,normal");
    return make_array1d(ranks, static_cast<std::int64_t>(*most), kind);
}

}  // namespace

extern constexpr WorkloadKind array1d = {.name = "array1d",
                                         .about = "one contiguous piece per rank",
                                         .options = array1d_options,
                                         .text = "array1d:BYTES,uniform|random|normal",
                                         .from_words = array1d_of};

}  // namespace workloads
