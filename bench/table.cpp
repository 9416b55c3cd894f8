#include "table.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace bench {

std::string thousands(double value)
{
    auto const digits = fmt::format("{:.0f}", value);
    std::string text;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return text;
}

namespace {

Cell const* find(BenchOutcome const& outcome, Cell const& like, std::string const& method)
{
    auto const at = std::find_if(outcome.cells.begin(), outcome.cells.end(), [&](Cell const& cell) {
        return cell.method == method && cell.op == like.op && cell.phase == like.phase;
    });
    return at == outcome.cells.end() ? nullptr : &*at;
}

std::string ratio(Cell const& cell, Cell const* to)
{
    if (!to || to->method == cell.method) return "-";
    return fmt::format("{:.2f}x", cell.mb_per_s.median() / to->mb_per_s.median());
}

std::string where_time_went(BenchOutcome const& outcome)
{
    auto const& b = outcome.breakdown;
    auto const reads =
        std::any_of(outcome.cells.begin(), outcome.cells.end(), [](Cell const& c) { return c.op == "read"; });
    auto const direction = [](char const* name, Breakdown::DirectionTimes const& d) {
        return fmt::format("    {:<5}  copying {:>8.3f}   waiting {:>8.3f}   draining {:>8.3f}\n", name,
                           d.copying * 1e3, d.waiting * 1e3, d.draining * 1e3);
    };
    return fmt::format(
        "  where TAPIOCA's time goes, one step, in ms (copying and waiting: mean over ranks)\n"
        "    plan   {:.3f}\n{}{}",
        b.planning * 1e3, direction("write", b.write), reads ? direction("read", b.read) : "");
}

std::string what_links_allow(BenchOutcome const& outcome, double link_bytes_per_s)
{
    std::string text;
    for (auto const* const op : {"write", "read"}) {
        auto const& n = std::string_view(op) == "write" ? outcome.write : outcome.read;
        std::string ratios;
        double allowed = 0;
        bool measured = false;
        for (auto const& cell : outcome.cells) {
            measured = measured || cell.op == op;
            if (cell.op == op && cell.link_mb_per_s > 0) {
                allowed = cell.link_mb_per_s;
                ratios += fmt::format(", {} {:.2f}x", cell.phase, cell.mb_per_s.median() / cell.link_mb_per_s);
            }
        }
        if (allowed > 0)
            text += fmt::format(
                "  links of {:.0f} MB/s, {}: {:.3f} MB cross between {} nodes, at most {:.3f} MB into and {:.3f} MB "
                "out "
                "of one: {} MB/s allowed; TAPIOCA{}\n",
                link_bytes_per_s / 1e6, op, static_cast<double>(n.crossing_bytes) / 1e6, n.nodes,
                static_cast<double>(n.most_in_bytes) / 1e6, static_cast<double>(n.most_out_bytes) / 1e6,
                thousands(allowed), ratios);
        else if (measured && n.nodes > 0)
            text += fmt::format("  links, {}: nothing crosses\n", op);
    }
    if (text.empty()) text = "  links: no bound without TAPIOCA's plan\n";
    return text;
}

}  // namespace

std::string table(std::string const& title, BenchOutcome const& outcome, double link_bytes_per_s)
{
    auto text = title + "\n";
    text += fmt::format("  {:<12}  {:<21}  {:>11}  {:>8}  {:>8}  {:>5}  {:>8}  {:>10}\n", "", "", "median MB/s", "min",
                        "max", "cv", "to limit", "to collect.");
    std::string group;
    for (auto const& cell : outcome.cells) {
        auto const this_group = cell.op + " " + cell.phase;
        text += fmt::format("  {:<12}  {:<21}  {:>11}  {:>8}  {:>8}  {:>4.0f}%  {:>8}  {:>10}{}\n",
                            this_group == group ? "" : this_group, method_label(cell.method),
                            thousands(cell.mb_per_s.median()), thousands(cell.mb_per_s.min()),
                            thousands(cell.mb_per_s.max()), cell.mb_per_s.cv() * 100,
                            ratio(cell, find(outcome, cell, "limit")), ratio(cell, find(outcome, cell, "collective")),
                            cell.verified ? "" : "  WRONG DATA");
        group = this_group;
    }
    if (outcome.unused)
        text += fmt::format(
            "  opening and closing a file that nobody uses: MPI-IO alone {:.1f} us, through TAPIOCA {:.1f} us, "
            "{:.2f}x\n",
            outcome.unused->alone.median() * 1e6, outcome.unused->through.median() * 1e6,
            outcome.unused->through.median() / outcome.unused->alone.median());
    for (auto const& cell : outcome.cells)
        if (cell.must_cross_bytes && cell.phase == "cold")
            text += fmt::format("  switches, {}: {:.3f} MB must cross between them, wherever the aggregators are\n",
                                cell.op, static_cast<double>(*cell.must_cross_bytes) / 1e6);
    if (link_bytes_per_s > 0) text += what_links_allow(outcome, link_bytes_per_s);
    if (outcome.declare.pieces > 0) {
        text += where_time_went(outcome);
        auto const& d = outcome.declare;
        text += fmt::format(
            "  declaring {} piece{} a rank: {:.3f} ms, {:.1f} % of a step; bookkeeping {} bytes, {:.1f} a piece\n",
            d.pieces, d.pieces == 1 ? "" : "s", d.declare_seconds * 1e3, 100 * d.declare_seconds / d.step_seconds,
            d.bookkeeping_bytes, static_cast<double>(d.bookkeeping_bytes) / static_cast<double>(d.pieces));
    }
    return text;
}

std::string to_json(std::vector<Cell> const& cells)
{
    auto array = nlohmann::ordered_json::array();
    for (auto const& cell : cells) {
        array.push_back({{"workload", cell.workload},
                         {"layout", cell.layout},
                         {"op", cell.op},
                         {"phase", cell.phase},
                         {"bytes_per_rank", cell.bytes_per_rank},
                         {"block_bytes", cell.block_bytes},
                         {"ranks", cell.ranks},
                         {"method", cell.method},
                         {"median_mb_s", cell.mb_per_s.median()},
                         {"min_mb_s", cell.mb_per_s.min()},
                         {"max_mb_s", cell.mb_per_s.max()},
                         {"cv", cell.mb_per_s.cv()},
                         {"verified", cell.verified}});
        if (cell.crossing_bytes) array.back()["crossing_bytes"] = *cell.crossing_bytes;
        if (cell.must_cross_bytes) array.back()["must_cross_bytes"] = *cell.must_cross_bytes;
        if (cell.link_mb_per_s > 0) array.back()["link_mb_s"] = cell.link_mb_per_s;
    }
    return array.dump(2);
}

}  // namespace bench
