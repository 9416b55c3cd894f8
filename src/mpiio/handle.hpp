// OpenFile: what this library knows of one of the program's open files. The handle itself stays the MPI library's.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tapioca/tapioca.hpp>

#include "core/result.hpp"
#include "mpiio/calls.hpp"
#include "mpiio/channels.hpp"
#include "mpiio/recent.hpp"
#include "pattern/typemap.hpp"

namespace tapioca::mpiio {

enum class Direction { write, read };

/// One data access of the program.
struct Request {
    Call call;
    Direction direction;
    std::optional<MPI_Offset> offset;  ///< in etypes; at the individual pointer if none is given
    void* buffer;                      ///< not written to by a write
    MPI_Count count;
    MPI_Datatype type;
};

/// What became of it: not served, and then to be passed on, if it is collective on all ranks; or bytes moved; or an MPI
/// error class.
struct Outcome {
    bool served = false;
    int error = MPI_SUCCESS;
    std::int64_t bytes = 0;
    bool told = false;       ///< the error is the MPI library's: its handler has been called
    int late = MPI_SUCCESS;  ///< where it is to be passed on: an error of this rank's to be told after that
};

/// What makes two handles those of one file, whatever its names.
struct Which {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(Which const&) const = default;
};
/// Of the file that the MPI library opens under this name; none if it is not there. Local.
std::optional<Which> which(std::string const& name);

class OpenFile {
public:
    /// After the MPI library has opened it. Of MPI_File_open's arguments.
    OpenFile(MPI_File handle, MPI_Comm comm, std::string const& name, int amode, MPI_Info info);
    OpenFile(OpenFile const&) = delete;
    OpenFile& operator=(OpenFile const&) = delete;
    ~OpenFile();
    /// What is left of opening, if the environment asks for a stage: then writes need no communication. Collective.
    void start();

    /// Runs a collective call on the engine, if all ranks can. Collective; writes of a staged file are local.
    Outcome serve(Request const& request);
    /// What serve() does at the start of a split call; the outcome is kept for its end.
    std::optional<Outcome> split;

    /// Whether it was opened by one rank.
    [[nodiscard]] bool is_alone() const { return alone_; }
    /// A call that is never served.
    void passed(Call call) { calls_.passed(call); }
    /// The program has set a view. Local.
    void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);
    /// The program has set hints, which may differ from rank to rank. Local.
    void set_info(MPI_Info info);
    void set_atomicity(bool atomic) { atomic_ = atomic; }
    /// Adds what is in force here to what the MPI library says.
    void add_hints(MPI_Info info) const;
    /// Before the MPI library closes it. Collective. An MPI error class.
    int close();

    // Staged files (staged.cpp): what is written goes to a log, and reaches the file when that is flushed. All of these
    // return an MPI error class where they return a number, and do nothing for other files.

    /// Whether writes go to the log now. The same on all ranks.
    [[nodiscard]] bool is_staged() const;
    /// Whether there is a log, used now or not. The same on all ranks.
    [[nodiscard]] bool has_stage() const { return has_stage_; }
    /// An independent access of a staged file, or through another handle of it, which is served if it can be. Local.
    Outcome serve_alone(Request const& request);
    /// The MPI library, or the engine, is about to do something with the file past this process's logs of it, this
    /// handle's or another's: brings what is in them into the file. Local.
    int hand_over(Direction direction, bool durable = false);
    /// The MPI library, or the engine, has done so, just now: the logs of the file say until when. Local.
    void passed_by(Direction direction);
    /// A collective call that the MPI library does is about to begin: brings everything into the file. Collective.
    int flush(bool durable);
    /// View or hints may have changed, here or elsewhere. Collective.
    int settle();
    /// Where the furthest byte that this rank has written ends. Local.
    [[nodiscard]] std::int64_t staged_end();
    /// How many other handles of the file this process has; while there are any, nothing stays in the log. Any thread.
    void has_siblings(bool any) { siblings_ = any; }
    /// The file that the MPI library has opened, as this rank found it then.
    [[nodiscard]] std::optional<Which> const& which() const { return which_; }
    /// Tells, as MPI ends, that a file with a log was never closed.
    void tell_unclosed();

private:
    struct Part;  ///< this rank's part in a request
    struct Decision;

