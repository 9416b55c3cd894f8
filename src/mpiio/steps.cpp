// A collective call: look at it, decide with the other ranks in one reduction, then run it on the engine.
#include <array>
#include <limits>
#include <new>

#include <fmt/core.h>
#include <sys/stat.h>

#include "api/c_face.hpp"
#include "mpiio/datatype.hpp"
#include "mpiio/device_memory.hpp"
#include "mpiio/originals.hpp"
#include "mpiio/part.hpp"

namespace tapioca::mpiio {

struct OpenFile::Decision {
    bool served = false;
    bool reopen = false;               ///< somebody has new hints
    bool empty = false;                ///< nobody moves anything
    std::optional<std::size_t> known;  ///< a plan that fits
    std::int64_t shift = 0;            ///< by which the plan is to be moved
};

namespace {

/// File systems whose clients see each other's writes, and that one node's ranks may share through its page cache.
bool is_served(std::string const& storage)
{
    return storage != "nfs" && storage != "smb" && storage != "9p" && storage != "fuse" && storage != "unknown";
}

/// MPI has no call that tells, but one that complains, in the way that `comm` asks for. The program's own communicator
/// is spared that.
bool is_committed(MPI_Datatype type, MPI_Comm comm)
{
    if (comm == MPI_COMM_SELF) return true;
    char nothing = 0;
    int position = 0;
    return PMPI_Pack(&nothing, 0, type, &nothing, 0, &position, comm) == MPI_SUCCESS;
}

/// A variable that fails to be declared, on all ranks, if there is no memory for it.
pattern::Variable to_variable(pattern::Access const& access)
try {
    return pattern::variable_of(access);
} catch (std::exception const& error) {
    return pattern::Variable::failed(core::fail(Errc::memory, error.what()));
}

constexpr char const* gone = "the file cannot be opened, or was renamed or replaced";
constexpr auto any_shift = std::numeric_limits<std::int64_t>::max();
constexpr auto no_match = -any_shift;

}  // namespace

std::string OpenFile::obstacle_of(Direction direction) const
{
    if (atomic_) return "atomic mode";
    if (!bad_view_.empty()) return bad_view_;
    if (direction == Direction::write && (amode_ & MPI_MODE_RDONLY)) return "writing to a file opened for reading";
    if (direction == Direction::read && (amode_ & MPI_MODE_WRONLY)) return "reading from a file opened for writing";
    return {};
}

OpenFile::Part OpenFile::look_at(Request const& request) const
try {
    return look_closely(request);
} catch (std::exception const& error) {  // no memory, most likely: the others must hear of it
    Part part;
    part.obstacle = error.what();
    return part;
}

/// Local. Whatever is wrong with the arguments is left for the MPI library to say.
OpenFile::Part OpenFile::look_closely(Request const& request) const
{
    Part part;
    auto const cannot = [&part](std::string why) {
        part.obstacle = std::move(why);
        part.bytes = 0;
    };
    if (auto why = obstacle_of(request.direction); !why.empty()) return cannot(std::move(why)), std::move(part);
    if (request.count < 0 || request.type == MPI_DATATYPE_NULL) return cannot("invalid arguments"), std::move(part);

    if (!is_committed(request.type, channel_->comm.get()))
        return cannot("a datatype that is not committed"), std::move(part);
    MPI_Count bytes = 0;
    PMPI_Type_size_x(request.type, &bytes);
    if (__builtin_mul_overflow(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(request.count), &part.bytes))
        return cannot("invalid arguments"), std::move(part);

    if (request.offset)
        part.offset = *request.offset;
    else if (PMPI_File_get_position(handle_, &part.offset) != MPI_SUCCESS)
        return cannot("no position"), std::move(part);
    std::int64_t from = 0;
    if (part.offset < 0 || part.bytes % etype_bytes_ != 0 ||
        __builtin_mul_overflow(static_cast<std::int64_t>(part.offset), etype_bytes_, &from))
        return cannot("invalid arguments"), std::move(part);
    if (part.bytes == 0) return part;
    auto access = pattern::access_of(view_, from, part.bytes);
    if (!access) return cannot(access.error().text), std::move(part);
    part.access = std::move(*access);
    part.end = view_.offset_of(from + part.bytes - 1) + 1;

    auto const element = datatype_of(request.type);
    if (!element) return cannot(element.error().text), std::move(part);
    part.memory = pattern::Typemap::loop(request.count, element->extent, element->map);
    auto* const base = static_cast<std::byte*>(request.buffer);
    part.data = base + part.memory.begin();
    if (in_device_memory(part.data)) return cannot("a buffer in the memory of a GPU"), std::move(part);
    if (part.memory.contiguous()) return part;
    part.packed.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(part.bytes)]);
    if (!part.packed) return cannot("no memory to pack the data"), std::move(part);
    part.data = part.packed.get();
    return part;
}

