// sizes: an array in parts of given sizes; only for plans.
#include <fmt/core.h>

#include "core/units.hpp"
#include "workloads/deal.hpp"

namespace workloads {

namespace core = tapioca::core;

namespace {

core::Result<Workload> sizes_of(std::vector<std::string> const& words, int ranks)
{
    std::vector<std::int64_t> each;
    for (auto const& word : words) {
        auto const bytes = core::parse_bytes(word);
        if (!bytes || *bytes > most_bytes || static_cast<int>(words.size()) != ranks)
            return core::fail(tapioca::Errc::invalid_argument,
                              fmt::format("expected sizes:BYTES,BYTES,... for each of the {} ranks", ranks));
        each.push_back(static_cast<std::int64_t>(*bytes));
    }
    Workload workload;
    workload.name = "sizes";
    workload.title = "an array in parts of given sizes";
    workload.part = [dealt = Deal(each)](int rank) { return dealt.piece(rank); };
    return workload;
}

}  // namespace

extern constexpr WorkloadKind sizes = {.name = "sizes",
                                       .about = "an array in parts of given sizes",
                                       .text = "sizes:BYTES,BYTES,... for each rank",
                                       .from_words = sizes_of};

}  // namespace workloads
