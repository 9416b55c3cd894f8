#include "report/account.hpp"

#include <algorithm>

#include "report/report.hpp"

namespace tapioca::report {

void Account::Direction::add(engine::Transfer::Outcome const& run, double seconds)
{
    overlapped += run.overlapped_bytes;
    waiting += run.waiting;
    inside += seconds;
    times.copying += run.times.copying;
    times.draining += run.times.draining;
    times.bytes += run.times.bytes;
    times.rounds += run.times.rounds;
    times.calls += run.times.calls;
}

void Account::add(plan::Plan const& plan, settings::Settings const& settings)
{
    if (settings.options.report) plans.push_back(to_json(plan, settings));
}

void Planning::done(plan::Plan const& plan, pattern::Variables const& variables, settings::Settings const& settings)
{
    account_.planning_bytes += team_.traffic_bytes() - given_before_;
    if (plan.job.nodes == 1) account_.planning_bytes += sizeof plan.job.pattern;  // through shared memory
    std::uint64_t bookkeeping = 0;
    for (auto const& variable : variables) bookkeeping += variable->bookkeeping_bytes();
    account_.bookkeeping_bytes = std::max(account_.bookkeeping_bytes, bookkeeping);
    account_.add(plan, settings);
}

}  // namespace tapioca::report