/// Collective.
void OpenFile::give_up(std::string const& why)
{
    off_ = why;
    close_engine();
}

/// Opens the file for the engine on all ranks, the same that the MPI library has open. Collective.
bool OpenFile::open_engine()
{
    try {
        file_ = open_file();
    } catch (Error const& error) {
        if (error.code() == Errc::setting) warn(error.what());
        if (error.code() == Errc::invalid_state) go_past_marker(error.what());
        give_up(error.what());
        return false;
    }
    reopen_ = false;
    note_stage();
    auto& state = api::Inside::of(*file_);
    if (!is_served(state.storage.name)) {
        give_up(fmt::format("file system {}", state.storage.name));
        return false;
    }
    auto const& storage = state.storage;
    conditions_ = fmt::format("{} {} {} {} {} {}", static_cast<int>(state.mode), storage.name, storage.block_bytes,
                              storage.stripe_bytes, storage.stripe_count, settings::pack(state.settings));
    if (!has_stage() || identify()) return true;
    give_up(gone);
    return false;
}

/// A number for the file that this rank has found under its name, which may mean another one by now, or none. Everybody
/// opens it at the first access, so that nobody asks for the name again. Local.
std::int64_t OpenFile::identity() const
{
    auto* const target = api::Inside::shared(*file_)->target();
    struct stat found = {};
    if (!target || ::fstat(target::descriptor(*target), &found) != 0) return no_match;
    if (first_ && which_ != Which{found.st_dev, found.st_ino}) return no_match;
    return static_cast<std::int64_t>(found.st_ino & INT64_MAX);
}

/// One reduction over all ranks. Collective.
OpenFile::Decision OpenFile::decide(Part const& part)
{
    // What every rank puts in, of which the least counts: whether it can take part, its bytes (negated), whether its
    // hints are the old ones, the file that it has opened and, for every known plan, the shift that makes it fit, both
    // as they are and negated: if these agree, so do all ranks.
    constexpr std::size_t hints = 2;
    constexpr std::size_t file = 3;
    constexpr std::size_t plans = 5;
    std::array<std::int64_t, plans + 2 * Channel::most_known> values;
    values.fill(no_match);
    values[0] = part.obstacle.empty() ? 1 : 0;
    values[1] = -part.bytes;
    values[hints] = reopen_ ? 0 : 1;
    values[file] = identified_ ? 0 : identity();
    values[file + 1] = -values[file];
    for (std::size_t i = 0; i < channel_->known.size(); ++i) {
        auto const& known = channel_->known[i];
        if (known.conditions != conditions_ || known.shape != part.access.shape) continue;
        auto const shift = part.access.origin - known.origin;
        values[plans + 2 * i] = part.bytes == 0 ? any_shift : shift;
        values[plans + 2 * i + 1] = part.bytes == 0 ? any_shift : -shift;
    }
    auto const used = std::span(values).first(plans + 2 * channel_->known.size());  // as many on all ranks
    auto const status = api::Inside::of(*file_).pool->least(used);
    auto const agreed = [&](std::size_t i) { return values[i] != no_match && values[i] == -values[i + 1]; };
    Decision decision;
    if (!status) return decision;
    decision.reopen = values[hints] == 0;
    if (decision.reopen) return decision;
    identified_ = agreed(file);
    if (!identified_) give_up(gone);
    if (!identified_) return decision;
    decision.served = values[0] == 1;
    decision.empty = values[1] == 0;
    for (std::size_t i = 0; i < channel_->known.size() && !decision.known; ++i) {
        if (!agreed(plans + 2 * i)) continue;
        decision.known = i;
        decision.shift = values[plans + 2 * i];
    }
    return decision;
}

/// Whether the program gave it on this rank. Local.
bool OpenFile::has_hint(char const* name) const
{
    int length = 0;
    int found = 0;
    if (hints_ != MPI_INFO_NULL) PMPI_Info_get_valuelen(hints_, name, &length, &found);
    return found != 0;
}

