// Staged: a file with a log. Writes go to this rank's log without communication, and reach the file when that is
// flushed. Threads may use the log through this handle, or through others of the file, at the same time, and close it.
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
    /// Whether all ranks have opened the same file; and learns whether all ranks' views can be logged. Collective.
    [[nodiscard]] bool identify();
    /// Flushes the log and closes the file for the engine. Collective. What went wrong, if anything did.
    std::optional<Error> close();

    Attempt serve(DataAccess const& request) override;
    AccessOutcome serve_alone(DataAccess const& request) override;
    int hand_over(Direction direction, bool durable) override;
    int flush(bool durable) override;
    Attempt settle() override;
    [[nodiscard]] bool takes_writes() const override;
    [[nodiscard]] std::int64_t end() override;

    // For other handles of the file, and their threads. Local.

    /// An independent access through the handle that `through` is of, this log's own or another one, which is served or
    /// to be passed on. None if the log takes no writes any more: another thread has closed it just now, or changed its
    /// mode.
    std::optional<AccessOutcome> serve_through(ProgramFile& through, DataAccess const& request);
    /// Brings what this rank has in this log into the file.
    int hand_over_own(Direction direction, bool durable);
    /// The file has been written to past the log, just now.
    void touch();
    /// Whether this process has other handles of the file: while there are any, nothing stays in the log.
    void has_siblings(bool any) { siblings_ = any; }
    /// Tells, as MPI ends, that the file was never closed.
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
    int flush_before(DataAccess const& request);
    int failed(core::Failure const& failure);
    void tell_once(std::string const& line);

    ProgramFile& program_;  ///< while its has_log is true and mutex_ is held, there is a log
    Steps& steps_;
    mutable std::mutex mutex_;             ///< held while the log is used, and while it is closed
    std::atomic<bool> siblings_ = false;   ///< this process has another handle of the file
    std::atomic<bool> views_fit_ = false;  ///< all ranks' views can be logged
    bool overdue_ = false;                 ///< a flush has failed, on all ranks
    bool told_ = false;                    ///< that a flush failed
    ShapeCache recent_;
};

}  // namespace tapioca::mpiio
