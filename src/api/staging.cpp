#include "api/staging.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "api/drain.hpp"
#include "api/state.hpp"
#include "core/host.hpp"
#include "core/units.hpp"
#include "target/range_lock.hpp"

namespace tapioca::api {

namespace {

/// What rank 0 decides for all logs of a file. The target's path follows.
struct Common {
    stage::Identity identity;
    stage::Mapping mapping;
    std::uint64_t device;
    std::uint64_t inode;
};

/// The tier of this node that the log shall be on.
core::Result<std::unique_ptr<machine::Tier>> find_tier(FileState const& file)
{
    std::vector<machine::TierTraits> here;
    for (auto const& tier : file.around->tiers)
        if (tier.traits) here.push_back(*tier.traits);
    auto const traits = machine::choose_tier(*file.settings.options.stage, here);
    if (!traits) return tl::unexpected(traits.error());
    return machine::make_tier(*traits);
}

/// Servers that a whole machine shares suffer under many files.
bool is_shared(std::string const& directory)
{
    stage::Descriptor const probe(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!probe) return false;
    auto const storage = machine::storage_of(probe.get());
    return storage && storage->remote;
}

stage::Mapping mapping_of(FileState const& file, std::string const& directory)
{
    auto const& wish = file.settings.options.stage_mapping;
    bool const by_node = wish ? *wish == "node" : is_shared(directory);
    return by_node ? stage::Mapping::node : stage::Mapping::process;
}

stage::Durable durable_of(FileState const& file)
{
    auto const wish = file.settings.options.stage_sync.value_or("sync");
    return wish == "write"        ? stage::Durable::write
           : wish == "collective" ? stage::Durable::collective
                                  : stage::Durable::sync;
}

/// Half of what a memory tier has is the program's.
std::uint64_t limit_of(FileState const& file, machine::TierTraits const& tier)
{
    if (auto const limit = file.settings.options.stage_size) return *limit;
    if (machine::is_device(tier)) return UINT64_MAX;
    return machine::free_bytes(tier) / 2 / static_cast<std::uint64_t>(file.pool->team().node_size());
}

stage::Head head_of(FileState const& file, Common const& common, std::string const& target)
{
    auto const& team = file.pool->team();
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

/// This rank's log, or its part of the node's. Collective over the node's ranks.
core::Result<stage::Writer> make_log(FileState const& file, core::Result<std::unique_ptr<machine::Tier>> const& tier,
                                     Common const& common, std::string const& target)
{
    auto const& team = file.pool->team();
    bool const shared = common.mapping == stage::Mapping::node;
    core::Result<stage::Writer> writer = core::fail(Errc::io, "another rank's log");
    stage::Place place;
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
            writer = stage::Writer::create(place, head_of(file, common, target));
            if (!writer) status = tl::unexpected(writer.error());
        }
        if (status) status = (*tier)->bind(writer->data_descriptor());
    }
    if (shared) {  // the others find it there
        auto const made = file.pool->agree(status);
        if (made && team.node_rank() != 0) writer = stage::Writer::join(place, static_cast<std::uint32_t>(team.rank()));
        if (!made && !writer) status = made;
    }
    if (!status) {
        if (writer) (void)stage::remove_log(writer->place());
        return tl::unexpected(status.error());
    }
    return writer;
}

/// The marker, on rank 0, once all logs are there. Collective.
core::Result<stage::Descriptor> make_marker(FileState& file, Common const& common, std::string const& target,
                                            std::string const& directory)
{
    auto const& team = file.pool->team();
    auto const texts = team.gather_texts(core::host_name() + "\n" + directory);
    if (team.rank() != 0) return stage::Descriptor();
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
    // The marker is the last thing that may fail, and then the file should keep its content.
    auto const beside = target.substr(0, target.rfind('/') + 1);
    bool const empties = file.mode == Mode::create && file.first.identity.bytes > 0;
    if (empties && ::geteuid() == ::getuid() && ::access(beside.c_str(), W_OK | X_OK) != 0)
        return core::fail_errno(errno, "making a marker in " + beside);
    if (auto const emptied = file.make_empty(); !emptied) return tl::unexpected(emptied.error());
    bool const lasting = durable_of(file) != stage::Durable::sync;
    // What the log says is of a file that was emptied, perhaps, and not of what it had before.
    if (auto status = lasting ? file.target()->sync() : core::Status(); !status) return tl::unexpected(status.error());
    auto const facts = stage::facts_of(target::descriptor(*file.target()));
    if (!facts) return tl::unexpected(facts.error());
    marker.noted = {0, 1, stage::Noted::State::left, *facts};
    return stage::create_marker(marker, lasting);
}

/// Staged files that this process has open.
std::atomic<int> open_files = 0;
/// From the first to behind the last byte; an empty range at the beginning if there is none.
std::pair<std::int64_t, std::int64_t> range_of(stage::Stage::Write const& write)
{
    auto begin = pattern::no_offset;
    std::int64_t end = 0;
    for (auto const& layout : write.variable.layouts()) {
        if (layout.pieces() == 0) continue;
        begin = std::min(begin, layout.base + layout.entries.front().offset);
        end = std::max(end, layout.end());
    }
    if (end == 0) return {0, 0};
    return {begin + write.shift, end + write.shift};
}

/// Whether what a host has written gets to the file, and the time of its last change, when the host finds time for it.
bool arrives_late(machine::Storage const& storage)
{
    return storage.name == "nfs" || storage.name == "smb" || storage.name == "9p" || storage.name == "fuse" ||
           storage.name == "unknown";
}

/// How far the clock of the file's times is ahead of the hosts'. Collective.
std::int64_t clock_ahead_ns(FileState const& file, stage::Descriptor const& marker)
{
    if (!file.storage.remote) return 0;
    std::array<std::int64_t, 1> ahead = {file.pool->team().rank() == 0 ? stage::clock_ahead_ns(marker) : INT64_MAX};
    return file.pool->least(ahead) ? ahead[0] : 0;
}

void warn(std::string const& text)
{
    std::fprintf(stderr, "tapioca: %s\n", text.c_str());
}

}  // namespace

