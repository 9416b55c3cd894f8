// Run: one execution of a step on one rank. Within a node, processes and threads use the same protocol, without MPI.
//
// A run is composed of roles, which work between a rank's memory, the node's shared memory, the target and other nodes:
//   Filler   copies a rank's pieces into buffers, or packs them for another node     Taker   the reverse, for reading
//   Drainer  writes an aggregator's complete rounds to the target                    Loader  the reverse
//   Carrier  sends packed data to the aggregators of other nodes, and their replies back
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
    /// Copies what can be copied now; if `helping`, also does I/O instead of waiting for it. Local. Returns true when
    /// this rank has nothing more to copy.
    virtual bool advance(bool helping = true) = 0;
    /// Waits for this rank's own I/O, after advance() has returned true. Local.
    virtual core::Status settle() = 0;
    /// Bytes of each variable that came from the file (reads only).
    [[nodiscard]] virtual std::vector<std::uint64_t> const& received() const = 0;
    /// Bytes that this rank's I/O has moved so far. May be called at any time.
    [[nodiscard]] virtual std::uint64_t drained_bytes() const = 0;
    /// Seconds this rank has spent copying so far.
    [[nodiscard]] virtual double copying() const { return 0; }
    /// Valid after settle().
    [[nodiscard]] virtual Times times() const = 0;
};

std::unique_ptr<Run> start_write(Context context);
std::unique_ptr<Run> start_read(Context context);
std::unique_ptr<Run> start_remote_read(Context context);
std::unique_ptr<Run> start_direct(Context context);
/// Starts the kind of run that the route asks for.
std::unique_ptr<Run> start(Context context);

}  // namespace tapioca::engine