    [[nodiscard]] api::FileState& logged() const;
    [[nodiscard]] api::Staging& staging() const;
    void note_stage();
    int hand_over_own(Direction direction, bool durable);
    static constexpr int never_staged = MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_SEQUENTIAL;
    [[nodiscard]] bool may_stage() const;
    void tell_unstaged() const;
    void go_past_marker(std::string const& what) const;
    [[nodiscard]] bool fits_stage() const;
    [[nodiscard]] bool identify();
    [[nodiscard]] File open_file();
    [[nodiscard]] std::optional<Recent::Found> variable_of(Part& part);
    Outcome serve_together(Request const& request);
    [[nodiscard]] std::shared_ptr<OpenFile> owner_of_log();
    Outcome write_staged(Request const& request, bool collective, OpenFile& owner);
    Outcome write_past_the_log(Request const& request, Part const& part);
    int enter(pattern::Access const& access);
    Outcome read_over(Request const& request, OpenFile& owner);
    core::Result<std::int64_t> read_pieces(Recent::Found const& found, Part const& part);
    [[nodiscard]] bool concerns_log(Part const& part);
    int flush_before(Request const& request);
    void move_pointer(Request const& request, Part const& part);
    int failed(core::Failure const& failure);
    void tell(std::string const& text);

    void watch(char const* call);
    [[nodiscard]] std::string obstacle_of(Direction direction) const;
    [[nodiscard]] Part look_at(Request const& request) const;
    [[nodiscard]] Part look_closely(Request const& request) const;
    [[nodiscard]] bool agree_to_serve();
    [[nodiscard]] bool has_hint(char const* name) const;
    [[nodiscard]] bool open_engine();
    void close_engine();
    void decode_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation);
    [[nodiscard]] std::string describe_calls(std::vector<std::uint64_t> const& counts) const;
    [[nodiscard]] std::int64_t identity() const;
    Decision decide(Part const& part);
    std::size_t declare(Part const& part);
    Outcome run(Request const& request, Part& part, Decision const& decision);
    void give_up(std::string const& why);
    void account();

    std::shared_ptr<comm::Watchdog> watchdog_;  ///< for what comes before the engine opens the file
    MPI_File handle_;
    std::string path_;
    int amode_;
    MPI_Info hints_ = MPI_INFO_NULL;
    std::optional<Which> which_;
    int rank_ = 0, ranks_ = 1;
    bool first_ = false;   ///< this is rank 0
    bool alone_ = false;   ///< and the only one
    bool wished_ = false;  ///< some rank's hints ask for a stage
    std::atomic<bool> atomic_ = false;
    std::string refusal_;  ///< why this rank wants everything passed on
    bool agreed_ = false;  ///< the ranks have told each other of that
    bool reopen_ = false;  ///< this rank has new hints
    std::string off_;      ///< why everything is passed on, for good; the same on all ranks

    std::string bad_view_;  ///< why collective calls are passed on with this view
    pattern::View view_;
    std::int64_t etype_bytes_ = 1;

    std::shared_ptr<Channels> channels_;
    std::shared_ptr<Channel> channel_;
    std::optional<File> file_;  ///< from the first collective access on
    bool identified_ = false;   ///< and all ranks have opened the same file
    std::string conditions_;    ///< what a plan depends on besides the data: file system and settings
    Calls calls_;

    // Threads may use this handle, or others of the file that share its log, at the same time, and close it.
    mutable std::mutex log_;               ///< held while the log is used, and while it is closed
    std::atomic<bool> has_stage_ = false;  ///< while it is true and log_ is held, there is one
    std::atomic<bool> siblings_ = false;   ///< this process has another handle of the file
    std::atomic<bool> views_fit_ = false;  ///< all ranks' views can be staged
    bool overdue_ = false;                 ///< a flush has failed, on all ranks
    Recent recent_;
    int late_ = MPI_SUCCESS;  ///< what went wrong where no call could say so, for close()
    bool told_ = false;       ///< that a flush failed
};

/// The program's open files, found by handle.
std::shared_ptr<OpenFile> find(MPI_File handle);
void enter(MPI_File handle, std::shared_ptr<OpenFile> file);
std::shared_ptr<OpenFile> remove(MPI_File handle);
/// The handles, other than `but`, through which this process has the file open with a stage. Cheap if there are no
/// staged files at all.
std::vector<std::shared_ptr<OpenFile>> staged_handles_of(Which const& file, OpenFile const* but);
/// Whether this process has staged files.
bool any_staged();

/// Whether the environment, which is the same for all ranks, turns everything off; a bad setting does, and is told
/// once.
bool is_off();
/// Tells, on rank 0 of the job, the first thing that is wrong with the settings, once.
void warn(std::string const& text);

/// The error class for an Error, or for what one is made of.
int class_of(Errc code, int sys_errno);
int class_of(Error const& error);

}  // namespace tapioca::mpiio
