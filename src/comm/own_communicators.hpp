// Communicators of our own for the ranks of one that the program may free at any time.
//
// What is called here runs inside MPI_File_* calls of programs that know nothing of this library. It goes by MPI's
// PMPI_ names, so that a tool that counts the program's calls does not see it.
#pragma once

#include <mpi.h>

namespace tapioca::comm {

/// A communicator of our own, whose errors are returned; or MPI_COMM_SELF; or none. It is given back at the end, unless
/// that is MPI_COMM_SELF, or MPI has been finalised.
class Own {
public:
    Own() = default;
    Own(Own&& other) noexcept;
    Own& operator=(Own&& other) noexcept;
    ~Own();

    /// One with the ranks of `comm`. Collective over it. `awaited` says, for the watchdog, what a rank waits for.
    static Own duplicate(MPI_Comm comm, char const* awaited);
    /// MPI_COMM_SELF. Local.
    static Own self();

    [[nodiscard]] MPI_Comm get() const { return comm_; }
    explicit operator bool() const { return comm_ != MPI_COMM_NULL; }

private:
    friend class Ranks;
    explicit Own(MPI_Comm comm);

    MPI_Comm comm_ = MPI_COMM_NULL;
};

/// MPI_COMM_SELF or MPI_COMM_WORLD, which are never freed, if that has the same ranks as `comm`; else none. Local.
MPI_Comm permanent(MPI_Comm comm);

/// The ranks of a communicator, also when it is gone.
class Ranks {
public:
    /// Local if all are in MPI_COMM_WORLD; else collective over `comm`, of which a duplicate is kept: there is none to
    /// make one from later.
    Ranks(MPI_Comm comm, char const* awaited);
    Ranks(Ranks const&) = delete;
    Ranks& operator=(Ranks const&) = delete;
    ~Ranks();

    /// A communicator of these ranks. Collective over them.
    [[nodiscard]] Own communicator(char const* awaited) const;

private:
    MPI_Comm permanent_;
    MPI_Group group_ = MPI_GROUP_NULL;
    Own kept_;
};

/// Whether this process's threads may call MPI at the same time. Local; may differ between ranks.
bool threads_may_call();

/// Bitwise or over the ranks of `comm`. Collective: one small reduction.
unsigned unite(MPI_Comm comm, unsigned bits, char const* awaited);

}  // namespace tapioca::comm
