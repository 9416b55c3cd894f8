#include "workloads/deal.hpp"

#include <CLI/CLI.hpp>

namespace workloads {

Deal::Deal(std::vector<std::int64_t> const& shares) : ranks_(static_cast<int>(shares.size())), starts_{0}
{
    starts_.reserve(shares.size() + 1);
    for (auto const share : shares) starts_.push_back(starts_.back() + share);
}

void take_bytes(CLI::Option* option, std::int64_t most, char const* text)
{
    option->transform(CLI::AsSizeValue(false))->check(CLI::Range(std::int64_t{1}, most))->option_text(text);
}

}  // namespace workloads
