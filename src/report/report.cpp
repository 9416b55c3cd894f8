#include "report/report.hpp"

#include <cstdio>
#include <filesystem>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "plan/to_json.hpp"
#include "report/report_file.hpp"

namespace tapioca::report {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(settings::Settings const& settings)
{
    Json json = Json::array();
    for (auto const& [name, value, origin] : settings.lines())
        json.push_back({{"name", name}, {"value", value}, {"origin", origin}});
    return json;
}

/// Sum, mean and maximum over the ranks, for each of the numbers that every rank sent.
class Columns {
public:
    Columns(std::vector<double> values, std::size_t columns) : values_(std::move(values)), columns_(columns) {}
    [[nodiscard]] double sum(std::size_t column) const
    {
        double total = 0;
        for (auto i = column; i < values_.size(); i += columns_) total += values_[i];
        return total;
    }
    [[nodiscard]] double max(std::size_t column) const
    {
        double most = 0;
        for (auto i = column; i < values_.size(); i += columns_) most = std::max(most, values_[i]);
        return most;
    }
    [[nodiscard]] Json seconds(std::size_t column) const
    {
        auto const ranks = static_cast<double>(values_.size()) / static_cast<double>(columns_);
        return {{"mean", sum(column) / ranks}, {"max", max(column)}};
    }
    [[nodiscard]] std::uint64_t count(std::size_t column) const { return static_cast<std::uint64_t>(sum(column)); }

private:
    std::vector<double> values_;
    std::size_t columns_;
};

constexpr std::size_t per_direction = 9;

void append(std::vector<double>& numbers, Account::DirectionAccount const& d)
{
    auto const number = [](std::uint64_t value) { return static_cast<double>(value); };
    numbers.insert(numbers.end(), {number(d.bytes), number(d.overlapped), d.times.copying, d.waiting, d.times.draining,
                                   number(d.times.bytes), number(d.times.rounds), number(d.times.calls), d.inside});
}

Json direction(Account::DirectionAccount const& mine, Columns const& all, std::size_t first)
{
    return {{"steps", mine.steps},
            {"bytes", all.count(first)},
            {"overlapped_bytes", all.count(first + 1)},
            {"target_bytes", all.count(first + 5)},
            {"rounds", all.count(first + 6)},
            {"target_calls", all.count(first + 7)},
            // Of the slowest rank, for comparison with the plan's prediction.
            {"seconds_a_step", mine.steps == 0 ? 0.0 : all.max(first + 8) / static_cast<double>(mine.steps)},
            {"seconds",
             {{"copying", all.seconds(first + 2)},
              {"waiting", all.seconds(first + 3)},
              {"draining", all.seconds(first + 4)}}}};
}

/// If the report is not written by rank 0 of the job, it gets a name of its own.
std::string report_path(std::string const& path)
{
    auto const rank = comm::world_rank();
    if (rank == 0) return path;
    std::filesystem::path name(path);
    auto const extension = name.extension().string();
    return name.replace_extension(fmt::format(".rank{}{}", rank, extension)).string();
}

}  // namespace

std::string to_json(plan::Plan const& plan, settings::Settings const& settings)
{
    auto json = plan::to_json(plan);
    json["options"] = to_json(settings);
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write(Subject const& file, Account const& account)
{
    std::vector<double> numbers;
    append(numbers, account.write);
    append(numbers, account.read);
    numbers.push_back(account.planning);
    numbers.push_back(static_cast<double>(account.bookkeeping_bytes));
    numbers.push_back(static_cast<double>(account.planning_bytes));
    auto const& team = file.team;
    Columns const all(team.gather(numbers), numbers.size());
    if (team.rank() != 0) return;

    Json json;
    json["path"] = file.path;
    json["mode"] = file.mode;
    json["ranks"] = team.size();
    json["options"] = to_json(file.settings);
    json["plans"] = Json::array();
    for (auto const& plan : account.plans) json["plans"].push_back(Json::parse(plan));
    json["planning_seconds"] = all.seconds(2 * per_direction);
    json["planning_bytes"] = {{"mean", all.sum(2 * per_direction + 2) / team.size()},
                              {"max", all.max(2 * per_direction + 2)}};
    json["most_bookkeeping_bytes"] = static_cast<std::uint64_t>(all.max(2 * per_direction + 1));
    json["write"] = direction(account.write, all, 0);
    json["read"] = direction(account.read, all, per_direction);
    for (auto const& [name, value] : account.more) json[name] = Json::parse(value);
    add(*file.settings.options.report, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void add(std::string const& path, std::string const& account)
try {
    auto const text = Json::parse(account).dump(2, ' ', false, Json::error_handler_t::replace);
    auto const status = add_account(report_path(report_place(path)), text);
    if (!status) std::fprintf(stderr, "tapioca: report: %s\n", status.error().text.c_str());
} catch (std::exception const& error) {  // most likely no memory
    std::fprintf(stderr, "tapioca: report: %s: %s\n", path.c_str(), error.what());
}

}  // namespace tapioca::report
