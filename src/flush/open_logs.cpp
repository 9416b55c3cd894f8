// Opens the log of a file: rank 0 decides, every rank makes its own log, and the marker comes last.
#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/host.hpp"
#include "core/stopwatch.hpp"
#include "core/units.hpp"
#include "core/warn.hpp"
#include "flush/staging.hpp"

namespace tapioca::flush {

namespace {

using FoundTier = core::Result<std::unique_ptr<machine::Tier>>;

/// What rank 0 decides for all logs of a file. The target's path follows in the message.
struct Common {
    stage::OpeningId identity;
    StageMapping mapping;
    std::uint64_t device;
    std::uint64_t inode;
};

/// The tier of this node for the log.
FoundTier find_tier(file::OpenFile const& file)
{
    std::vector<machine::TierTraits> here;
    for (auto const& tier : file.around->tiers)
        if (tier.traits) here.push_back(*tier.traits);
    auto tier = machine::choose_tier(*file.settings.options.stage, here).and_then(machine::make_tier);
    if (!tier) tier.error().text = fmt::format("{}: {}", file.settings.as_given("stage"), tier.error().text);
    return tier;
}

/// Whether many machines share the directory's file system, whose servers do not cope well with many files.
bool is_shared(std::string const& directory)
{
    core::Descriptor const probe(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!probe) return false;
    auto const storage = machine::storage_of(probe.get());
    return storage && storage->remote;
}

StageMapping mapping_of(file::OpenFile const& file, std::string const& directory)
{
    if (auto const wish = file.settings.options.stage_mapping) return *wish;
    return is_shared(directory) ? StageMapping::node : StageMapping::process;
}

StageSync sync_of(file::OpenFile const& file)
{
    return file.settings.options.stage_sync.value_or(StageSync::sync);
}

/// Half of the free space of a memory tier is left to the program.
std::uint64_t limit_of(file::OpenFile const& file, machine::TierTraits const& tier)
{
    if (auto const limit = file.settings.options.stage_size) return *limit;
    if (machine::is_device(tier)) return UINT64_MAX;
    return machine::free_bytes(tier) / 2 / static_cast<std::uint64_t>(file.session->team().node_size());
}

stage::Head head_of(file::OpenFile const& file, Common const& common, std::string const& target)
{
    auto const& team = file.session->team();
    stage::Head head = {};
    head.identity = common.identity;
    head.epoch = 1;
    head.ranks = static_cast<std::uint32_t>(team.size());
    head.node = static_cast<std::uint32_t>(team.my_node());
    head.rank = static_cast<std::uint32_t>(team.rank());
    head.mapping = common.mapping;
    head.device = common.device;
    head.inode = common.inode;
    head.created = static_cast<std::uint64_t>(std::time(nullptr));
    core::host_name().copy(head.host, sizeof head.host - 1);
    target.copy(head.target, sizeof head.target - 1);
    return head;
}

/// Makes this rank's log, or its part of the node's. Collective over the node's ranks.
core::Result<stage::LogWriter> make_log(file::OpenFile const& file, FoundTier const& tier, Common const& common,
                                        std::string const& target)
{
    auto const& team = file.session->team();
    bool const shared = common.mapping == StageMapping::node;
    core::Result<stage::LogWriter> writer = core::fail(Errc::io, "another rank's log");
    stage::LogPlace place;
    core::Status status;
    if (!tier) status = tl::unexpected(tier.error());
    if (status && target.size() >= sizeof stage::Head::target)
        status = core::fail(Errc::unsupported, "the path is too long for the stage");
    if (status) {
        auto const directory = stage::make_directory((*tier)->directory(), common.identity);
        if (directory)
            place = {*directory, stage::log_name(common.mapping,
                                                 static_cast<std::uint32_t>(shared ? team.my_node() : team.rank()))};
        else
            status = tl::unexpected(directory.error());
    }
    if (!shared || team.node_rank() == 0) {
        if (status) {
            writer = stage::LogWriter::create(place, head_of(file, common, target));
            if (!writer) status = tl::unexpected(writer.error());
        }
        if (status) status = (*tier)->bind(writer->data_descriptor());
    }
    if (shared) {  // the other ranks find it there
        auto const made = file.session->agreement().agree(status);
        if (made && team.node_rank() != 0)
            writer = stage::LogWriter::join(place, static_cast<std::uint32_t>(team.rank()));
        if (!made && !writer) status = made;
    }
    if (!status) {
        if (writer) (void)stage::remove_log(writer->place());
        return tl::unexpected(status.error());
    }
    return writer;
}

/// Makes the marker on rank 0, once all logs exist. Collective.
core::Result<core::Descriptor> make_marker(file::OpenFile& file, Common const& common, std::string const& target,
                                           std::string const& directory)
{
    auto const& team = file.session->team();
    auto const texts = team.gather_texts(core::host_name() + "\n" + directory);
    if (team.rank() != 0) return core::Descriptor();
    stage::Marker marker;
    marker.identity = common.identity;
    marker.ranks = static_cast<std::uint32_t>(team.size());
    marker.mapping = common.mapping;
    marker.tier = *file.settings.options.stage;
    marker.target = target;
    for (std::size_t node = 0; node < texts.size(); ++node) {
        auto const line = texts[node].find('\n');
        auto const& ranks = team.nodes()[node];
        marker.nodes.push_back(
            {texts[node].substr(0, line), texts[node].substr(line + 1), {ranks.begin(), ranks.end()}});
    }
    // The marker is the last step that may fail, and if it fails the file should keep its content.
    auto const beside = target.substr(0, target.rfind('/') + 1);
    bool const empties = file.mode == Mode::create && file.first.identity.bytes > 0;
    if (empties && ::geteuid() == ::getuid() && ::access(beside.c_str(), W_OK | X_OK) != 0)
        return core::fail_errno(errno, "making a marker in " + beside);
    if (auto const emptied = file.make_ready(); !emptied) return tl::unexpected(emptied.error());
    bool const lasting = sync_of(file) != StageSync::sync;
    // The logs belong to the file as it is after it may have been emptied, and not to its earlier content.
    if (auto status = lasting ? file.target()->sync() : core::Status(); !status) return tl::unexpected(status.error());
    auto const facts = stage::facts_of(file.target()->descriptor());
    if (!facts) return tl::unexpected(facts.error());
    marker.noted = {0, 1, stage::Noted::State::left, *facts};
    return stage::create_marker(marker, lasting);
}

/// How far the clock of the file's times is ahead of the hosts' clocks. Collective.
std::int64_t clock_ahead_ns(file::OpenFile const& file, core::Descriptor const& marker)
{
    if (!file.storage.remote) return 0;
    std::array<std::int64_t, 1> ahead = {file.session->team().rank() == 0 ? stage::clock_ahead_ns(marker) : INT64_MAX};
    return file.session->agreement().least(ahead) ? ahead[0] : 0;
}

/// Distributes what rank 0 decides, and the target's path, to all ranks. Collective.
core::Result<std::pair<Common, std::string>> decide(file::OpenFile& file, FoundTier const& tier)
{
    std::string told;
    if (file.session->team().rank() == 0) {
        struct stat found = {};
        ::fstat(file.target()->descriptor(), &found);
        Common const common{stage::new_identity(),
                            tier ? mapping_of(file, (*tier)->directory()) : StageMapping::process, found.st_dev,
                            found.st_ino};
        told.assign(reinterpret_cast<char const*>(&common), sizeof common);
        told += stage::resolved(file.place);
    }
    auto const heard = file.session->agreement().broadcast(std::move(told));
    if (!heard) return tl::unexpected(heard.error());
    Common common;
    std::memcpy(&common, heard->data(), sizeof common);
    return std::pair(common, heard->substr(sizeof common));
}

/// The log could not be made for all ranks: removes what there is of it. Collective.
void take_away(file::OpenFile& file, FoundTier const& tier, core::Result<stage::LogWriter> const& writer,
               Common const& common)
{
    if (writer) (void)stage::remove_log(writer->place());
    (void)file.session->agreement().agree({});  // the directory is empty once all ranks have removed their files
    if (!tier) return;
    if (auto const directory = stage::directory_of((*tier)->directory(), common.identity))
        stage::remove_directory(*directory);
}

}  // namespace

std::unique_ptr<Staging> Staging::open(file::OpenFile& file, report::Account& account)
{
    auto const& options = file.settings.options;
    if (!options.stage || file.mode == Mode::read || options.devnull.value_or(false)) return nullptr;
    double creating = 0;
    core::Stopwatch const watch(creating);
    auto& session = *file.session;
    auto const& team = session.team();
    auto const tier = find_tier(file);
    auto const decided = decide(file, tier);
    if (!decided) file.raise("open", decided.error());
    auto const& [common, target] = *decided;

    auto writer = make_log(file, tier, common, target);
    auto status = session.agreement().agree(writer ? core::Status() : tl::unexpected(writer.error()));
    core::Result<core::Descriptor> marker;
    if (status) {
        marker = make_marker(file, common, target, writer->place().directory);
        status = session.agreement().agree(marker ? core::Status() : tl::unexpected(marker.error()));
    }
    if (!status) {
        take_away(file, tier, writer, common);
        status.error().text = "stage: " + status.error().text;
        if (status.error().code != Errc::no_space) file.raise("open", status.error());
        if (team.rank() == 0) core::warn(fmt::format("{}: {}: the file is not staged", file.path, status.error().text));
        return nullptr;
    }
    writer->limit(limit_of(file, (*tier)->traits()));
    stage::Stage stage(std::move(*writer), stage::overflow_place(target, static_cast<std::uint32_t>(team.rank())),
                       sync_of(file));
    stage.writer().note_changes(clock_ahead_ns(file, *marker), sync_of(file) != StageSync::sync);
    std::unique_ptr<Staging> staging(new Staging(file, account, std::move(stage), (*tier)->traits().name, target));
    staging->settle(std::move(*marker));
    staging->creating_ = watch.seconds();
    return staging;
}

/// Completes a staged file after all ranks have their logs.
void Staging::settle(core::Descriptor marker)
{
    if (marker) {
        if (auto held = stage::keep_held(marker))
            held_ = std::move(*held);
        else
            marker_ = std::move(marker);
    }
    file_.lazy_target.tell_changes(stage_.writer().changes());
    launch_background_drainer();
    meet_neighbours();
    (void)rest();
}

/// The pairs of files that this node's ranks append to.
std::vector<stage::LogPlace> Staging::logs_of_node() const
{
    auto const& place = stage_.writer().place();
    if (shared()) return {place};
    auto const& team = file_.session->team();
    std::vector<stage::LogPlace> logs;
    for (auto const rank : team.nodes()[static_cast<std::size_t>(team.my_node())])
        logs.push_back({place.directory, stage::log_name(StageMapping::process, static_cast<std::uint32_t>(rank))});
    return logs;
}

void Staging::meet_neighbours()
{
    std::vector<stage::NodeLogs::Log> logs;
    auto const& team = file_.session->team();
    if (team.node_size() == 1) return;
    for (auto& place : logs_of_node()) logs.push_back({std::move(place)});
    auto const& ranks = team.nodes()[static_cast<std::size_t>(team.my_node())];
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        auto& log = logs[shared() ? 0 : i];
        auto const rank = static_cast<std::uint32_t>(ranks[i]);
        log.users.push_back({rank, stage::overflow_place(target_, rank)});
        log.own = !shared() && ranks[i] == team.rank();
    }
    stage_.meet(stage::NodeLogs(std::move(logs)));
}