std::unique_ptr<Staging> Staging::open(FileState& file)
{
    auto const& options = file.settings.options;
    if (!options.stage || file.mode == Mode::read || options.devnull.value_or(false)) return nullptr;
    auto const start = MPI_Wtime();
    auto& pool = *file.pool;
    auto const& team = pool.team();
    auto const tier = find_tier(file);

    std::string told;
    if (team.rank() == 0) {
        struct stat found = {};
        ::fstat(target::descriptor(*file.target()), &found);
        Common const common{stage::new_identity(),
                            tier ? mapping_of(file, (*tier)->directory()) : stage::Mapping::process, found.st_dev,
                            found.st_ino};
        told.assign(reinterpret_cast<char const*>(&common), sizeof common);
        told += stage::resolved(file.place);
    }
    auto const heard = pool.broadcast(std::move(told));
    if (!heard) file.raise("open", heard.error());
    Common common;
    std::memcpy(&common, heard->data(), sizeof common);
    auto const target = heard->substr(sizeof common);

    auto writer = make_log(file, tier, common, target);
    auto status = pool.agree(writer ? core::Status() : tl::unexpected(writer.error()));
    core::Result<stage::Descriptor> marker;
    if (status) {
        marker = make_marker(file, common, target, writer->place().directory);
        status = pool.agree(marker ? core::Status() : tl::unexpected(marker.error()));
    }
    if (!status) {
        if (writer) (void)stage::remove_log(writer->place());
        (void)pool.agree({});  // the directory is empty once all have removed theirs
        if (tier)
            if (auto const directory = stage::directory_of((*tier)->directory(), common.identity))
                stage::remove_directory(*directory);
        status.error().text = "stage: " + status.error().text;
        if (status.error().code != Errc::no_space) file.raise("open", status.error());
        if (team.rank() == 0)
            warn(fmt::format("{}: {}: the file goes without the stage", file.path, status.error().text));
        return nullptr;
    }
    writer->limit(limit_of(file, (*tier)->traits()));
    std::unique_ptr<Staging> staging(new Staging(
        file,
        stage::Stage(std::move(*writer), stage::overflow_place(target, static_cast<std::uint32_t>(team.rank())),
                     durable_of(file)),
        (*tier)->traits().name, target));
    staging->stage_.writer().note_changes(clock_ahead_ns(file, *marker), durable_of(file) != stage::Durable::sync);
    ++open_files;
    if (*marker) {
        if (auto held = stage::keep_held(*marker))
            staging->held_ = std::move(*held);
        else
            staging->marker_ = std::move(*marker);
    }
    if (auto* const opened = file.target_if_open()) opened->tell_changes(staging->stage_.writer().changes());
    staging->launch_agent();
    staging->meet_neighbours();
    (void)staging->rest();
    staging->creating_ = MPI_Wtime() - start;
    return staging;
}

