// See conforming_order.hpp.
#include "conforming_order.hpp"

#include <algorithm>

namespace conforming {

Order::Actor& Order::find(int handle, int rank)
{
    for (auto& actor : actors_)
        if (actor.handle == handle && actor.rank == rank) return actor;
    actors_.push_back({});
    actors_.back().handle = handle;
    actors_.back().rank = rank;
    see(actors_.back());
    return actors_.back();
}

/// The actor's handle is synced: it sees what the others had in the file when the processes last met.
void Order::see(Actor& actor)
{
    actor.seen.resize(actors_.size());
    for (std::size_t a = 0; a < actors_.size(); ++a) {
        auto const& other = actors_[a];
        actor.seen[a] = std::max(actor.seen[a], other.rank == actor.rank ? other.flushed : other.flushed_met);
    }
}

int Order::opened(std::vector<int> const& members)
{
    for (int rank = 0; handles_ == 1 && rank < ranks_; ++rank) (void)find(posix, rank);
    for (auto rank : members) (void)find(handles_, rank);
    return handles_++;
}

void Order::closed(int handle)
{
    synced(handle);
    atomic_.erase(handle);
}

void Order::synced(int handle)
{
    for (auto& actor : actors_)
        if (actor.handle == handle) actor.flushed = now_;
    for (auto& actor : actors_)
        if (actor.handle == handle || actor.handle == posix) see(actor);
}

void Order::met(std::set<int> const& busy)
{
    for (auto& actor : actors_) {
        if (actor.handle == posix) actor.flushed = now_;
        actor.flushed_met = actor.flushed;
    }
    for (auto& actor : actors_) {
        if (actor.handle == posix) see(actor);
        if (atomic_.count(actor.handle) == 0 || busy.count(actor.handle) != 0) continue;
        actor.seen.resize(actors_.size());
        for (std::size_t a = 0; a < actors_.size(); ++a)
            if (actors_[a].handle == actor.handle && actor.seen[a] >= actors_[a].before_atomic) actor.seen[a] = now_;
    }
}

void Order::set_atomic(int handle, bool atomic)
{
    if (!atomic) {
        atomic_.erase(handle);
        return;
    }
    if (!atomic_.insert(handle).second) return;
    for (auto& actor : actors_)
        if (actor.handle == handle) actor.before_atomic = last(actor);
}

bool Order::conflict(std::size_t earlier, Actor const& me, Access const& access) const
{
    auto const& other = actors_[earlier];
    auto const seen = earlier < me.seen.size() ? me.seen[earlier] : 0;
    if (last(other) <= seen) return false;
    if (other.handle != access.handle && !bytewise_) return access.write || other.last_write > seen;
    auto const unseen = [&](std::vector<Time> const& times, std::size_t i) {
        return i < times.size() && times[i] > seen;
    };
    for (auto const& [at, length] : access.bytes)
        for (auto i = static_cast<std::size_t>(at); i < static_cast<std::size_t>(at + length); ++i)
            if (unseen(other.writes, i) || (access.write && unseen(other.reads, i))) return true;
    if (access.size == Size::Set) {
        auto const end = std::max(other.writes.size(), other.reads.size());
        for (auto i = static_cast<std::size_t>(access.low); i < end; ++i)
            if (unseen(other.writes, i) || unseen(other.reads, i)) return true;
    }
    auto const end = access.bytes.empty() ? 0 : access.bytes.back().at + access.bytes.back().length;
    if (other.size_read > seen && access.write && (access.size == Size::Set || end > other.smallest_size)) return true;
    return std::any_of(changes_.begin(), changes_.end(), [&](Change const& change) {
        if (change.actor != earlier || change.when <= seen) return false;
        if (access.size == Size::Set || access.size == Size::Read) return true;
        return end > change.low && (change.set || !access.write);
    });
}

std::set<Order::Conflict> Order::conflicts(Access const& access) const
{
    std::set<Conflict> result;
    auto const& me = find(access.handle, access.rank);
    for (std::size_t a = 0; a < actors_.size(); ++a)
        if (&actors_[a] != &me && conflict(a, me, access)) result.insert({actors_[a].handle, actors_[a].rank});
    return result;
}

void Order::done(Access const& access)
{
    ++now_;
    auto& me = find(access.handle, access.rank);
    (access.write ? me.last_write : me.last_read) = now_;
    auto& times = access.write ? me.writes : me.reads;
    for (auto const& [at, length] : access.bytes) {
        auto const end = static_cast<std::size_t>(at + length);
        if (times.size() < end) times.resize(end);
        std::fill(times.begin() + at, times.begin() + static_cast<std::ptrdiff_t>(end), now_);
    }
    if (access.size == Size::Read) {
        me.size_read = now_;
        me.smallest_size = std::min(me.smallest_size, access.low);
    }
    if (access.size == Size::Grown || access.size == Size::Set)
        changes_.push_back(
            {static_cast<std::size_t>(&me - actors_.data()), now_, access.low, access.size == Size::Set});
    if (access.handle == posix) {
        me.flushed = now_;
        for (auto& actor : actors_)
            if (actor.handle == posix && actor.rank == access.rank) see(actor);
    }
}

}  // namespace conforming
