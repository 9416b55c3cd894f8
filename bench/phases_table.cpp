#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "phases.hpp"
#include "table.hpp"

namespace bench {

namespace {

PhasesCell const* row_of(PhasesOutcome const& outcome, std::string const& method)
{
    auto const at = std::find_if(outcome.cells.begin(), outcome.cells.end(),
                                 [&](PhasesCell const& cell) { return cell.method == method; });
    return at == outcome.cells.end() ? nullptr : &*at;
}

/// How many times as fast as `to`; 0 if unknown.
double times_as_fast(Spread const& seconds, Spread const& to)
{
    return seconds.median() > 0 ? to.median() / seconds.median() : 0;
}

std::string as_ratio(double value)
{
    if (value <= 0) return "-";
    return value < 10 ? fmt::format("{:.2f}x", value) : fmt::format("{:.{}f}x", value, value < 1000 ? 1 : 0);
}

std::string as_ms(Spread const& seconds)
{
    auto const ms = seconds.median() * 1e3;
    return fmt::format("{:>7.{}f} {:>3.0f}%", ms, ms < 1000 ? 3 : ms < 100000 ? 1 : 0, seconds.cv() * 100);
}

/// Relative to MPI-IO's collective calls, and to the log's limit; 0: not measured.
struct Ratios {
    double write = 0, total = 0, log = 0;
};

Ratios ratios_of(PhasesOutcome const& outcome, PhasesCell const& cell)
{
    Ratios ratios;
    auto const* const collective = row_of(outcome, "collective");
    auto const* const limit = row_of(outcome, "log-limit");
    if (collective && collective != &cell) {
        ratios.write = times_as_fast(cell.seconds.write, collective->seconds.write);
        if (cell.in_file) ratios.total = times_as_fast(cell.seconds.total, collective->seconds.total);
    }
    if (limit && limit != &cell) ratios.log = times_as_fast(cell.seconds.write, limit->seconds.write);
    return ratios;
}

}  // namespace

std::string table(std::string const& title, PhasesOutcome const& outcome)
{
    auto text = title + "\n";
    text += fmt::format("  {:<20} {:>12} {:>12} {:>12} {:>12}  {:>14}  {:>6}\n", "median ms, and cv", "", "", "", "",
                        "to collective:", "to log");
    text += fmt::format("  {:<20} {:>12} {:>12} {:>12} {:>12}  {:>6}  {:>6}  {:>6}\n", "", "open", "write", "flush",
                        outcome.compute_s > 0 ? "held up" : "total", "write", outcome.compute_s > 0 ? "held" : "total",
                        "write");
    for (auto const& cell : outcome.cells) {
        auto const& s = cell.seconds;
        auto const ratios = ratios_of(outcome, cell);
        text += fmt::format("  {:<20} {} {} {} {}  {:>6}  {:>6}  {:>6}{}\n", method_label(cell.method), as_ms(s.open),
                            as_ms(s.write), as_ms(s.flush), as_ms(s.total), as_ratio(ratios.write),
                            as_ratio(ratios.total), as_ratio(ratios.log), cell.verified ? "" : "  WRONG DATA");
    }
    return text;
}

std::string to_json(std::vector<PhasesOutcome> const& outcomes)
{
    auto const spread = [](Spread const& seconds) {
        return nlohmann::ordered_json{
            {"median", seconds.median()}, {"min", seconds.min()}, {"max", seconds.max()}, {"cv", seconds.cv()}};
    };
    auto array = nlohmann::ordered_json::array();
    for (auto const& outcome : outcomes)
        for (auto const& cell : outcome.cells) {
            auto const& w = outcome.workload;
            auto const& s = cell.seconds;
            auto const ratios = ratios_of(outcome, cell);
            auto const megabytes = static_cast<double>(w.file_bytes()) / 1e6;
            array.push_back({{"workload", w.name},
                             {"layout", w.layout},
                             {"op", "write"},
                             {"phase", "whole"},
                             {"bytes_per_rank", w.file_bytes() / outcome.ranks},
                             {"block_bytes", w.block_bytes},
                             {"ranks", outcome.ranks},
                             {"steps", w.steps},
                             {"compute_s", outcome.compute_s},
                             {"method", cell.method},
                             {"median_mb_s", megabytes / s.total.median()},
                             {"min_mb_s", megabytes / s.total.max()},
                             {"max_mb_s", megabytes / s.total.min()},
                             {"cv", s.total.cv()},
                             {"open_s", spread(s.open)},
                             {"write_s", spread(s.write)},
                             {"flush_s", spread(s.flush)},
                             {"total_s", spread(s.total)},
                             {"verified", cell.verified}});
            auto& json = array.back();
            if (ratios.write > 0) json["write_to_collective"] = ratios.write;
            if (ratios.total > 0) json["total_to_collective"] = ratios.total;
            if (ratios.log > 0) json["write_to_log_limit"] = ratios.log;
        }
    return array.dump(2);
}

}  // namespace bench