/// Giving memory back takes about as long as filling it did, and nobody need wait for it.
static void give_back(stage::Stage stage, std::shared_ptr<stage::Content> content)
{
    if (stage.writer().used_bytes() < core::MiB) return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it
    try {
        auto kept = std::make_shared<stage::Stage>(std::move(stage));
        std::thread([a = std::move(kept), b = std::move(content)] {}).detach();
    } catch (std::system_error const&) {  // then here and now
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Staging::~Staging()
{
    --open_files;
    if (removed_) give_back(std::move(stage_), std::move(flushed_));
}

/// The pairs of files that this node's ranks append to.
std::vector<stage::Place> Staging::logs_of_node() const
{
    auto const& place = stage_.writer().place();
    if (shared()) return {place};
    auto const& team = file_.pool->team();
    std::vector<stage::Place> logs;
    for (auto const rank : team.nodes()[static_cast<std::size_t>(team.my_node())])
        logs.push_back({place.directory, stage::log_name(stage::Mapping::process, static_cast<std::uint32_t>(rank))});
    return logs;
}

void Staging::meet_neighbours()
{
    std::vector<stage::Neighbours::Log> logs;
    auto const& team = file_.pool->team();
    if (team.node_size() == 1) return;
    for (auto& place : logs_of_node()) logs.push_back({std::move(place)});
    auto const& ranks = team.nodes()[static_cast<std::size_t>(team.my_node())];
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        auto& log = logs[shared() ? 0 : i];
        auto const rank = static_cast<std::uint32_t>(ranks[i]);
        log.users.push_back({rank, stage::overflow_place(target_, rank)});
        log.own = !shared() && ranks[i] == team.rank();
    }
    stage_.meet(stage::Neighbours(std::move(logs)));
}

/// Without it, all is left to the flush.
void Staging::launch_agent()
{
    auto const wish = file_.settings.options.stage_drain.value_or("off");
    draining_ = wish != "off";
    if (!draining_) return;
    stage_.taint();
    auto const& team = file_.pool->team();
    if (team.node_rank() != 0) return;
    auto target = file_.open_again();
    if (!target) return;
    (*target)->tell_changes(stage_.writer().changes());
    stage::Agent::Wish agent;
    auto const wanted = static_cast<std::int64_t>(file_.settings.options.buffersize.value_or(core::MiB));
    agent.block_bytes = core::align_up(std::max(file_.storage.stripe_bytes, wanted), file_.storage.block_bytes);
    agent.rate = core::parse_bytes(wish).value_or(0);
    agent.logs = logs_of_node();
    for (auto const rank : team.nodes()[static_cast<std::size_t>(team.my_node())])
        agent.beside.push_back(stage::overflow_place(target_, static_cast<std::uint32_t>(rank)));
    agent_ = std::make_unique<stage::Agent>(std::move(agent), std::move(*target), file_.pool->core_set());
    if (!agent_->launch()) agent_.reset();
}

core::Status Staging::write_to_target(stage::Stage::Write const& write)
{
    auto* const target = file_.target();
    if (!target) return file_.target_status();
    core::Status status;
    auto const& layouts = write.variable.layouts();
    bool const one_piece = layouts.size() == 1 && layouts[0].pieces() == 1;
    auto const [begin, end] = range_of(write);
    // One piece needs no lock, as it needs none with the MPI library.
    target::RangeLock const lock(*target, begin, one_piece ? begin : end);
    for (auto const& layout : layouts) {
        pattern::Cursor cursor(layout);
        for (pattern::Run run; cursor.next(pattern::no_offset, run);)
            for (std::int64_t i = 0; i < run.count && status; ++i)
                status = target->write(
                    write.shift + run.offset + i * run.stride,
                    std::span(write.data + run.buffer + i * run.buffer_stride, static_cast<std::size_t>(run.length)));
    }
    return status;
}

/// Once for each node.
void Staging::warn_if_full()
{
    if (!stage_.take_warning()) return;
    auto const& directory = stage_.writer().place().directory;
    auto const first = stage::create_private(directory + "/full");
    if (first || first.error().sys_errno != EEXIST)
        warn(fmt::format("{}: the log in {} is full, and goes on beside the file until the next flush", file_.path,
                         directory));
}

void Staging::note_failure(core::Status const& status)
{
    core::keep_first(failed_, status);
}

/// What can never get into the file must not get into the log, where it would keep all else from being flushed.
core::Status Staging::check_reach(stage::Stage::Write const& write)
{
    auto const end = range_of(write).second;
    if (end <= reach_) return {};
    auto* const target = file_.target();
    if (!target) return file_.target_status();
    reach_ = std::min(target::longest_file(target::descriptor(*target)), stage::longest_file);
    return end <= reach_ ? core::Status() : core::fail_errno(EFBIG, fmt::format("a write that ends at byte {}", end));
}

core::Status Staging::write(stage::Stage::Write const& write)
{
    auto status = check_reach(write);
    if (status) status = stage_.write(write);
    warn_if_full();
    if (write.collective) core::keep_first(failed_, status);
    return status;
}

core::Status Staging::write_through(stage::Stage::Write const& write, bool beside_others)
{
    auto status = [&] {
        // Else the agent, or another handle's hand-over, could write older bytes between the two.
        stage::Lock const lock(draining_ || beside_others ? stage_.writer().place().directory : std::string());
        return stage_.write_through(write, [&] { return write_to_target(write); });
    }();
    if (status && stage_.durable() == stage::Durable::write) status = file_.target()->sync();
    if (write.collective) core::keep_first(failed_, status);
    return status;
}

core::Status Staging::hand_over(stage::Stage::Next next, bool durable)
{
    if (next == stage::Stage::Next::write) touch();
    if (stage_.empty()) return {};
    auto* const target = file_.target();
    if (!target) return file_.target_status();
    // Else the agent could write these bytes after whatever is done next, or this rank over what another writes now.
    stage::Lock const lock(stage_.writer().place().directory);
    target::RangeLock const range(*target, stage_.begin(), stage_.end());
    bool const lasting = durable || (next == stage::Stage::Next::write && stage_.durable() != stage::Durable::sync);
    auto const status = stage_.hand_over(*target, next, lasting);
    warn_if_full();
    return status;
}

/// Of many files, the target is open only while it is used, so that they do not need more descriptors than a process
/// may have. Local.
core::Status Staging::rest()
{
    constexpr int few = 8;
    return open_files > few ? file_.close_target() : core::Status();
}

/// Notes that all logs may be forgotten. Collective.
core::Status Staging::commit(bool durable)
{
    auto& pool = *file_.pool;
    auto const& team = pool.team();
    bool const lasting = durable || stage_.durable() != stage::Durable::sync;
    bool const syncs = lasting || arrives_late(file_.storage);  // else the file changes after it is noted what it is
    core::Status status;
    if (syncs && team.node_rank() == 0) {
        auto* const target = file_.target();
        status = target ? target->sync() : file_.target_status();
    }
    if (syncs) status = pool.agree(status);
    if (status && team.rank() == 0) {
        auto* const target = file_.target();
        auto const facts =
            target ? stage::facts_of(target::descriptor(*target)) : tl::unexpected(file_.target_status().error());
        if (!facts) status = tl::unexpected(facts.error());
        // The first note was the marker's making.
        stage::Noted noted{stage_.epoch(), flushes_ + 2, stage::Noted::State::left, {}};
        if (facts) noted.file = *facts;
        if (status)
            status = marker_ ? stage::note(marker_, noted, lasting) : stage::note(held_, target_, noted, lasting);
    }
    status = pool.agree(status);
    ++flushes_;
    return status;
}

/// Empties the logs. Collective.
core::Status Staging::empty()
{
    auto& pool = *file_.pool;
    bool const first = !shared() || pool.team().node_rank() == 0;
    auto status = pool.agree(first ? stage_.reset(true) : core::Status());
    if (!first) note_failure(stage_.reset(false));
    if (status && draining_) stage_.taint();
    // Some log would be read as empty, whatever came into it.
    if (!status) stage_.give_up("the log could not be emptied and is not used any more");
    auto place = stage_.writer().check_place();
    if (!place) place = stage_.writer().check_place();  // the look itself may have failed
    if (!place) stage_.give_up(place.error().text + ", and nothing can be staged any more");
    return status;
}

/// Whether a log of this node goes on beside the target.
bool Staging::overflows() const
{
    auto const& team = file_.pool->team();
    for (auto const rank : team.nodes()[static_cast<std::size_t>(team.my_node())])
        if (::access(stage::overflow_place(target_, static_cast<std::uint32_t>(rank)).meta().c_str(), F_OK) == 0)
            return true;
    return false;
}

/// What this node's agent has drained. Collective over the node.
std::vector<Extent> Staging::pause_agent()
{
    std::string text;
    if (agent_) {
        auto done = agent_->pause();
        if (overflows()) done.clear();  // the agent has not seen those logs
        text.assign(reinterpret_cast<char const*>(done.data()), done.size() * sizeof done[0]);
    }
    text = comm::broadcast(file_.pool->team().node(), std::move(text));
    std::vector<Extent> done(text.size() / sizeof(Extent));
    if (!done.empty()) std::memcpy(done.data(), text.data(), text.size());
    return done;
}

core::Status Staging::drain(stage::Content& content)
{
    std::vector<Extent> done;
    if (draining_) done = pause_agent();
    return Drain(file_.shared_from_this(), content, std::move(done), {}).all();
}

core::Status Staging::flush(bool durable)
{
    auto const status = flush(durable, false);
    return status ? tell_failures() : status;
}

/// What went wrong on some rank since the last time, for all to hear. Collective.
core::Status Staging::tell_failures()
{
    auto const status = file_.pool->agree(failed_);
    failed_ = {};
    return status;
}

core::Status Staging::flush(bool durable, bool closing)
{
    engine::Stopwatch const watch(flushing_);
    auto& pool = *file_.pool;
    if (shared() || draining_) (void)pool.agree({});  // nobody adds to the log while others look at it
    auto const content = stage_.content();
    std::array<std::int64_t, 2> all = {content ? 0 : -1, stage_.empty() ? 0 : -1};
    auto status = pool.least(all);
    if (status && all[0] != 0) status = pool.agree(content ? core::Status() : tl::unexpected(content.error()));
    bool flushed = false;
    if (status && all[1] != 0) {
        status = drain(**content);
        if (status) {
            status = commit(durable);
            stage_.advance();  // what comes now is later than what was noted, whether that worked or not
            flushed = status.has_value();
        }
        if (status && !closing) status = empty();
        if (status && closing) flushed_ = *content;
        if (agent_ && !closing) agent_->resume(flushed);
        if (!closing) note_failure(rest());
    }
    if (!status) {
        std::array<std::int64_t, 1> there = {stage_.writer().check_place() ? 1 : 0};
        bool const kept = pool.least(there).has_value() && there[0] == 1;
        status.error().text +=
            kept ? fmt::format(
                       "; what was staged is still in the log: `tapioca log recover {}` brings it into the file "
                       "later",
                       target_)
                 : "; what was staged is lost when the program ends: somebody has removed a log, or moved it away";
    }
    return status;
}

core::Status Staging::flush_before_read(std::int64_t begin, std::int64_t end)
{
    std::int64_t size = 0;
    if (auto* const target = file_.pool->team().rank() == 0 ? file_.target() : nullptr)
        size = static_cast<std::int64_t>(target->size().value_or(0));
    std::array<std::int64_t, 5> values = {begin, -end, stage_.begin(), -stage_.end(), -size};
    if (auto status = file_.pool->least(values); !status) return status;
    auto const reading_end = -values[1];
    auto const staged_end = -values[3];
    // Also where the log makes the file longer, and the read would end too early.
    bool const longer = staged_end > -values[4] && reading_end > -values[4];
    bool const touches = values[0] < staged_end && (values[2] < reading_end || longer);
    return touches ? flush(false) : core::Status();
}

std::int64_t Staging::end()
{
    std::array<std::int64_t, 1> value = {-stage_.end()};
    return file_.pool->least(value) ? -value[0] : stage_.end();
}

core::Status Staging::close()
{
    auto& pool = *file_.pool;
    auto status = flush(false, true);
    drained_bytes_ = agent_ ? agent_->drained_bytes() : 0;
    agent_.reset();
    if (!status) return status;
    if (pool.team().rank() == 0) status = stage::remove_marker(target_, stage_.durable() != stage::Durable::sync);
    status = pool.agree(status);
    if (!status) return status;
    status = stage_.remove(!shared() || pool.team().node_rank() == 0);
    status = pool.agree(status);
    stage::remove_directory(stage_.writer().place().directory);
    removed_ = status.has_value();
    auto const failures = tell_failures();
    return status ? failures : status;
}

std::string Staging::account()
{
    auto const& totals = stage_.totals;
    auto const& team = file_.pool->team();
    auto const sums = team.sum({totals.requests, totals.bytes, totals.through, totals.overflow, drained_bytes_});
    auto const micros = [](double seconds) { return -static_cast<std::int64_t>(seconds * 1e6); };
    std::array<std::int64_t, 3> times = {micros(creating_), micros(totals.seconds), micros(flushing_)};
    (void)file_.pool->least(times);
    auto const seconds = [&](std::size_t i) { return -static_cast<double>(times[i]) / 1e6; };
    return nlohmann::ordered_json{{"tier", tier_},
                                  {"directory", stage_.writer().place().directory},
                                  {"mapping", shared() ? "node" : "process"},
                                  {"requests", sums[0]},
                                  {"bytes", sums[1]},
                                  {"requests_past_the_log", sums[2]},
                                  {"requests_logged_beside_the_file", sums[3]},
                                  {"drained_in_the_background_bytes", sums[4]},
                                  {"flushes", flushes_},
                                  // of the slowest rank
                                  {"creating_seconds", seconds(0)},
                                  {"logging_seconds", seconds(1)},
                                  {"flushing_seconds", seconds(2)}}
        .dump();
}

}  // namespace tapioca::api