/// Whether no rank wants the file left alone; asked once. Collective.
bool OpenFile::agree_to_serve()
{
    if (agreed_) return off_.empty();
    agreed_ = true;
    enum : unsigned { refused = 1, staged = 2, wished = 4 };
    unsigned all = refusal_.empty() ? 0U : unsigned{refused};
    if (has_hint("tapioca_stage")) all |= wished;
    if (any_staged() && which_ && !staged_handles_of(*which_, this).empty()) all |= staged;
    channels_->connect(*channel_);
    all = comm::unite(channel_->comm.get(), all, "the other ranks' first access");
    wished_ = (all & wished) != 0;
    if (all & refused)
        off_ = refusal_.empty() ? "another rank's wish" : refusal_;
    else if (all & staged)
        off_ = "staged through another handle";
    return off_.empty();
}

Outcome OpenFile::serve(Request const& request)
{
    Within const within;
    watch(name(request.call).data());
    if (is_staged()) {
        {
            std::lock_guard const lock(log_);
            staging().advance();
            if (request.direction == Direction::write) return write_staged(request, true, *this);
        }
        if (int const error = flush_before(request); error != MPI_SUCCESS) return {true, error, 0};
    } else if (overdue_) {
        if (int const error = flush(false); error != MPI_SUCCESS) return {true, error, 0};
    }
    if (owner_of_log()) return serve_alone(request);
    int const late = has_stage() ? MPI_SUCCESS : hand_over(request.direction);
    auto outcome = serve_together(request);
    if (!has_stage()) passed_by(request.direction);
    if (outcome.served && outcome.error == MPI_SUCCESS) outcome.error = late;
    if (!outcome.served) outcome.late = late;
    return outcome;
}

/// On the engine, with the other ranks, if all can. Collective.
Outcome OpenFile::serve_together(Request const& request)
{
    Part part;
    Decision decision;
    do {
        if (decision.reopen) {
            if (int const error = has_stage() ? flush(false) : MPI_SUCCESS; error != MPI_SUCCESS)
                return {true, error, 0};
            close_engine();
        }
        if (!agree_to_serve() || (!file_ && !open_engine())) {
            calls_.passed(request.call, off_);
            return {};
        }
        part = look_at(request);
        decision = decide(part);
    } while (decision.reopen);
    if (is_staged() && request.direction == Direction::write) {  // from now on
        std::lock_guard const lock(log_);
        return write_staged(request, true, *this);
    }
    if (!decision.served) {
        calls_.passed(request.call, !off_.empty()           ? off_
                                    : part.obstacle.empty() ? "another rank's data"
                                                            : part.obstacle);
        return {};
    }
    auto outcome = run(request, part, decision);
    if (!outcome.served) {
        calls_.passed(request.call, off_);
        return outcome;
    }
    calls_.served(request.call);
    move_pointer(request, part);
    return outcome;
}

/// Plans a step for this request and keeps it in place of the oldest. Collective.
std::size_t OpenFile::declare(Part const& part)
{
    auto variable = std::make_shared<pattern::Variable const>(to_variable(part.access));
    auto step = api::declare(api::Inside::shared(*file_), {std::move(variable)});
    step->past_the_log();  // what comes here comes after a flush
    auto& known = channel_->known;
    auto const place = known.size() < Channel::most_known ? known.size() : channel_->oldest++ % Channel::most_known;
    if (place == known.size()) known.emplace_back();
    known[place] = {part.access.shape, part.access.origin, conditions_, std::move(step)};
    return place;
}

/// Collective. An error before anything is moved leaves the file to the MPI library.
Outcome OpenFile::run(Request const& request, Part& part, Decision const& decision)
{
    Outcome outcome{true, MPI_SUCCESS, 0};
    if (decision.empty) return outcome;
    bool const writing = request.direction == Direction::write;
    bool moving = false;
    try {
        auto const place = decision.known ? *decision.known : declare(part);
        auto& step = *channel_->known[place].step;
        if (&step.file() != api::Inside::shared(*file_).get()) step.retarget(api::Inside::shared(*file_));
        step.rebase(decision.known ? decision.shift : 0);
        if (writing && part.packed)
            pattern::pack(part.memory, static_cast<std::byte const*>(request.buffer), 0, part.bytes, part.data);
        if (part.bytes > 0)
            step.supply(0, part.data, static_cast<std::size_t>(part.bytes), writing ? api::Op::write : api::Op::read);
        step.start(false);
        moving = true;
        auto const moved = step.wait();
        outcome.bytes = static_cast<std::int64_t>(moved.bytes);
    } catch (Error const& error) {
        if (!moving) {
            give_up(error.what());
            return {};
        }
        outcome.error = class_of(error);
    }
    if (!writing && part.packed)
        pattern::unpack(part.memory, static_cast<std::byte*>(request.buffer), 0, outcome.bytes, part.data);
    return outcome;
}

}  // namespace tapioca::mpiio
