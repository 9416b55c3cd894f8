#include "mpiio/handle.hpp"

#include <exception>
#include <utility>

#include <fmt/core.h>

#include "comm/team.hpp"
#include "mpiio/account.hpp"
#include "mpiio/beside.hpp"
#include "mpiio/environment.hpp"
#include "mpiio/error_class.hpp"
#include "mpiio/opening.hpp"
#include "mpiio/originals.hpp"
#include "mpiio/table.hpp"
#include "mpiio/tell.hpp"
#include "report/report_file.hpp"
#include "stage/find.hpp"

namespace tapioca::mpiio {

Handle::Handle(MPI_File file, MPI_Comm comm, std::string const& name, int amode, MPI_Info info)
    : opened_(file, comm, name, amode), hints_(info)
{
    auto const settings = environment();
    if (settings && settings->options.report) (void)report::report_place(*settings->options.report);
    refusal_ = hints_.refuse() ? "the hint tapioca=false" : opened_.refusal;
    watch("open");
    channels_ = Channels::of(comm);
    channels_->keep(watchdog_);
    channel_ = channels_->take(comm);
}

void Handle::watch(char const* call)
{
    if (steps_.is_open()) return steps_.file().watch(call);
    auto const settings = environment();
    auto const seconds = settings ? settings->options.timeout : std::nullopt;
    watchdog_ =
        comm::watch({seconds.value_or(settings::default_timeout), opened_.rank, opened_.ranks, call, &opened_.path});
}

void Handle::start()
{
    bool const ours = opened_.which && !logs_of(*opened_.which, this).empty();
    if (opened_.first() && !opened_.read_only() && !ours && stage::has_marker(opened_.path) &&
        !stage::clear_flushed(opened_.path))
        go_past_marker(opened_, "tapioca: " + stage::what_to_do(opened_.path));
    auto const settings = environment();
    if (!settings || !settings->options.stage) return;
    Within const within;
    if (!opened_.alone()) (void)hand_over(Direction::read);  // the ranks of a second handle find all they have staged
    if (!agree_to_serve()) return;
    if (may_stage(opened_, wished_))
        (void)open_engine();
    else
        tell_unstaged(opened_);
}

/// Whether no rank wants the file left alone; asked once. Collective.
bool Handle::agree_to_serve()
{
    if (agreed_) return off_.empty();
    agreed_ = true;
    enum : unsigned { refused = 1, staged = 2, wished = 4 };
    unsigned all = 0;
    if (!refusal_.empty()) all |= refused;
    if (hints_.has("tapioca_stage")) all |= wished;
    if (any_logs() && opened_.which && !logs_of(*opened_.which, this).empty()) all |= staged;
    channels_->connect(*channel_);
    all = comm::unite(channel_->comm.get(), all, "the other ranks' first access");
    wished_ = (all & wished) != 0;
    if (all & refused)
        off_ = refusal_.empty() ? "another rank's wish" : refusal_;
    else if (all & staged)
        off_ = "staged through another handle";
    return off_.empty();
}

/// Opens the file for the engine on all ranks, the same that the MPI library has open. Collective.
bool Handle::open_engine()
{
    try {
        steps_.open(open_file(opened_, hints_, *channel_, may_stage(opened_, wished_)));
    } catch (Error const& error) {
        if (error.code() == Errc::setting) tell_left_alone(error.what());
        if (error.code() == Errc::invalid_state) go_past_marker(opened_, error.what());
        give_up(error.what());
        return false;
    }
    has_new_hints_ = false;
    auto const& file = steps_.file();
    if (file.staging) staged_.open();
    if (!file.storage.coherent)  // one node's ranks could share it, several could not
        give_up(fmt::format("file system {}", file.storage.name));
    else if (has_log() && !staged_.identify())
        give_up(Steps::gone);
    return off_.empty();
}

/// Collective. Who uses the log through another handle waits for its end, and then finds everything in the file.
void Handle::close_engine()
{
    if (!steps_.is_open()) return;
    add_calls(steps_.file(), calls_);
    auto const error = has_log() ? staged_.close() : steps_.close();
    if (error && late_ == MPI_SUCCESS) late_ = class_of(*error);
}

int Handle::reopen_engine()
{
    close_engine();
    (void)open_engine();
    return std::exchange(late_, MPI_SUCCESS);
}

void Handle::give_up(std::string const& why)
{
    off_ = why;
    close_engine();
}

Outcome Handle::serve(Request const& request)
{
    Within const within;
    watch(name(request.call).data());
    return service().serve(request);
}

Outcome Handle::serve_alone(Request const& request)
{
    Within const within;
    return service().serve_alone(request);
}

int Handle::flush(bool durable)
{
    Within const within;
    return service().flush(durable);
}

int Handle::settle()
{
    Within const within;
    return service().settle();
}

void Handle::passed_by(Direction direction) const
{
    if (direction == Direction::write) touch_logs(*this);
}

void Handle::set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, char const* representation)
{
    view_.set(displacement, etype, filetype, representation);
}

void Handle::set_info(MPI_Info info)
{
    if (!off_.empty() || info == MPI_INFO_NULL) return;
    if (hints_.add(info)) has_new_hints_ = true;
}

void Handle::add_hints(MPI_Info info) const
{
    bool const serves = off_.empty() && refusal_.empty();
    PMPI_Info_set(info, "tapioca", serves ? "true" : "false");
    if (serves) hints_.describe(info);
}

std::string Handle::obstacle_of(Direction direction) const
{
    if (atomic_) return "atomic mode";
    if (!view_.obstacle().empty()) return view_.obstacle();
    if (direction == Direction::write && opened_.read_only()) return "writing to a file opened for reading";
    if (direction == Direction::read && (opened_.amode & MPI_MODE_WRONLY))
        return "reading from a file opened for writing";
    return {};
}

Part Handle::look_at(Request const& request) const
try {
    auto why = obstacle_of(request.direction);
    if (why.empty()) return mpiio::look_at(request, view_, opened_.handle, channel_->comm.get());
    Part part;
    part.obstacle = std::move(why);
    return part;
} catch (std::exception const& error) {  // no memory, most likely: the others must hear of it
    Part part;
    part.obstacle = error.what();
    return part;
}

void Handle::move_pointer(Request const& request, Part const& part) const
{
    if (!request.offset && part.bytes > 0) PMPI_File_seek(opened_.handle, part.next(view_.etype_bytes()), MPI_SEEK_SET);
}

int Handle::close()
{
    split.reset();
    Within const within;
    if (steps_.is_open()) {
        watch("close");
        close_engine();
        return late_;
    }
    // One that was never accessed collectively, or left to the MPI library, has rank 0's account.
    auto const settings = hints_.settings();
    if (opened_.first() && settings && settings->options.report)
        report_calls(*settings->options.report, opened_.path, off_, calls_);
    return late_;
}

}  // namespace tapioca::mpiio
