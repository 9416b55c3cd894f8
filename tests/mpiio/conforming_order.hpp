// The standard's rules about which accesses a process may rely on (chapter I/O, file consistency), for one file.
#pragma once

#include <limits>
#include <set>

#include "fuzz_model.hpp"

namespace conforming {

using fuzz::Segments;

/// An actor is one process with one handle, or one process without MPI. Accesses of one actor are in order. Conflicting
/// accesses of different actors are in order if the first one's handle was synced, the two processes met after that (in
/// a barrier; one process always meets itself) and the second one's handle was synced then. Opening and closing count
/// as syncs. In atomic mode, between processes of one handle, it is enough that they met. Accesses through one handle
/// conflict if they have a byte in common and one of them writes. Accesses through different handles conflict if one of
/// them writes, wherever that is, because the standard promises no more, unless `bytewise` is set.
class Order {
public:
    Order(int ranks, bool bytewise) : ranks_(ranks), bytewise_(bytewise) {}

    /// Adds a handle and returns its number; that of accesses without MPI is `posix`.
    int opened(std::vector<int> const& members);
    void closed(int handle);
    void synced(int handle);
    /// All processes meet. Accesses of the handles in `busy` may not be complete.
    void met(std::set<int> const& busy);
    /// @pre all processes have just met, and nothing is under way
    void set_atomic(int handle, bool atomic);

    /// What an access concerns besides bytes.
    enum class Size { Ignored, Read, Grown, Set };
    struct Access {
        int handle = 0;
        int rank = 0;
        bool write = false;
        Segments bytes;
        Size size = Size::Ignored;
        std::int64_t low = 0;  ///< the file changes, or ends, from here on, where it is about its size
    };
    struct Conflict {
        int handle;
        int rank;
        bool operator<(Conflict const& other) const
        {
            return handle != other.handle ? handle < other.handle : rank < other.rank;
        }
    };
    /// The actors whose earlier accesses are not in order with this one.
    std::set<Conflict> conflicts(Access const& access) const;
    void done(Access const& access);

    static constexpr int posix = 0;

private:
    using Time = std::uint32_t;
    struct Actor {
        int handle = 0;
        int rank = 0;
        std::vector<Time> writes, reads;  ///< of each byte, the last one
        Time last_write = 0, last_read = 0, size_read = 0;
        std::int64_t smallest_size = std::numeric_limits<std::int64_t>::max();  ///< that was read
        Time flushed = 0;          ///< accesses up to then count as being in the file
        Time flushed_met = 0;      ///< and the processes have met since then
        Time before_atomic = 0;    ///< the last access in nonatomic mode
        std::vector<Time> seen{};  ///< by actor: accesses up to then come before what this actor does next
    };
    struct Change {
        std::size_t actor;
        Time when;
        std::int64_t low;
        bool set;
    };

    Time last(Actor const& actor) const
    {
        return std::max(actor.last_write, std::max(actor.last_read, actor.size_read));
    }
    void see(Actor& actor);
    bool conflict(std::size_t earlier, Actor const& me, Access const& access) const;
    Actor& find(int handle, int rank);
    Actor const& find(int handle, int rank) const { return const_cast<Order*>(this)->find(handle, rank); }

    int ranks_;
    bool bytewise_;
    int handles_ = 1;
    Time now_ = 0;
    std::set<int> atomic_;
    std::vector<Actor> actors_;
    std::vector<Change> changes_;
};

}  // namespace conforming
