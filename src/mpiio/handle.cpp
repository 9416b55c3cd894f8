#include "mpiio/handle.hpp"

#include <array>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "comm/team.hpp"
#include "core/units.hpp"
#include "mpiio/account.hpp"
#include "mpiio/diagnostics.hpp"
#include "mpiio/environment.hpp"
#include "mpiio/error_class.hpp"
#include "mpiio/handle_table.hpp"
#include "mpiio/mpi_functions.hpp"
#include "mpiio/open_for_engine.hpp"
#include "report/report_file.hpp"
#include "stage/find_logs.hpp"
#include "stage/marker.hpp"

namespace tapioca::mpiio {

namespace {

constexpr std::uint64_t leave_by_default = core::MiB;

}  // namespace

Handle::Handle(MPI_File file, MPI_Comm comm, std::string const& name, int amode, MPI_Info info)
    : hints_(info), program_(OpenArguments(file, comm, name, amode))
{
    auto const settings = environment();
    if (settings && settings->options.report) (void)report::report_place(*settings->options.report);
    refusal_ = hints_.refuse() ? "the hint tapioca=false" : opened().refusal;
    watch("open");
    channels_ = Channels::of(comm);
    channels_->keep(watchdog_);
    program_.channel = channels_->take(comm);
    bool const refuse = !refusal_.empty() || has_log_beside() || (settings && settings->options.stage) ||
                        !NonblockingAccesses::fits(hints_);
    if (auto channel = channels_->take_for_nonblocking(comm, refuse)) {
        nonblocking_ = std::make_shared<NonblockingAccesses>(program_, hints_, std::move(channel));
        await_finalize();
    }
}

/// Whether this process has staged the file through another handle. Local.
bool Handle::has_log_beside() const
{
    return any_logs() && opened().which && !logs_of(*opened().which, &opened()).empty();
}

/// This rank may wait for others in `call`, the end of a name MPI_File_.... Local.
void Handle::watch(char const* call)
{
    if (steps_.is_open()) return steps_.file().watch(call);
    auto const settings = environment();
    auto const seconds = settings ? settings->options.timeout : std::nullopt;
    watchdog_ =
        comm::watch({seconds.value_or(settings::default_timeout), opened().rank, opened().ranks, call, &opened().path});
}

/// Whether the settings ask for subfiles or a target, and the file is new. Local. What one rank alone has open stays
/// one file.
bool Handle::wants_set() const
{
    auto const settings = hints_.settings();
    if (!settings) return false;
    auto const& options = settings->options;
    bool const wished = options.target || options.subfile.value_or("off") != "off";
    bool const is_new = (opened().amode & MPI_MODE_CREATE) != 0 && !opened().read_only() && opened().bytes == 0;
    return wished && is_new && !opened().alone() && refusal_.empty();
}

/// If the file is a set of subfiles, or becomes one now: opens it for the engine, and everything on it is served from
/// now on. Returns an MPI error class if that is not possible. Collective over `comm`: rank 0 says what the file is,
/// since ranks that found different things would wait for each other.
int Handle::open_set(MPI_Comm comm)
{
    auto const had_set = [&](std::string const& path) {
        auto const directory = subfile::beside(path, subfile::directory_name(path));
        if (::access(directory.c_str(), F_OK) != 0) return false;  // most files are not opened once more
        core::Descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        return file && !subfile::check_remains(path, file.get(), static_cast<std::uint64_t>(opened().bytes));
    };
    enum : int { plain, set_now, set_wanted };
    auto const stub = opened().bytes == static_cast<std::int64_t>(subfile::stub_bytes)
                          ? subfile::find_stub(opened().path)
                          : std::optional<subfile::Stub>();
    // Perhaps one with a damaged stub, which all ranks find out below.
    bool const found_set = !stub || *stub || (opened().first() && opened().bytes > 0 && had_set(opened().path));
    Within const within;
    int kind = found_set ? set_now : wants_set() ? set_wanted : plain;
    if (!opened().alone()) kind = static_cast<int>(comm::tell(comm, kind));
    if (kind == plain) return MPI_SUCCESS;
    bool const is_set = kind == set_now;
    if (!opened().alone()) (void)hand_over(Direction::read);            // so that its ranks find what they have staged
    if ((!agree_to_serve() || in_use_) && !is_set) return MPI_SUCCESS;  // other handles know only one file
    program_.off.clear();                                               // nobody else has the data
    if (opened().amode & MPI_MODE_SEQUENTIAL) {
        if (opened().first())
            tell(fmt::format("tapioca: {}: consists of subfiles: MPI_MODE_SEQUENTIAL is not supported", opened().path));
        return MPI_ERR_UNSUPPORTED_OPERATION;
    }
    // Rank 0's view of it counts.
    bool const has_log = beside_ || (opened().first() && stage::is_staged_now(opened().path));
    try {
        auto const file = open_file(
            opened(), hints_, *program_.channel,
            {.staged = !beside_ && may_stage(opened(), wished_), .past_marker = has_log, .may_become_set = !is_set});
        steps_.open(file);
        if (file->set) program_.set = std::make_unique<SetAccess>(program_, file);
    } catch (Error const& error) {
        if (opened().first()) tell(error.what());
        return class_of(error);
    }
    if (!set()) {  // rank 0's hints, which count, do not ask for it
        close_engine();
        return std::exchange(late_, MPI_SUCCESS);
    }
    nonblocking_.reset();
    await_finalize();
    return ready_set();
}

/// Prepares the log and the file pointers of a set. Collective.
int Handle::ready_set()
{
    if (steps_.file().staging) {
        staged_.open();
        if (!staged_.identify()) return MPI_ERR_NO_SUCH_FILE;
    }
    auto* const target = steps_.file().target();  // opened here, before several threads use it
    auto const size = target ? target->size() : tl::unexpected(steps_.file().target_status().error());
    auto const status = size ? core::Status() : tl::unexpected(size.error());
    if (auto const agreed = steps_.file().session->agreement().agree(status); !agreed) {
        if (opened().first()) tell(fmt::format("tapioca: open: {}: {}", opened().path, agreed.error().text));
        return class_of(agreed.error());
    }
    if ((opened().amode & MPI_MODE_APPEND) == 0) return MPI_SUCCESS;
    auto const end = comm::tell(steps_.file().session->team().all(), static_cast<std::int64_t>(*size));
    PMPI_File_seek(opened().handle, end, MPI_SEEK_SET);
    PMPI_File_seek_shared(opened().handle, end, MPI_SEEK_SET);
    return MPI_SUCCESS;
}

int Handle::start(MPI_Comm comm)
{
    auto const error = open_set(comm);
    if (error == MPI_SUCCESS && !set()) start_stage();
    if (error == MPI_SUCCESS) return error;
    Within const within;
    program_.set.reset();
    close_engine();
    return error;
}

/// Opens the file for the engine if the environment asks for a stage. Collective.
void Handle::start_stage()
{
    bool const ours = opened().which && !logs_of(*opened().which, &opened()).empty();
    if (opened().first() && !opened().read_only() && !ours && stage::has_marker(opened().path) &&
        !stage::clear_flushed(opened().path))
        go_past_marker(opened(), "tapioca: " + stage::what_to_do(opened().path));
    auto const settings = environment();
    if (!settings || !settings->options.stage) return;
    Within const within;
    if (!opened().alone()) (void)hand_over(Direction::read);  // so that its ranks find what they have staged
    if (!agree_to_serve()) return;
    if (may_stage(opened(), wished_))
        open_engine();
    else
        tell_unstaged(opened());
}

/// Whether no rank wants the file left alone. The ranks agree on this once, and with every access until the engine is
/// `worth` it to some rank. Collective.
bool Handle::agree_to_serve(bool worth)
{
    auto& first = program_.channel->first;
    if (agreed_ && (first.over() || !program_.off.empty())) return program_.off.empty();
    enum : unsigned { refused = 1, staged = 2, wished = 4, in_use = 8 };
    unsigned all = 0;
    if (!refusal_.empty()) all |= refused;
    if (hints_.has("tapioca_stage")) all |= wished;
    if (has_log_beside()) all |= staged;
    if (wants_set() && has_other_handles(opened())) all |= in_use;
    channels_->connect(*program_.channel);
    all = first.unite(program_.channel->comm.get(), all, worth || (all & wished) != 0);
    if (std::exchange(agreed_, true)) return program_.off.empty();
    wished_ = (all & wished) != 0;
    beside_ = (all & staged) != 0;
    in_use_ = (all & in_use) != 0;
    if (all & refused)
        program_.off = refusal_.empty() ? "another rank's wish" : refusal_;
    else if (all & staged)
        program_.off = "staged through another handle";
    return program_.off.empty();
}

/// Whether the engine should be set up for this access and those before it. It should if the settings ask for something
/// that only the engine does. Local.
bool Handle::is_worth_it(DataAccess const& request)
{
    auto const settings = hints_.settings();
    bool const asked = !settings || settings->options.check.value_or(false) ||
                       settings->options.devnull.value_or(false) ||
                       settings->options.direct.value_or(Direct::automatic) != Direct::automatic;
    auto const enough = asked ? 0 : settings->options.leave.value_or(leave_by_default);
    return program_.channel->first.is_worth_it(program_, request, enough);
}

/// Opens the file that the MPI library has open for the engine as well, on all ranks, or gives it up. Collective.
void Handle::open_engine()
{
    try {
        steps_.open(open_file(opened(), hints_, *program_.channel, {.staged = may_stage(opened(), wished_)}));
    } catch (Error const& error) {
        if (error.code() == Errc::setting) tell_left_alone(error.what());
        if (error.code() == Errc::invalid_state) go_past_marker(opened(), error.what());
        return give_up(error.what());
    }
    program_.has_new_hints = false;
    auto const& file = steps_.file();
    if (file.staging) staged_.open();
    if (!file.storage.coherent)  // ranks of one node could share it, but those of several could not
        give_up(fmt::format("file system {}", file.storage.name));
    else if (has_log() && !staged_.identify())
        give_up(Steps::gone);
}

/// Closes the file for the engine; close() reports errors. Collective. A thread that uses the log through another
/// handle waits until this is done, and then finds everything in the file.
void Handle::close_engine()
{
    if (!steps_.is_open()) return;
    add_calls(steps_.file(), calls());
    // A set that could not be completed needs advice, and an error class gives none. What is staged tells by itself.
    bool const tells = steps_.file().set && !has_log() && opened().first();
    auto const error = has_log() ? staged_.close() : steps_.close();
    if (error && tells) tell(error->what());
    if (error && late_ == MPI_SUCCESS) late_ = class_of(*error);
}

/// The file is left to the MPI library from now on. Collective.
void Handle::give_up(std::string const& why)
{
    program_.off = why;
    close_engine();
}

/// Lets the service try, and does what all ranks have to do before it can try again.
AccessOutcome Handle::serve(DataAccess const& request)
{
    Within const within;
    finish_pending();
    if (set() && has_log() && is_ordered(request.call)) return {.late = flush(false)};  // others expect it in the file
    int late = MPI_SUCCESS;  // an error of this rank alone, from before it joined the others
    while (true) {
        watch(name(request.call).data());
        auto [outcome, next, why] = service().serve(request);
        if (late == MPI_SUCCESS) late = outcome.late;
        switch (next) {
        case Attempt::Next::nothing: break;
        case Attempt::Next::open:
            if (!agree_to_serve(is_worth_it(request))) continue;
            if (program_.channel->first.over()) {
                open_engine();
                continue;
            }
            calls().passed(request.call, "little data so far: the engine is not set up for it");
            break;
        case Attempt::Next::reopen: close_engine(); continue;
        case Attempt::Next::give_up:
            if (set()) break;
            give_up(why);
            calls().passed(request.call, why);
        }
        if (outcome.served && outcome.error == MPI_SUCCESS) outcome.error = late;
        outcome.late = outcome.served ? MPI_SUCCESS : late;
        return outcome;
    }
}

AccessOutcome Handle::serve_alone(DataAccess const& request)
{
    Within const within;
    return service().serve_alone(request);
}

std::shared_ptr<PendingAccess> Handle::begin(DataAccess const& request, MPI_Request* handle)
{
    bool const wrong_way =
        request.direction == Direction::write ? opened().read_only() : (opened().amode & MPI_MODE_WRONLY) != 0;
    if (!nonblocking_ || has_log() || program_.atomic || !program_.off.empty() || wrong_way) return nullptr;
    Within const within;
    return nonblocking_->begin(request, hand_over(request.direction), handle);
}

void Handle::finish_pending()
{
    if (nonblocking_) nonblocking_->finish_all();
}

void Handle::abandon_pending()
{
    if (nonblocking_) nonblocking_->abandon();
}

void Handle::tell_unclosed()
{
    if (has_log()) return staged_.tell_unclosed();
    auto const left = set() && steps_.is_open() ? steps_.file().never_closed() : std::string();
    if (opened().first() && !left.empty()) tell("tapioca: " + left);
}

int Handle::flush(bool durable)
{
    Within const within;
    finish_pending();
    return service().flush(durable);
}

int Handle::settle()
{
    Within const within;
    finish_pending();
    auto const attempt = service().settle();
    if (attempt.next == Attempt::Next::nothing) return attempt.outcome.error;
    close_engine();
    open_engine();
    return std::exchange(late_, MPI_SUCCESS);
}

void Handle::set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation)
{
    program_.view.set(displacement, etype, filetype, representation);
    if (nonblocking_) nonblocking_->set_view();
}

