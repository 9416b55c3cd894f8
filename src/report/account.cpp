#include "report/account.hpp"

#include <algorithm>

#include "report/report.hpp"

namespace tapioca::report {

void Account::DirectionAccount::add(engine::Transfer::RunOutcome const& run, double seconds)
{
    add({0, 0, run.overlapped_bytes, run.times, run.waiting, seconds});
}

void Account::DirectionAccount::add(DirectionAccount const& other)
{
    steps += other.steps;
    bytes += other.bytes;
    overlapped += other.overlapped;
    waiting += other.waiting;
    inside += other.inside;
    times.copying += other.times.copying;
    times.draining += other.times.draining;
    times.bytes += other.times.bytes;
    times.rounds += other.times.rounds;
    times.calls += other.times.calls;
}

void Account::add(Account const& other)
{
    planning += other.planning;
    planning_bytes += other.planning_bytes;
    write.add(other.write);
    read.add(other.read);
    plans.insert(plans.end(), other.plans.begin(), other.plans.end());
    bookkeeping_bytes = std::max(bookkeeping_bytes, other.bookkeeping_bytes);
}

void Account::add(plan::Plan const& plan, settings::Settings const& settings)
{
    if (settings.options.report) plans.push_back(to_json(plan, settings));
}

void Planning::done(plan::Plan const& plan, pattern::Variables const& variables, settings::Settings const& settings)
{
    account_.planning_bytes += team_.traffic_bytes() - given_before_;
    if (plan.job.nodes == 1) account_.planning_bytes += sizeof plan.job.pattern;  // exchanged through shared memory
    std::uint64_t bookkeeping = 0;
    for (auto const& variable : variables) bookkeeping += variable->bookkeeping_bytes();
    account_.bookkeeping_bytes = std::max(account_.bookkeeping_bytes, bookkeeping);
    account_.add(plan, settings);
}

}  // namespace tapioca::report
