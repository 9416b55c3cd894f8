#include "file/opening.hpp"

#include <cstring>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "core/host.hpp"
#include "file/find_set.hpp"
#include "file/identify.hpp"
#include "file/on_tier.hpp"
#include "machine/stripes.hpp"
#include "report/report.hpp"
#include "report/report_file.hpp"
#include "settings/row.hpp"
#include "stage/find_logs.hpp"
#include "stage/log_files.hpp"

namespace tapioca::file {

namespace {

engine::DiscoverySettings wish_of(settings::Settings const& settings)
{
    return {settings.options.platform.value_or(""), settings.options.aggrtier.value_or(""),
            settings.as_given("aggrtier")};
}

/// On rank 0: sets the settings, including those of the platform file.
core::Status settle(OpenFile& file, core::Result<settings::Settings> settings)
{
    if (!settings) return tl::unexpected(settings.error());
    file.settings = std::move(*settings);
    if (auto const& report = file.settings.options.report)
        (void)report::report_place(*report);  // the path may be relative
    auto const ranks_per_node = file.session->team().ranks_per_node();
    if (file.settings.options.ranks_per_node.value_or(0) != ranks_per_node)
        return core::fail(Errc::setting, fmt::format("ranks_per_node was {} when the communicator's first file was "
                                                     "opened, and cannot be changed",
                                                     ranks_per_node));
    if (file.settings.options.striping_unit.value_or(0) % 512 != 0)
        return core::fail(Errc::setting, fmt::format("striping_unit={}: expected a multiple of 512 bytes",
                                                     *file.settings.options.striping_unit));
    auto const& platform = file.settings.options.platform;
    if (!platform) return {};
    file.around = file.session->discovery().known(wish_of(file.settings));
    settings::Pairs defaults;
    if (file.around) {
        defaults = file.around->machine->settings;
    } else {
        auto text = machine::read_platform(*platform);
        if (!text) {
            text.error().text = fmt::format("{}: {}", file.settings.as_given("platform"), text.error().text);
            return tl::unexpected(text.error());
        }
        auto const machine = machine::parse_platform(text->text, text->path);
        if (!machine) return tl::unexpected(machine.error());
        defaults = machine->settings;
    }
    for (auto const& [name, value] : defaults)
        if (auto const* const row = settings::find_row(name); row && row->of_job)
            return core::fail(Errc::setting, fmt::format("{}: [settings] {}: belongs to the job, not to the machine",
                                                         *platform, name));
    auto status = settings::add_defaults(file.settings, defaults, "platform file");
    if (!status) status.error().text = fmt::format("{}: [settings]: {}", *platform, status.error().text);
    return status;
}

/// Removes settings that do not apply to a recovery: those that would keep the data out of the file, and check mode.
void set_aside(Options& options)
{
    options.devnull.reset();
    options.stage.reset();
    options.check.reset();
}

/// Checks arguments with which no file can be opened. Ranks whose path or mode differs from rank 0's are told in any
/// case.
core::Status check_arguments(OpenFile const& file)
{
    if (file.path.find('\0') != std::string::npos)
        return core::fail(Errc::invalid_argument, "the path contains a zero byte");
    for (auto const known : {Mode::read, Mode::create, Mode::update})
        if (file.mode == known) return {};
    return core::fail(Errc::invalid_argument, fmt::format("{} is not a mode", static_cast<int>(file.mode)));
}

core::Status open_and_look(OpenFile& file)
{
    if (auto status = check_arguments(file); !status) return status;
    while (!file.recovering && stage::has_marker(file.place) && !stage::clear_flushed(file.place)) {
        auto const what = stage::what_to_do(file.place);
        if (stage::has_marker(file.place)) return core::fail(Errc::invalid_state, what);  // else just closed
    }
    auto const& options = file.settings.options;
    machine::Stripes const wanted{static_cast<std::int64_t>(options.striping_unit.value_or(0)),
                                  options.striping_factor.value_or(0)};
    bool const wants_stripes = options.striping_unit || options.striping_factor;
    std::string note;
    if (wants_stripes && file.mode == Mode::create) note = machine::create_striped(file.place, wanted);
    bool const is_there = file.mode != Mode::create || ::access(file.place.c_str(), F_OK) == 0;
    auto opened = target::open_file(file.place, file.mode == Mode::create ? target::OpenMode::create : file.access());
    if (!opened) return tl::unexpected(opened.error());
    file.made_file = !is_there;
    auto const fd = (*opened)->descriptor();
    auto storage = machine::storage_of(fd);
    if (!storage) return tl::unexpected(storage.error());
    auto const identity = target::identity_of(fd);
    if (!identity) return tl::unexpected(identity.error());
    file.first.identity = *identity;
    if (auto status = find_set(file, fd); !status) return status;
    file.storage = *storage;
    if (wants_stripes && file.storage.stripe_bytes == 0 && machine::has_stripes(file.storage.name))
        machine::enter(file.storage, wanted);  // it does not report its stripes: take the user's
    if (!note.empty()) file.storage.note = "striping_unit and striping_factor: " + note;
    file.expect(*identity);
    file.lazy_target.keep(std::move(*opened));
    return {};
}

/// On rank 0: opens the file and finds out about its file system.
core::Status open_first(OpenFile& file)
{
    auto status = open_and_look(file);
    if (!status) file.unmake();
    return status;
}

/// What rank 0 found. Texts follow: the storage's note, the path, the place, the set's directory, layout and tier, the
/// tier of a replaced set, and the settings or a failure.
struct Rank0Finding {
    std::int64_t block_bytes;
    std::int64_t stripe_bytes;
    target::FileIdentity identity;
    std::int32_t stripe_count;
    std::int32_t note_bytes;
    std::int32_t path_bytes;
    std::int32_t place_bytes;
    std::int32_t remote;
    std::int32_t failed;
    std::int32_t directory_bytes;  ///< of the set's directory; 0: the file is no set
    std::int32_t layout_bytes;
    std::int32_t tier_bytes;
    std::int32_t replaced_bytes;
    std::uint64_t generation;  ///< of the set, as the next two
    std::uint64_t epoch;
    std::uint32_t first_subfile;
    std::int32_t adds;
    std::int32_t made_now;
    subfile::SetId set;
    subfile::SetId replaced;
    Mode mode;
    char storage[16];
    char host[64];
};

std::string pack(OpenFile const& file, core::Status const& status)
{
    auto const& storage = file.storage;
    Rank0Finding found = {};
    found.block_bytes = storage.block_bytes;
    found.stripe_bytes = storage.stripe_bytes;
    found.identity = file.first.identity;
    found.stripe_count = storage.stripe_count;
    found.note_bytes = static_cast<std::int32_t>(storage.note.size());
    found.path_bytes = static_cast<std::int32_t>(file.path.size());
    found.place_bytes = static_cast<std::int32_t>(file.place.size());
    found.remote = storage.remote;
    if (auto const& set = file.set) {
        found.directory_bytes = static_cast<std::int32_t>(set->stub.directory.size());
        found.layout_bytes = static_cast<std::int32_t>(set->layout.size());
        found.tier_bytes = static_cast<std::int32_t>(set->stub.tier.size());
        found.generation = set->generation;
        found.epoch = set->epoch;
        found.first_subfile = set->first_subfile;
        found.adds = set->adds;
        found.made_now = set->made_now;
        found.set = set->stub.identity;
    }
    if (auto const& replaced = file.replaced) {
        found.replaced_bytes = static_cast<std::int32_t>(replaced->tier.size());
        found.replaced = replaced->identity;
    }
    found.failed = !status;
    found.mode = file.mode;
    storage.name.copy(found.storage, sizeof found.storage - 1);
    core::host_name().copy(found.host, sizeof found.host - 1);
    std::string message(reinterpret_cast<char const*>(&found), sizeof found);
    message += storage.note + file.path + file.place;
    if (file.set) message += file.set->stub.directory + file.set->layout + file.set->stub.tier;
    if (file.replaced) message += file.replaced->tier;
    if (status) return message + settings::pack(file.settings);
    auto const failure = core::pack(status.error());
    return message.append(reinterpret_cast<char const*>(failure.data()), failure.size());
}

core::Status unpack(OpenFile& file, std::string const& message)
{
    Rank0Finding found;
    std::memcpy(&found, message.data(), sizeof found);
    auto rest = std::string_view(message).substr(sizeof found);
    auto const take = [&](std::int32_t bytes) {
        auto const text = rest.substr(0, static_cast<std::size_t>(bytes));
        rest.remove_prefix(text.size());
        return std::string(text);
    };
    auto note = take(found.note_bytes);
    file.path = take(found.path_bytes);  // so that messages are the same on all ranks
    file.first = {take(found.place_bytes), found.host, found.mode, found.identity};
    auto directory = take(found.directory_bytes);
    auto layout = take(found.layout_bytes);
    auto tier = take(found.tier_bytes);
    if (auto replaced = take(found.replaced_bytes); !replaced.empty())
        file.replaced = subfile::Stub{found.replaced, {}, std::move(replaced)};
    if (!directory.empty() && !file.set)  // rank 0 has it
        file.set.emplace(OpenFile::Set{{found.set, std::move(directory), std::move(tier)},
                                       found.made_now != 0,
                                       found.adds != 0,
                                       found.generation,
                                       found.epoch,
                                       found.first_subfile,
                                       std::move(layout),
                                       {}});
    if (found.failed) {
        auto failure = core::unpack(std::as_bytes(std::span(rest)));
        failure.rank = 0;
        return tl::unexpected(std::move(failure));
    }
    file.settings = settings::unpack(rest);
    file.storage = machine::storage_profile(found.storage);
    file.storage.block_bytes = found.block_bytes;
    file.storage.stripe_bytes = found.stripe_bytes;
    file.storage.stripe_count = found.stripe_count;
    file.storage.remote = found.remote != 0;
    file.storage.note = std::move(note);
    return {};
}

}  // namespace

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

/// The session of the communicator. Collective.
std::shared_ptr<engine::Session> session_of(OpenFile const& file, Opening const& opening,
                                            core::Result<settings::Settings> const& settings)
{
    auto const ranks_per_node = settings ? settings->options.ranks_per_node.value_or(0) : 0;
    auto session = engine::Session::of(opening.comm, ranks_per_node, opening.kept);
    if (!session) file.raise("open", session.error());
    return *session;
}

/// Returns false if a step of the communicator was abandoned before; the next attempt uses a new session. Collective.
bool open_on(OpenFile& file, Opening const& opening)
{
    auto const& options = opening.options;
    std::shared_ptr<comm::Watchdog> watchdog;
    auto settings = opening.session ? *opening.settings : core::Result<settings::Settings>();
    if (!opening.session) {
        if (!file.within_set) watchdog = watch_unopened(opening.comm, "open", file.path, options, opening.info);
        if (comm::rank_in(opening.comm) == 0)
            settings = settings::resolve(options, comm::pairs_of(opening.info), settings::read_environment());
    }
    file.session = opening.session ? opening.session : session_of(file, opening, settings);
    file.session->opening();
    auto const& team = file.session->team();

    // One message has the settings and everything that rank 0 finds, unless the machine must be examined first.
    core::Status status;
    auto const known = [&] { return file.session->discovery().known(wish_of(file.settings)); };
    auto const tell = [&] {
        auto const told = file.session->agreement().broadcast(team.rank() == 0 ? pack(file, status) : std::string());
        if (!told && !opening.session && file.session->was_abandoned()) return false;
        if (!told) file.raise("open", told.error());
        file.raise_if("open", unpack(file, *told));
        return true;
    };
    if (team.rank() == 0) {
        status = settle(file, std::move(settings));
        if (file.recovering) set_aside(file.settings.options);
        if (status && known()) {
            file.around = known();
            status = open_first(file);
        }
    }
    if (!tell()) return false;
    file.around = known();
    if (opening.session && (!file.around || file.check()))
        file.raise("open", {Errc::unsupported, 0, -1, "settings that take MPI to open the file"});
    if (!file.around) {
        auto found = file.session->discovery().look_around(wish_of(file.settings));
        if (!found) file.raise("open", found.error());
        file.around = *found;
        file.set.reset();
        if (team.rank() == 0) status = open_first(file);
        if (!tell()) return false;
    }
    if (auto const& described = file.around->machine->storage) machine::adopt(file.storage, *described);
    file.open = true;
    file.watch("open");

    auto const placed = place_set(file);
    require_same_file(file);
    if (file.set && file.set->has_tier()) {
        auto const agreed = file.session->agreement().agree(placed);
        if (!agreed) file.unmake();
        file.raise_if("open", agreed);
    }
    file.require_same("open", "the list of options given in code",
                      fmt::format("[{}]", fmt::join(settings::describe({options, {}}), ", ")));
    return true;
}

}  // namespace