/// If the drainer cannot be started, everything is left to the flush.
void Staging::launch_background_drainer()
{
    auto const wish = file_.settings.options.stage_drain.value_or("off");
    draining_ = wish != "off";
    if (!draining_) return;
    stage_.mark_doubtful();
    auto const& team = file_.session->team();
    if (team.node_rank() != 0) return;
    auto target = file_.lazy_target.open_again();
    if (!target) return;
    (*target)->tell_changes(stage_.writer().changes());
    stage::BackgroundDrainer::DrainSettings background_drainer;
    auto const wanted = static_cast<std::int64_t>(file_.settings.options.buffersize.value_or(core::MiB));
    background_drainer.block_bytes =
        core::align_up(std::max(file_.storage.stripe_bytes, wanted), file_.storage.block_bytes);
    background_drainer.rate = core::parse_bytes(wish).value_or(0);
    background_drainer.logs = logs_of_node();
    for (auto const rank : team.nodes()[static_cast<std::size_t>(team.my_node())])
        background_drainer.beside.push_back(stage::overflow_place(target_, static_cast<std::uint32_t>(rank)));
    background_drainer_ = std::make_unique<stage::BackgroundDrainer>(std::move(background_drainer), std::move(*target),
                                                                     file_.session->core_set());
    if (!background_drainer_->launch()) background_drainer_.reset();
}

}  // namespace tapioca::flush
