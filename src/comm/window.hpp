// Window: memory of a rank that other ranks put into and get from, in epochs: either between a target and the ranks
// that put into it, or between all ranks together.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.hpp"

namespace tapioca::comm {

class Window {
public:
    Window() = default;
    Window(Window&& other) noexcept;
    Window& operator=(Window&& other) noexcept;
    /// Does not wait: a window that was not freed by free() is freed when MPI is finalised, and its memory must stay
    /// valid until then.
    ~Window() = default;

    /// Makes a window over `bytes` at `memory`. Collective over `comm`; the same result on all ranks. Some MPIs refuse
    /// windows on some networks.
    static core::Result<Window> create(MPI_Comm comm, std::byte* memory, std::uint64_t bytes);
    /// Collective.
    void free();
    /// The window can never be freed, because this rank may have left it in the middle of an epoch. Local.
    void tear();

    [[nodiscard]] bool open() const { return window_ != MPI_WIN_NULL; }

    /// The target lets `origins` put into its memory, each once. Local.
    void post(std::vector<int> const& origins);
    /// True when all origins have completed, so what they put is there. Local.
    bool test();
    /// An origin is about to put into the memory of `targets`: waits for the post() of each.
    void start(std::vector<int> const& targets);
    /// Ends the origin's epoch: what it put has left.
    void complete();
    /// False for MPICH, which counts posts without checking whose they are. Then all targets that post to a rank at the
    /// same time must be named in one start().
    [[nodiscard]] bool tells_posts_apart() const { return tells_posts_apart_; }

    /// Ends one epoch of all ranks and begins the next: what was put and got before is there. Collective. The `first`
    /// of a sequence only begins an epoch, the `last` only ends one.
    enum class RowPosition { first, between, last };
    void fence(RowPosition row);

    /// Local, within an epoch; `bytes` must not change until its end.
    void put(std::span<std::byte const> bytes, int to, std::uint64_t at);
    void get(std::span<std::byte> bytes, int from, std::uint64_t at);

private:
    MPI_Win window_ = MPI_WIN_NULL;
    MPI_Comm comm_ = MPI_COMM_NULL;
    bool tells_posts_apart_ = false;
};

}  // namespace tapioca::comm
