// NonblockingAccesses: the nonblocking and split collective accesses of one open file, which the engine does beside the
// program.
//
// They have their own session, thread and plans: ranks may begin nonblocking accesses of different files in different
// orders, and a thread of the library must not meet the program's threads in the same exchange. All ranks are on one
// node, where the engine makes no MPI call; the thread must not make any.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "comm/watchdog.hpp"
#include "mpiio/hints.hpp"
#include "mpiio/pending_access.hpp"
#include "mpiio/program_file.hpp"
#include "mpiio/steps.hpp"
#include "mpiio/task_queue.hpp"

namespace tapioca::mpiio {

class NonblockingAccesses : public std::enable_shared_from_this<NonblockingAccesses> {
public:
    /// `program`: the file as the program has it open; must outlive this object. `channel`: from
    /// Channels::take_for_nonblocking(). Local.
    NonblockingAccesses(ProgramFile& program, Hints const& hints, std::shared_ptr<Channel> channel);
    /// Whether a file with these hints can have such accesses. It cannot if they change what the session is made for,
    /// or what opening a file on it takes MPI calls for. Local.
    static bool fits(Hints const& hints);
    NonblockingAccesses(NonblockingAccesses const&) = delete;
    NonblockingAccesses& operator=(NonblockingAccesses const&) = delete;
    ~NonblockingAccesses();

    /// The program has set a view, while nothing was pending. Local.
    void set_view() { file_.view = program_.view; }

    /// Begins a collective access; all ranks begin accesses in the same order. If this rank cannot take part with its
    /// data, the returned access has an obstacle: the rank has joined the others without data, and must do its own part
    /// alone. With `handle`, the program gets a request to wait for. Local: waits for nobody.
    std::shared_ptr<PendingAccess> begin(DataAccess const& request, int late, MPI_Request* handle);

    /// Returns once all accesses that were begun are settled. Collective: the other ranks have begun the same accesses.
    void finish_all();
    void finish(PendingAccess& pending);
    void poll(PendingAccess& pending);

    /// Whether the engine has opened the file for these accesses. The same on all ranks while nothing is pending.
    [[nodiscard]] bool is_open() const { return steps_.is_open(); }
    [[nodiscard]] declared::FileState& file() const { return steps_.file(); }
    [[nodiscard]] MPI_File handle() const { return program_.opened.handle; }
    /// To be called after finish_all(). Collective. Returns the error, if there was one.
    std::optional<Error> close() { return steps_.close(); }
    /// MPI ends, or the file is closed without the other ranks: nobody may wait for pending accesses any more. Local.
    void abandon();

private:
    void serve(PendingAccess& pending) noexcept;
    void open();
    void settle(PendingAccess& pending);

    ProgramFile& program_;
    Hints const& hints_;
    ProgramFile file_;  ///< the same file, with its own channel
    Steps steps_{file_};
    core::Result<settings::Settings> settings_;  ///< as of the first access
    bool has_settings_ = false;
    std::string off_;                             ///< why nothing is served; the same on all ranks; used in the queue
    double seconds_ = settings::default_timeout;  ///< time-out of a wait
    std::mutex mutex_;                            ///< protects the members below
    std::deque<std::shared_ptr<PendingAccess>> pending_;
    TaskQueue queue_;  ///< last, because its thread uses the others
};

}  // namespace tapioca::mpiio
