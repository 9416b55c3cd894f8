// Service: how the calls on an open file are served. Plain has the one of a file without a log, Staged that of a file
// with one; a Handle uses one or the other.
#pragma once

#include <cstdint>

#include "mpiio/data_access.hpp"

namespace tapioca::mpiio {

/// Numbers that tell of errors are MPI error classes.
class Service {
public:
    virtual ~Service() = default;

    /// A collective access. Collective, but where takes_writes() writes are local.
    virtual Attempt serve(DataAccess const& request) = 0;
    /// An independent access. Local.
    virtual AccessOutcome serve_alone(DataAccess const& request) = 0;
    /// The MPI library, or the engine, is about to do something with the file past this process's logs of it: brings
    /// what is in them into the file. Local.
    virtual int hand_over(Direction direction, bool durable) = 0;
    /// A collective call that the MPI library does is about to begin: brings everything into the file. Collective.
    virtual int flush(bool durable) = 0;
    /// View or hints may have changed, here or elsewhere. Collective. `next` is nothing or reopen.
    virtual Attempt settle() = 0;
    /// Whether writes go to a log now. The same on all ranks; any thread.
    [[nodiscard]] virtual bool takes_writes() const = 0;
    /// Where the furthest byte in this rank's log ends. Local.
    [[nodiscard]] virtual std::int64_t end() = 0;
};

}  // namespace tapioca::mpiio
