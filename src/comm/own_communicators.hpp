// Communicators of the library for the ranks of a communicator that the program may free at any time.
//
// These functions run inside MPI_File_* calls of programs that do not know this library. They use MPI's PMPI_ names, so
// that a tool that counts the program's calls does not see them.
#pragma once

#include <mpi.h>

namespace tapioca::comm {

/// A communicator of the library, whose errors are returned; or MPI_COMM_SELF; or none. It is freed at the end, unless
/// it is MPI_COMM_SELF or MPI has been finalised.
class Own {
public:
    Own() = default;
    Own(Own&& other) noexcept;
    Own& operator=(Own&& other) noexcept;
    ~Own();

    /// A duplicate of `comm`. Collective over it. `awaited` tells the watchdog what a rank waits for.
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

/// MPI_COMM_SELF or MPI_COMM_WORLD, which are never freed, if one of them has the same ranks as `comm`; otherwise none.
/// Local.
MPI_Comm permanent(MPI_Comm comm);

/// The ranks of a communicator; they remain known after it was freed.
class Ranks {
public:
    /// Local if all ranks are in MPI_COMM_WORLD. Otherwise collective over `comm`, and a duplicate is kept, because
    /// none could be made later.
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
