// Window: memory of a rank that others put into and get from, in epochs: of a target and those who put into it, or of
// all ranks together.
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
    /// Waits for nobody: a window that was not given back by free() is given back when MPI is finalised, and its memory
    /// must stay until then.
    ~Window() = default;

    /// Over `bytes` at `memory`. Collective over `comm`; the same answer on all ranks. Some MPIs refuse windows on
    /// some networks.
    static core::Result<Window> create(MPI_Comm comm, std::byte* memory, std::uint64_t bytes);
    /// Collective.
    void free();
    /// It can never be given back: this rank may have left it in the middle of an epoch. Local.
    void tear();

    [[nodiscard]] bool open() const { return window_ != MPI_WIN_NULL; }

    /// The target lets `origins` put into its memory, each once. Local.
    void post(std::vector<int> const& origins);
    /// True when all origins have completed: what they put is there. Local.
    bool test();
    /// An origin puts into the memory of `targets`: waits for the post() of each.
    void start(std::vector<int> const& targets);
    /// What was put has left.
    void complete();
    /// False for MPICH, which counts posts and does not look whose they are: all targets that post to a rank at a time
    /// must then be named in one start().
    [[nodiscard]] bool tells_posts_apart() const { return tells_posts_apart_; }

    /// Ends one epoch of all ranks and begins the next: what was put and got before is there. Collective. The `first`
    /// of a row only begins one, the `last` only ends one.
    enum class RowPosition { first, between, last };
    void fence(RowPosition row);

    /// Local, within an epoch; `bytes` must stay as they are until its end.
    void put(std::span<std::byte const> bytes, int to, std::uint64_t at);
    void get(std::span<std::byte> bytes, int from, std::uint64_t at);

private:
    MPI_Win window_ = MPI_WIN_NULL;
    MPI_Comm comm_ = MPI_COMM_NULL;
    bool tells_posts_apart_ = false;
};

}  // namespace tapioca::comm