void Handle::set_info(MPI_Info info)
{
    if (!program_.off.empty() || info == MPI_INFO_NULL || set()) return;  // a set keeps those of its opening
    if (hints_.add(info)) program_.has_new_hints = true;
}

void Handle::add_hints(MPI_Info info) const
{
    for (auto const& [name, value] : hints_.shown(program_.off.empty() && refusal_.empty()))
        PMPI_Info_set(info, name.c_str(), value.c_str());
}

/// Adds what the engine did beside the program to the file's account. Collective.
void Handle::close_nonblocking()
{
    if (!nonblocking_ || !nonblocking_->is_open()) return;
    auto& beside = nonblocking_->file();
    if (steps_.is_open()) {
        steps_.file().account.add(beside.account);
        beside.settings.options.report.reset();
    } else {
        add_calls(beside, calls());
    }
    auto const error = nonblocking_->close();
    if (error && late_ == MPI_SUCCESS) late_ = class_of(*error);
}

int Handle::close()
{
    split.reset();
    pending_split.reset();
    Within const within;
    watch("close");
    finish_pending();
    bool const reported = steps_.is_open() || (nonblocking_ && nonblocking_->is_open());
    close_nonblocking();
    // Data that was written through this handle is in the file and also in another handle's log. A flush of that log
    // would write it again, over what others write to the file from now on.
    if (!has_log() && !opened().read_only())
        if (auto const error = service().flush(false); late_ == MPI_SUCCESS) late_ = error;
    if (steps_.is_open()) close_engine();
    program_.set.reset();  // other threads that use the log may have needed it
    if (reported) return late_;
    // The account of a file that was never accessed collectively, or that was left to the MPI library, is rank 0's.
    auto const settings = hints_.settings();
    if (opened().first() && settings && settings->options.report)
        report_calls(*settings->options.report, opened().path, program_.off, calls());
    return late_;
}

}  // namespace tapioca::mpiio
