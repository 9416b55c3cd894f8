// Service: how the calls on an open file are served. Plain is for files without a log, Staged for files with one; a
// Handle uses one or the other.
#pragma once

#include <cstdint>

#include "mpiio/data_access.hpp"

namespace tapioca::mpiio {

/// Functions that return int return MPI error classes.
class Service {
public:
    virtual ~Service() = default;

    /// A collective access. Collective, except that writes are local if takes_writes().
    virtual Attempt serve(DataAccess const& request) = 0;
    /// An independent access. Local.
    virtual AccessOutcome serve_alone(DataAccess const& request) = 0;
    /// The MPI library, or the engine, is about to access the file, past this process's logs of it: writes the contents
    /// of these logs to the file. Local.
    virtual int hand_over(Direction direction, bool durable) = 0;
    /// The MPI library is about to do a collective call: brings everything into the file. Collective.
    virtual int flush(bool durable) = 0;
    /// To be called when view or hints may have changed on some rank. Collective. `next` is nothing or reopen.
    virtual Attempt settle() = 0;
    /// Whether writes go to a log now. The same on all ranks; any thread.
    [[nodiscard]] virtual bool takes_writes() const = 0;
    /// The end of the furthest byte in this rank's log. Local.
    [[nodiscard]] virtual std::int64_t end() = 0;
};

}  // namespace tapioca::mpiio
