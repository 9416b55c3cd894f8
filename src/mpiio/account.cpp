#include "mpiio/account.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "report/report.hpp"

namespace tapioca::mpiio {

namespace {

/// `counts` as returned by Calls::counts(), for one rank or summed over several.
nlohmann::ordered_json describe(Calls const& made, std::vector<std::uint64_t> const& counts)
{
    auto result = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < calls; ++i) {
        if (counts[i] + counts[calls + i] == 0) continue;
        auto const call = static_cast<Call>(i);
        auto reasons = nlohmann::ordered_json::array();
        for (auto const& [why, count] : made.reasons(call)) reasons.push_back(why);
        result.push_back({{"call", fmt::format("MPI_File_{}", name(call))},
                          {"served", counts[i]},
                          {"passed_on", counts[calls + i]},
                          {"why", reasons}});
    }
    return result;
}

}  // namespace

void add_calls(declared::FileState& file, Calls& made)
{
    if (!file.settings.options.report) return;
    file.account.more.emplace_back("calls", describe(made, file.session->team().sum(made.counts())).dump());
    made.clear();
}

void report_calls(std::string const& report, std::string const& path, std::string const& off, Calls const& made)
{
    nlohmann::ordered_json account;
    account["path"] = path;
    if (!off.empty()) account["passed_on"] = off;
    account["calls_of"] = "rank 0";
    account["calls"] = describe(made, made.counts());
    report::add(report, account.dump());
}

}  // namespace tapioca::mpiio
