// Run: one step under way on one rank. Within a node the same protocol for processes and for threads, without MPI.
//
// A run is put together from roles, each on its own side of the node's shared memory:
//   Filler   copies a rank's pieces into buffers, or packs them for another node     Taker   the reverse, when reading
//   Drainer  an aggregator's: writes complete rounds to the target                   Loader  the reverse
//   Carrier  brings what is packed to the aggregators of other nodes, and replies back
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.hpp"
#include "engine/context.hpp"
#include "engine/times.hpp"

namespace tapioca::engine {

class Run {
public:
    virtual ~Run() = default;
    /// Copies what can be copied now; if `helping`, also does I/O that it would otherwise wait for. Local. True when
    /// this rank has no more to copy.
    virtual bool advance(bool helping = true) = 0;
    /// Waits for this rank's own I/O, after advance() came true. Local.
    virtual core::Status settle() = 0;
    /// Bytes of each variable that came from the file (reads only).
    [[nodiscard]] virtual std::vector<std::uint64_t> const& received() const = 0;
    /// Bytes that this rank's I/O has moved so far. Any time.
    [[nodiscard]] virtual std::uint64_t drained_bytes() const = 0;
    /// Seconds this rank has spent copying so far.
    [[nodiscard]] virtual double copying() const { return 0; }
    /// After settle().
    [[nodiscard]] virtual Times times() const = 0;
};

std::unique_ptr<Run> start_write(Context context);
std::unique_ptr<Run> start_read(Context context);
std::unique_ptr<Run> start_remote_read(Context context);
std::unique_ptr<Run> start_direct(Context context);
/// The one that the route asks for.
std::unique_ptr<Run> start(Context context);

}  // namespace tapioca::engine
