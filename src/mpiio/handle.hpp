// Handle: what this library knows of one of the program's open files. The MPI handle itself stays the MPI library's.
//
// What a call does is up to one of two services: Plain, or, while the file has a log, Staged.
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
    /// After the MPI library has opened it. Of MPI_File_open's arguments. Collective.
    Handle(MPI_File file, MPI_Comm comm, std::string const& name, int amode, MPI_Info info);
    Handle(Handle const&) = delete;
    Handle& operator=(Handle const&) = delete;
    /// What is left of opening, if the environment asks for a stage: then writes need no communication. Collective.
    void start();

    // The program's calls. Numbers are MPI error classes. Service says what these do.

    AccessOutcome serve(DataAccess const& request);
    AccessOutcome serve_alone(DataAccess const& request);
    /// A nonblocking or split collective access, if it can be done beside the program: else none, on all ranks. Local.
    /// NonblockingAccesses::begin() tells the rest.
    std::shared_ptr<PendingAccess> begin(DataAccess const& request, MPI_Request* handle);
    /// Why begin() has none.
    [[nodiscard]] std::string why_not_aside() const;
    /// Returns when all that was begun so is complete. Collective.
    void finish_pending();
    /// MPI ends. Local.
    void abandon_pending();
    /// An access at the shared pointer, in the order of the ranks: where this rank's part begins, and where the pointer
    /// stands after all of them, in etypes. None, on all ranks, if it is to be passed on. Collective.
    struct OrderedPlace {
        MPI_Offset begin;
        MPI_Offset after;
    };
    std::optional<OrderedPlace> place_in_order(DataAccess const& request);
    int hand_over(Direction direction, bool durable = false) { return service().hand_over(direction, durable); }
    int flush(bool durable);
    int settle();
    [[nodiscard]] bool takes_writes() const { return service().takes_writes(); }
    [[nodiscard]] std::int64_t log_end() { return service().end(); }
    /// What serve() did at the start of a split call, or begin() has begun then, for its end.
    std::optional<AccessOutcome> split;
    std::shared_ptr<PendingAccess> pending_split;
    [[nodiscard]] bool is_split() const { return split || pending_split; }
    /// The MPI library has done something with the file, just now. Local.
    void passed_by(Direction direction) const { mpiio::passed_by(program_.opened, direction); }
    /// The MPI library has done the blocking collective access that serve() has not served. Local.
    void was_left() { steps_.was_left(); }
    /// The program has set a view. Local.
    void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);
    /// The program has set hints. Local.
    void set_info(MPI_Info info);
    void set_atomicity(bool atomic) { program_.atomic = atomic; }
    /// Adds what is in force here to what the MPI library says.
    void add_hints(MPI_Info info) const;
    /// Before the MPI library closes it. Collective.
    int close();

    [[nodiscard]] Opened const& opened() const { return program_.opened; }
    [[nodiscard]] Calls& calls() { return program_.calls; }
    /// Whether there is a log, used now or not. The same on all ranks; any thread.
    [[nodiscard]] bool has_log() const { return program_.has_log; }
    [[nodiscard]] Staged& log() { return staged_; }

private:
    [[nodiscard]] Service& service() { return has_log() ? static_cast<Service&>(staged_) : plain_; }
    [[nodiscard]] Service const& service() const { return has_log() ? static_cast<Service const&>(staged_) : plain_; }
    [[nodiscard]] bool has_log_beside() const;
    void watch(char const* call);
    [[nodiscard]] bool agree_to_serve(bool worth = true);
    [[nodiscard]] bool is_worth_it(DataAccess const& request);
    void open_engine();
    void close_engine();
    void give_up(std::string const& why);
    void close_aside();

    std::shared_ptr<comm::Watchdog> watchdog_;  ///< for what comes before the engine opens the file
    Hints hints_;
    std::shared_ptr<Channels> channels_;
    ProgramFile program_;
    std::string refusal_;     ///< why this rank wants everything passed on
    bool agreed_ = false;     ///< the ranks have told each other of that
    bool wished_ = false;     ///< some rank's hints ask for a stage
    int late_ = MPI_SUCCESS;  ///< what went wrong where no call could say so, for close()

    // Both services live as long as the handle does: while one thread opens the file anew, others may be in either.
    Steps steps_{program_};
    Plain plain_{program_, steps_};
    Staged staged_{program_, steps_};
    std::shared_ptr<NonblockingAccesses>
        aside_;  ///< null where nothing can be done beside the program; the same on all ranks
};

}  // namespace tapioca::mpiio