void open(OpenFile& file, Opening const& opening)
{
    if (!comm::mpi_is_active())
        file.raise("open", {Errc::invalid_state, 0, -1, "MPI is not initialised, or already finalised"});
    if (auto const* const why = opening.session ? nullptr : comm::unfit(opening.comm))
        file.raise("open", {Errc::invalid_argument, 0, -1, why});
    while (!open_on(file, opening)) {}
}

void complete(OpenFile& file)
{
    auto& session = *file.session;
    bool const had_bytes = file.mode == Mode::create && file.first.identity.bytes > 0;
    bool const on_tier = file.set && file.set->has_tier();
    if (on_tier && (file.set->made_now || file.set->adds)) make_places(file);
    if (had_bytes || !session.several_nodes() || file.set)  // all ranks have the file open, or none has
        if (auto const ready = session.agreement().agree(file.make_ready()); !ready) {
            unmake_places(file);
            file.raise("open", ready.error());
        }
    remove_replaced(file);
    if (on_tier && !file.set->made_now) {
        remove_begun(file);
        find_subfiles(file);
    }
    if (on_tier) begin_service(file);
    // A host that opened the file before may have cached its old content.
    if (had_bytes && session.team().rank() != 0) file.lazy_target.renew();
    session.opened();
}

}  // namespace tapioca::file
