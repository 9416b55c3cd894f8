// Handle: what this library knows about one of the program's open files. The MPI handle itself remains the MPI
// library's.
//
// One of two services handles a call: Plain or, while the file has a log, Staged. What they do not serve is passed on
// to the MPI library or, if the file is a set of subfiles, done by SetAccess.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>

#include "mpiio/channels.hpp"
#include "mpiio/data_access.hpp"
#include "mpiio/hints.hpp"
#include "mpiio/nonblocking.hpp"
#include "mpiio/other_logs.hpp"
#include "mpiio/plain.hpp"
#include "mpiio/program_file.hpp"
#include "mpiio/staged.hpp"
#include "mpiio/steps.hpp"

namespace tapioca::mpiio {

class Handle {
public:
    /// To be called after the MPI library has opened the file, with MPI_File_open's arguments. Collective.
    Handle(MPI_File file, MPI_Comm comm, std::string const& name, int amode, MPI_Info info);
    Handle(Handle const&) = delete;
    Handle& operator=(Handle const&) = delete;
    /// Completes opening for a set of subfiles, and if the environment asks for a stage, so that writes need no
    /// communication. Returns an MPI error class if the file cannot be used; then it must be closed. Collective.
    int start(MPI_Comm comm);

    // The program's calls. Return values are MPI error classes. Service describes what these functions do.

    AccessOutcome serve(DataAccess const& request);
    AccessOutcome serve_alone(DataAccess const& request);
    /// Begins a nonblocking or split collective access, if it can be done beside the program; otherwise returns none,
    /// on all ranks. Local. See NonblockingAccesses::begin().
    std::shared_ptr<PendingAccess> begin(DataAccess const& request, MPI_Request* handle);
    /// Why begin() returns none.
    [[nodiscard]] std::string why_not_nonblocking() const;
    /// Returns when all accesses that were begun this way are complete. Collective.
    void finish_pending();
    // To be called when MPI ends. Local.

    void abandon_pending();
    /// Reports that the file was never closed, if its log stays or its set of subfiles is not complete.
    void tell_unclosed();
    /// An access at the shared pointer, in the order of the ranks: where this rank's part begins, and where the pointer
    /// is after all parts, in etypes. None, on all ranks, if it is to be passed on. Collective.
    struct OrderedPlace {
        MPI_Offset begin;
        MPI_Offset after;
    };
    std::optional<OrderedPlace> place_in_order(DataAccess const& request);
    /// Where a set of subfiles ends, in etypes, as rank 0 sees it: the file may be growing. Returns an MPI error class.
    /// Collective.
    int end_for_all(MPI_Offset& etypes);
    int hand_over(Direction direction, bool durable = false) { return service().hand_over(direction, durable); }
    int flush(bool durable);
    int settle();
    [[nodiscard]] bool takes_writes() const { return service().takes_writes(); }
    [[nodiscard]] std::int64_t log_end() { return service().end(); }
    /// What serve() did, or begin() began, at the start of a split call; kept for its end.
    std::optional<AccessOutcome> split;
    std::shared_ptr<PendingAccess> pending_split;
    [[nodiscard]] bool is_split() const { return split || pending_split; }
    /// The MPI library has just accessed the file. Local.
    void passed_by(Direction direction) const { mpiio::passed_by(program_.opened, direction); }
    /// The MPI library has done the blocking collective access that serve() did not serve. Local.
    void was_left() { steps_.was_left(); }
    /// The program has set a view. Local.
    void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);
    /// The program has set hints. Local.
    void set_info(MPI_Info info);
    void set_atomicity(bool atomic) { program_.atomic = atomic; }
    /// Adds the hints in force here to those of the MPI library.
    void add_hints(MPI_Info info) const;
    /// To be called before the MPI library closes the file. Collective.
    int close();

    /// For a set of subfiles, on which nothing is passed on; otherwise null. The same on all ranks.
    [[nodiscard]] SetAccess* set() const { return program_.set.get(); }
    [[nodiscard]] OpenArguments const& opened() const { return program_.opened; }
    [[nodiscard]] Calls& calls() { return program_.calls; }
    /// Whether there is a log, even if it takes no writes now. The same on all ranks; any thread.
    [[nodiscard]] bool has_log() const { return program_.has_log; }
    [[nodiscard]] Staged& log() { return staged_; }

private:
    [[nodiscard]] Service& service() { return has_log() ? static_cast<Service&>(staged_) : plain_; }
    [[nodiscard]] Service const& service() const { return has_log() ? static_cast<Service const&>(staged_) : plain_; }
    [[nodiscard]] bool has_log_beside() const;
    void watch(char const* call);
    [[nodiscard]] bool agree_to_serve(bool worth = true);
    [[nodiscard]] bool is_worth_it(DataAccess const& request);
    [[nodiscard]] bool wants_set() const;
    int open_set(MPI_Comm comm);
    int ready_set();
    void start_stage();
    void open_engine();
    void close_engine();
    void give_up(std::string const& why);
    void close_nonblocking();

    std::shared_ptr<comm::Watchdog> watchdog_;  ///< for waits before the engine has opened the file
    Hints hints_;
    std::shared_ptr<Channels> channels_;
    ProgramFile program_;
    std::string refusal_;     ///< why this rank wants everything passed on
    bool agreed_ = false;     ///< the ranks have agreed on that
    bool wished_ = false;     ///< some rank's hints ask for a stage
    bool beside_ = false;     ///< some rank has staged the file through another handle
    bool in_use_ = false;     ///< some rank has a file that is to become a set open through another handle
    int late_ = MPI_SUCCESS;  ///< an error that no other call could report, for close()

    // Both services live as long as the handle: while one thread reopens the file, others may be using either of them.
    Steps steps_{program_};
    Plain plain_{program_, steps_};
    Staged staged_{program_, steps_};
    std::shared_ptr<NonblockingAccesses>
        nonblocking_;  ///< null if nothing can be done beside the program; the same on all ranks
};

}  // namespace tapioca::mpiio
