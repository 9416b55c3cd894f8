// Opening a file: rank 0 does what must be done once and tells the others.
#include <cstring>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "api/state.hpp"
#include "comm/watchdog.hpp"
#include "machine/stripes.hpp"
#include "stage/find.hpp"

namespace tapioca {

namespace api {

namespace {

target::Access access_of(Mode mode, bool first)
{
    if (mode == Mode::read) return target::Access::read;
    return mode == Mode::create && first ? target::Access::create : target::Access::update;
}

core::Result<std::unique_ptr<target::Target>> open_target(FileState const& file, bool first)
{
    auto target = target::open_file(file.path, access_of(file.mode, first));
    if (target && file.settings.options.devnull.value_or(false)) return target::discard_writes(std::move(*target));
    return target;
}

engine::Wish wish_of(settings::Settings const& settings)
{
    return {settings.options.platform.value_or(""), settings.options.aggrtier.value_or("")};
}

/// On rank 0: the settings, with those of the platform file.
core::Status settle(FileState& file, core::Result<settings::Settings> settings)
{
    if (!settings) return tl::unexpected(settings.error());
    file.settings = std::move(*settings);
    auto const ranks_per_node = file.pool->team().ranks_per_node();
    if (file.settings.options.ranks_per_node.value_or(0) != ranks_per_node)
        return core::fail(Errc::setting, fmt::format("ranks_per_node was {} when the communicator's first file was "
                                                     "opened, and stays",
                                                     ranks_per_node));
    if (file.settings.options.striping_unit.value_or(0) % 512 != 0)
        return core::fail(Errc::setting, fmt::format("striping_unit={}: expected a multiple of 512 bytes",
                                                     *file.settings.options.striping_unit));
    auto const& platform = file.settings.options.platform;
    if (!platform) return {};
    file.around = file.pool->surroundings(wish_of(file.settings));
    settings::Pairs defaults;
    if (file.around) {
        defaults = file.around->machine->settings;
    } else {
        auto const text = machine::read_platform(*platform);
        if (!text) return tl::unexpected(text.error());
        auto const machine = machine::parse_platform(text->text, text->path);
        if (!machine) return tl::unexpected(machine.error());
        defaults = machine->settings;
    }
    for (auto const& [name, value] : defaults)
        if (name == "ranks_per_node" || name == "platform")
            return core::fail(Errc::setting, fmt::format("{}: [settings] {}: belongs to the job, not to the machine",
                                                         *platform, name));
    auto status = settings::add_defaults(file.settings, defaults, "platform file");
    if (!status) status.error().text = fmt::format("{}: [settings]: {}", *platform, status.error().text);
    return status;
}

/// What a recovery has no use for: settings that would keep the data out of the file, and the check of programs.
void set_aside(Options& options)
{
    options.devnull.reset();
    options.stage.reset();
    options.check.reset();
}

/// On rank 0: file and file system.
core::Status open_first(FileState& file)
{
    if (!file.recovering && stage::has_marker(file.path) && !stage::clear_flushed(file.path))
        return core::fail(Errc::invalid_state, stage::what_to_do(file.path));
    auto const& options = file.settings.options;
    machine::Stripes const wanted{static_cast<std::int64_t>(options.striping_unit.value_or(0)),
                                  options.striping_factor.value_or(0)};
    bool const wants_stripes = options.striping_unit || options.striping_factor;
    std::string note;
    if (wants_stripes && file.mode == Mode::create) note = machine::create_striped(file.path, wanted);
    auto plain = target::open_file(file.path, access_of(file.mode, true));
    if (!plain) return tl::unexpected(plain.error());
    auto storage = machine::storage_of(target::descriptor(**plain));
    if (!storage) return tl::unexpected(storage.error());
    file.storage = *storage;
    if (wants_stripes && file.storage.stripe_bytes == 0 && machine::has_stripes(file.storage.name))
        machine::enter(file.storage, wanted);  // it does not tell its own: believe the user
    if (!note.empty()) file.storage.note = "striping_unit and striping_factor: " + note;
    bool const discard = options.devnull.value_or(false);
    file.set_target(discard ? target::discard_writes(std::move(*plain)) : std::move(*plain));
    return {};
}

/// What rank 0 found. The storage's note and, as text, the settings or a failure follow.
struct Opening {
    std::int64_t block_bytes;
    std::int64_t stripe_bytes;
    std::int32_t stripe_count;
    std::int32_t note_bytes;
    std::int32_t remote;
    std::int32_t failed;
    char storage[16];
};

std::string pack(FileState const& file, core::Status const& status)
{
    auto const& storage = file.storage;
    Opening opening{storage.block_bytes,
                    storage.stripe_bytes,
                    storage.stripe_count,
                    static_cast<std::int32_t>(storage.note.size()),
                    storage.remote,
                    !status,
                    {}};
    storage.name.copy(opening.storage, sizeof opening.storage - 1);
    std::string message(reinterpret_cast<char const*>(&opening), sizeof opening);
    message += storage.note;
    if (status) return message + settings::pack(file.settings);
    auto const failure = core::pack(status.error());
    return message.append(reinterpret_cast<char const*>(failure.data()), failure.size());
}

core::Status unpack(FileState& file, std::string const& message)
{
    Opening opening;
    std::memcpy(&opening, message.data(), sizeof opening);
    auto const note_bytes = static_cast<std::size_t>(opening.note_bytes);
    auto const note = std::string_view(message).substr(sizeof opening, note_bytes);
    auto const rest = std::string_view(message).substr(sizeof opening + note_bytes);
    if (opening.failed) {
        auto failure = core::unpack(std::as_bytes(std::span(rest)));
        failure.rank = 0;
        return tl::unexpected(std::move(failure));
    }
    file.settings = settings::unpack(rest);
    file.storage = machine::storage_profile(opening.storage);
    file.storage.block_bytes = opening.block_bytes;
    file.storage.stripe_bytes = opening.stripe_bytes;
    file.storage.stripe_count = opening.stripe_count;
    file.storage.remote = opening.remote != 0;
    file.storage.note = note;
    return {};
}

}  // namespace

target::Target* FileState::target()
{
    if (!target_) {
        target_status_ = {};  // what failed before may do now
        auto opened = open_target(*this, false);
        if (opened) {
            target_ = std::move(*opened);
            if (staging) target_->tell_changes(staging->stage().writer().touched());
        } else {
            target_status_ = tl::unexpected(opened.error());
        }
    }
    return target_.get();
}

core::Status FileState::close_target()
{
    auto status = target_ ? target_->close() : core::Status();
    target_.reset();
    return status;
}

std::shared_ptr<comm::Watchdog> watch_unopened(MPI_Comm comm, char const* call, std::string const& path,
                                               Options const& options, MPI_Info info)
{
    if (comm::size_of(comm) == 1) return comm::watch({});
    auto const settings = settings::resolve(options, comm::pairs_of(info), settings::read_environment());
    auto const seconds = settings ? settings->options.timeout : std::nullopt;
    return comm::watch(
        {seconds.value_or(settings::default_timeout), comm::rank_in(comm), comm::size_of(comm), call, &path});
}

namespace {

/// False if the communicator was abandoned before: the next time it will be as new. Collective.
bool open_on(MPI_Comm comm, FileState& file, Options const& options, MPI_Info info, bool may_stage)
{
    auto const watchdog = watch_unopened(comm, "open", file.path, options, info);
    core::Result<settings::Settings> settings;
    if (comm::rank_in(comm) == 0)
        settings = settings::resolve(options, comm::pairs_of(info), settings::read_environment());
    auto pool = engine::Pool::of(comm, settings ? settings->options.ranks_per_node.value_or(0) : 0);
    if (!pool) file.raise("open", pool.error());
    file.pool = *pool;
    file.pool->opening();
    auto const& team = file.pool->team();

    // The settings and, unless the machine must be looked at first, all that rank 0 finds: one message.
    core::Status status;
    auto const known = [&] { return file.pool->surroundings(wish_of(file.settings)); };
    auto const tell = [&] {
        auto const told = file.pool->broadcast(team.rank() == 0 ? pack(file, status) : std::string());
        if (!told && file.pool->was_abandoned()) return false;
        if (!told) file.raise("open", told.error());
        file.raise_if("open", unpack(file, *told));
        return true;
    };
    if (team.rank() == 0) {
        status = settle(file, std::move(settings));
        if (file.recovering) set_aside(file.settings.options);
        if (status && known()) status = open_first(file);
    }
    if (!tell()) return false;
    file.around = known();
    if (!file.around) {
        auto found = file.pool->look_around(wish_of(file.settings));
        if (!found) file.raise("open", found.error());
        file.around = *found;
        if (team.rank() == 0) status = open_first(file);
        if (!tell()) return false;
    }
    if (auto const& described = file.around->machine->storage) machine::adopt(file.storage, *described);
    file.open = true;
    file.watch("open");

    if (file.check()) {
        auto const mine = file.path;
        file.path = file.pool->broadcast(mine).value_or(mine);  // for the same message on all ranks
        file.require_same("open", "the path", mine);
    }
    file.require_same("open", "the mode", name(file.mode));
    file.require_same("open", "the list of options given in code",
                      fmt::format("[{}]", fmt::join(describe({options, {}}), ", ")));
    if (may_stage) file.staging = Staging::open(file);
    if (!file.pool->several_nodes()) file.raise_if("open", file.pool->agree({}));  // all have it, or nobody
    file.pool->opened();
    return true;
}

}  // namespace

std::shared_ptr<FileState> open_file(MPI_Comm comm, std::string const& path, Mode mode, Options const& options,
                                     MPI_Info info, bool recovering, bool may_stage)
{
    std::shared_ptr<FileState> state;
    try {
        state = std::make_shared<FileState>();
        state->path = path;
        state->mode = mode;
        state->recovering = recovering;
        if (!comm::mpi_is_active())
            state->raise("open", {Errc::invalid_state, 0, -1, "MPI is not initialised, or already finalised"});
        if (comm == MPI_COMM_NULL)
            state->raise("open", {Errc::invalid_argument, 0, -1, "the communicator is MPI_COMM_NULL"});
        while (!open_on(comm, *state, options, info, may_stage)) {}
    } catch (std::bad_alloc const&) {
        if (!state || !state->pool)
            comm::end_job(fmt::format("rank {} is out of memory while the others wait for it in open() of {}",
                                      comm::rank_in(comm), path));
        state->lose("open");
    }
    return state;
}

}  // namespace api

File File::open(MPI_Comm comm, std::string const& path, Mode mode, Options const& options, MPI_Info info)
{
    return File(api::open_file(comm, path, mode, options, info));
}

}  // namespace tapioca
