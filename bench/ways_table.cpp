#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "ways.hpp"

namespace bench {

namespace {

Spread spread_of(std::vector<double> const& values)
{
    Spread spread;
    for (auto const value : values) spread.push_back(value);
    return spread;
}

/// Milliseconds with four significant digits.
std::string ms(double seconds)
{
    auto const value = seconds * 1e3;
    return fmt::format("{:.{}f}", value, value < 1 ? 4 : value < 10 ? 3 : value < 100 ? 2 : 1);
}

std::string row(WaysOutcome const& outcome, std::string const& name, std::optional<double> predicted,
                std::vector<double> const& seconds, char const* remark)
{
    auto const spread = spread_of(seconds);
    return fmt::format("  {:<28}  {:>10}  {:>10}  {:>10}  {:>10}  {:>8.0f}  {}\n", name,
                       predicted ? ms(*predicted) : "-", ms(spread.median()), ms(spread.min()), ms(spread.max()),
                       static_cast<double>(outcome.step_bytes) / 1e6 / spread.median(), remark);
}

}  // namespace

std::string table(WaysOutcome const& outcome)
{
    auto text = fmt::format("{}, {}, {}: {} ranks, {:.3f} MB a step, {} steps timed, ms a step\n", outcome.label,
                            outcome.op, outcome.interface, outcome.ranks, static_cast<double>(outcome.step_bytes) / 1e6,
                            outcome.timed_steps);
    text += fmt::format("  {:<28}  {:>10}  {:>10}  {:>10}  {:>10}  {:>8}\n", "", "predicted", "median", "least", "most",
                        "MB/s");
    auto const best = outcome.best();
    for (std::size_t i = 0; i < outcome.ways.size(); ++i) {
        auto const& way = outcome.ways[i];
        bool const chosen = way.name == outcome.chosen;
        text += row(outcome, way.name, way.predicted_s, way.seconds,
                    i == best ? (chosen ? "best, chosen" : "best") : (chosen ? "chosen" : ""));
    }
    text += row(outcome, "by default", {}, outcome.default_s, "");
    text += row(outcome, "learning, later steps", {}, outcome.learnt_s, "");
    text += fmt::format("  regret {:.2f} (certainty {:.2f}), after learning {:.2f} (certainty {:.2f}){}\n",
                        outcome.regret(), outcome.certainty(), outcome.regret_after_learning(),
                        outcome.certainty_after_learning(), outcome.verified ? "" : "  WRONG DATA");
    return text;
}

std::string summary(std::vector<WaysOutcome> const& outcomes)
{
    if (outcomes.empty()) return "";
    std::vector<double> first;
    std::vector<double> later;
    for (auto const& outcome : outcomes) {
        first.push_back(outcome.regret());
        later.push_back(outcome.regret_after_learning());
    }
    auto const a = spread_of(first);
    auto const b = spread_of(later);
    return fmt::format(
        "{} cell{}: regret (best / by default) median {:.2f}, least {:.2f}; after learning median {:.2f}, least "
        "{:.2f}\n",
        outcomes.size(), outcomes.size() == 1 ? "" : "s", a.median(), a.min(), b.median(), b.min());
}

std::string to_json(std::vector<WaysOutcome> const& outcomes)
{
    auto array = nlohmann::ordered_json::array();
    for (auto const& outcome : outcomes) {
        auto ways = nlohmann::ordered_json::array();
        for (auto const& way : outcome.ways) {
            ways.push_back({{"way", way.name}, {"seconds", way.seconds}});
            if (way.predicted_s) ways.back()["predicted_s"] = *way.predicted_s;
        }
        array.push_back({{"workload", outcome.label},
                         {"op", outcome.op},
                         {"interface", outcome.interface},
                         {"ranks", outcome.ranks},
                         {"step_bytes", outcome.step_bytes},
                         {"chosen", outcome.chosen},
                         {"best", outcome.ways[outcome.best()].name},
                         {"regret", outcome.regret()},
                         {"regret_after_learning", outcome.regret_after_learning()},
                         {"certainty", outcome.certainty()},
                         {"certainty_after_learning", outcome.certainty_after_learning()},
                         {"ways", std::move(ways)},
                         {"default_s", outcome.default_s},
                         {"learnt_s", outcome.learnt_s},
                         {"verified", outcome.verified}});
    }
    return array.dump(2);
}

}  // namespace bench
