#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "table.hpp"
#include "workflow.hpp"

namespace bench {

namespace {

struct FigureRow {
    char const* op;
    WorkflowFigure WorkflowCost::*figure;
};
constexpr std::array<FigureRow, 3> figures = {
    {{"write", &WorkflowCost::write}, {"read", &WorkflowCost::read}, {"solution", &WorkflowCost::solution}}};

/// How many times as fast as MPI-IO.
std::string ratio(WorkflowOutcome const& outcome, WorkflowCost const& cost, FigureRow const& row)
{
    auto const mpi = std::find_if(outcome.costs.begin(), outcome.costs.end(),
                                  [](WorkflowCost const& one) { return one.method == "mpi-io"; });
    if (mpi == outcome.costs.end() || &*mpi == &cost) return "-";
    return fmt::format("{:.2f}x", ((*mpi).*row.figure).seconds.median() / (cost.*row.figure).seconds.median());
}

constexpr auto line = "  {:<12}  {:<27}  {:>10}  {:>10}  {:>10}  {:>5}  {:>9}{}\n";

std::string lines_of(WorkflowOutcome const& outcome, FigureRow const& row)
{
    bool const as_time = row.op == std::string("solution");
    std::string text;
    for (auto const& cost : outcome.costs) {
        auto const& figure = cost.*row.figure;
        auto const& shown = as_time ? figure.seconds : figure.mb_per_s;
        auto const number = [&](double value) {
            return as_time ? fmt::format("{:.3f}", value * 1e3) : thousands(value);
        };
        auto const group = as_time ? "solution, ms" : fmt::format("{}, MB/s", row.op);
        text += fmt::format(line, text.empty() ? group : "", cost.label, number(shown.median()), number(shown.min()),
                            number(shown.max()), fmt::format("{:.0f}%", shown.cv() * 100), ratio(outcome, cost, row),
                            cost.verified ? "" : "  WRONG DATA");
    }
    return text;
}

}  // namespace

std::string table(std::string const& title, WorkflowOutcome const& outcome)
{
    auto text = fmt::format("{}\n  {}\n  between writing and reading, {}\n", title, outcome.readers, outcome.between);
    text += fmt::format(line, "", "", "median", "least", "most", "cv", "to MPI-IO", "");
    for (auto const& row : figures) text += lines_of(outcome, row);
    std::string group = "in cache, %";
    for (auto const& cost : outcome.costs) {
        auto const percent = [](double share) { return fmt::format("{:.0f}", share * 100); };
        text += fmt::format(line, group, cost.label, percent(cost.cached.median()), percent(cost.cached.min()),
                            percent(cost.cached.max()), "", "", "");
        group.clear();
    }
    return text +
           "  write and read: the steps alone; solution: both, with opening and closing\n"
           "  in cache: of the data, before they are read, on the node that has most of them\n";
}

std::string to_json(WorkflowOutcome const& outcome)
{
    auto array = nlohmann::ordered_json::array();
    for (auto const& row : figures)
        for (auto const& cost : outcome.costs) {
            auto const& [seconds, mb_per_s] = cost.*row.figure;
            array.push_back({{"workload", "workflow"},
                             {"layout", outcome.layout},
                             {"op", row.op},
                             {"phase", "whole"},
                             {"bytes_per_rank", outcome.bytes_per_rank},
                             {"block_bytes", outcome.block_bytes},
                             {"ranks", outcome.ranks},
                             {"nodes", outcome.nodes},
                             {"method", cost.method},
                             {"readers", outcome.readers},
                             {"between", outcome.between},
                             {"median_s", seconds.median()},
                             {"min_s", seconds.min()},
                             {"max_s", seconds.max()},
                             {"median_mb_s", mb_per_s.median()},
                             {"min_mb_s", mb_per_s.min()},
                             {"max_mb_s", mb_per_s.max()},
                             {"cv", seconds.cv()},
                             {"median_cached", cost.cached.median()},
                             {"verified", cost.verified}});
        }
    return array.dump(2);
}

}  // namespace bench
