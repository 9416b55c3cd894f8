// Staged: a file with a log. Writes go to this rank's log without communication, and reach the file when the log is
// flushed. Several threads may use the log at the same time, through this or other handles of the file, and may close
// it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "declared/file_state.hpp"
#include "mpiio/prepared_access.hpp"
#include "mpiio/service.hpp"
#include "mpiio/shape_cache.hpp"

namespace tapioca::mpiio {

struct ProgramFile;
class Steps;

class Staged final : public Service {
public:
    Staged(ProgramFile& program, Steps& steps) : program_(program), steps_(steps) {}

    /// The engine has opened the file with a log. Local.
    void open();
    /// Returns whether all ranks have opened the same file, and finds out whether all ranks' views can be logged.
    /// Collective.
    [[nodiscard]] bool identify();
    /// Flushes the log and closes the file for the engine. Collective. Returns the error, if there was one.
    std::optional<Error> close();

    Attempt serve(DataAccess const& request) override;
    AccessOutcome serve_alone(DataAccess const& request) override;
    int hand_over(Direction direction, bool durable) override;
    int flush(bool durable) override;
    Attempt settle() override;
    [[nodiscard]] bool takes_writes() const override;
    [[nodiscard]] std::int64_t end() override;

    // For other handles of the file and their threads. Local.

    /// An independent access through the handle of `through`, which is this log's own or another one. Returns the
    /// outcome: served, or to be passed on. Returns none if the log takes no writes any more, because another thread
    /// has just closed it or changed its mode.
    std::optional<AccessOutcome> serve_through(ProgramFile& through, DataAccess const& request);
    /// Writes this rank's contents of this log to the file.
    int hand_over_own(Direction direction, bool durable);
    /// The file has just been written to past the log.
    void touch();
    /// Whether this process has other handles of the file. While it has, everything is also written to the file at
    /// once.
    void has_siblings(bool any) { siblings_ = any; }
    /// Reports, when MPI ends, that the file was never closed.
    void tell_unclosed();

private:
    [[nodiscard]] declared::FileState& file() const;
    [[nodiscard]] flush::Staging& staging() const;
    AccessOutcome write(ProgramFile& through, DataAccess const& request, bool collective);
    AccessOutcome write_past_the_log(DataAccess const& request, PreparedAccess const& part);
    int enter(pattern::Access const& access);
    AccessOutcome read_over(ProgramFile& through, DataAccess const& request);
    core::Result<std::int64_t> read_pieces(ShapeCache::Match const& found, PreparedAccess const& part);
    [[nodiscard]] bool concerns(PreparedAccess const& part);
    [[nodiscard]] std::optional<ShapeCache::Match> variable_of(PreparedAccess& part);
    std::optional<AccessOutcome> read_from_logs(DataAccess const& request);
    int failed(core::Failure const& failure);
    [[nodiscard]] int outcome_alone(core::Status const& status);
    void tell_once(std::string const& line);

    ProgramFile& program_;  ///< there is a log while its has_log is true and mutex_ is held
    Steps& steps_;
    mutable std::mutex mutex_;             ///< held while the log is used, and while it is closed
    std::atomic<bool> siblings_ = false;   ///< this process has another handle of the file
    std::atomic<bool> views_fit_ = false;  ///< all ranks' views can be logged
    bool overdue_ = false;                 ///< a flush has failed, on all ranks
    bool told_ = false;                    ///< a failed flush was reported
    ShapeCache shapes_;
};

}  // namespace tapioca::mpiio
