// Handle: what this library knows of one of the program's open files. The MPI handle itself stays the MPI library's.
//
// What a call does is up to one of two services: Plain, or, while the file has a log, Staged.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "mpiio/calls.hpp"
#include "mpiio/channels.hpp"
#include "mpiio/hints.hpp"
#include "mpiio/opened.hpp"
#include "mpiio/part.hpp"
#include "mpiio/plain.hpp"
#include "mpiio/request.hpp"
#include "mpiio/staged.hpp"
#include "mpiio/steps.hpp"
#include "mpiio/view.hpp"

namespace tapioca::mpiio {

class Handle {
public:
    /// After the MPI library has opened it. Of MPI_File_open's arguments. Collective.
    Handle(MPI_File file, MPI_Comm comm, std::string const& name, int amode, MPI_Info info);
    Handle(Handle const&) = delete;
    Handle& operator=(Handle const&) = delete;
    ~Handle() = default;
    /// What is left of opening, if the environment asks for a stage: then writes need no communication. Collective.
    void start();

    // The program's calls. Numbers are MPI error classes. Service says what these do.

    Outcome serve(Request const& request);
    Outcome serve_alone(Request const& request);
    int hand_over(Direction direction, bool durable = false) { return service().hand_over(direction, durable); }
    int flush(bool durable);
    int settle();
    [[nodiscard]] bool takes_writes() const { return service().takes_writes(); }
    [[nodiscard]] std::int64_t log_end() { return service().end(); }
    /// What serve() did at the start of a split call, for its end.
    std::optional<Outcome> split;
    /// The MPI library, or the engine, has done something with the file past this process's logs of it, just now.
    /// Local.
    void passed_by(Direction direction) const;
    /// The program has set a view. Local.
    void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);
    /// The program has set hints. Local.
    void set_info(MPI_Info info);
    void set_atomicity(bool atomic) { atomic_ = atomic; }
    /// Adds what is in force here to what the MPI library says.
    void add_hints(MPI_Info info) const;
    /// Before the MPI library closes it. Collective.
    int close();

    // For the services.

    [[nodiscard]] Opened const& opened() const { return opened_; }
    [[nodiscard]] View const& view() const { return view_; }
    [[nodiscard]] bool is_atomic() const { return atomic_; }
    [[nodiscard]] Calls& calls() { return calls_; }
    [[nodiscard]] Channel& channel() { return *channel_; }
    /// Whether there is a log, used now or not. The same on all ranks; any thread.
    [[nodiscard]] bool has_log() const { return staged_.is_open(); }
    [[nodiscard]] Staged& log() { return staged_; }
    /// This rank's part in a request. Local.
    [[nodiscard]] Part look_at(Request const& request) const;
    /// A request at the individual pointer has been served. Local.
    void move_pointer(Request const& request, Part const& part) const;
    /// This rank may wait for others in `call`, of MPI_File_... Local.
    void watch(char const* call);
    /// This rank's hints are not those with which the engine opened the file.
    [[nodiscard]] bool has_new_hints() const { return has_new_hints_; }
    /// Why everything is passed on, for good; the same on all ranks.
    [[nodiscard]] std::string const& off() const { return off_; }
    /// Whether the engine has the file open, which it opens if it should. Collective.
    [[nodiscard]] bool is_ready() { return agree_to_serve() && (steps_.is_open() || open_engine()); }
    /// Closes the file for the engine; what went wrong is told by close(). Collective.
    void close_engine();
    /// Closes it for the engine, which opens it anew. Collective.
    int reopen_engine();
    /// The file is left to the MPI library from now on. Collective.
    void give_up(std::string const& why);

private:
    [[nodiscard]] Service& service() { return has_log() ? static_cast<Service&>(staged_) : plain_; }
    [[nodiscard]] Service const& service() const { return has_log() ? static_cast<Service const&>(staged_) : plain_; }
    [[nodiscard]] std::string obstacle_of(Direction direction) const;
    [[nodiscard]] bool agree_to_serve();
    [[nodiscard]] bool open_engine();

    std::shared_ptr<comm::Watchdog> watchdog_;  ///< for what comes before the engine opens the file
    Opened opened_;
    Hints hints_;
    View view_;
    std::atomic<bool> atomic_ = false;
    Calls calls_;
    std::shared_ptr<Channels> channels_;
    std::shared_ptr<Channel> channel_;
    std::string refusal_;         ///< why this rank wants everything passed on
    bool agreed_ = false;         ///< the ranks have told each other of that
    bool wished_ = false;         ///< some rank's hints ask for a stage
    bool has_new_hints_ = false;  ///< of this rank
    std::string off_;
    int late_ = MPI_SUCCESS;  ///< what went wrong where no call could say so, for close()

    // Both services live as long as the handle does: while one thread opens the file anew, others may be in either.
    Steps steps_{*this};
    Plain plain_{*this, steps_};
    Staged staged_{*this, steps_};
};

}  // namespace tapioca::mpiio
