#include "flush/staging.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/output.hpp"
#include "core/stopwatch.hpp"
#include "core/units.hpp"
#include "flush/log_flush.hpp"

namespace tapioca::flush {

namespace {

/// The number of staged files that this process has open.
std::atomic<int> open_files = 0;

/// Releasing memory takes about as long as filling it did, so a thread does it and nobody has to wait.
void give_back(stage::Stage stage, std::shared_ptr<stage::LogContent> content)
{
    if (stage.writer().used_bytes() < core::MiB) return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits the mask
    try {
        auto kept = std::make_shared<stage::Stage>(std::move(stage));
        std::thread([a = std::move(kept), b = std::move(content)] {}).detach();
    } catch (std::system_error const&) {  // then release it here
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

std::string never_closed(std::string const& path)
{
    return fmt::format(
        "{}: was never closed: the data written since its last flush is in its log, and `tapioca log "
        "recover {}` writes it to the file",
        path, core::shell_word(path));
}

Staging::Staging(file::OpenFile& file, report::Account& account, stage::Stage stage, std::string tier,
                 std::string target)
    : file_(file), account_(account), stage_(std::move(stage)), tier_(std::move(tier)), target_(std::move(target))
{
    ++open_files;
}

Staging::~Staging()
{
    file_.lazy_target.tell_changes(nullptr);  // the time is recorded in the log
    --open_files;
    if (removed_) give_back(std::move(stage_), std::move(flushed_));
}

/// If there are many files, the target is open only while it is used, so that they do not need more descriptors than a
/// process may have. Local.
core::Status Staging::rest()
{
    constexpr int few = 8;
    return open_files > few ? file_.lazy_target.close() : core::Status();
}

/// Notes in the marker that everything in the logs was flushed. Collective.
core::Status Staging::commit(bool durable)
{
    auto& session = *file_.session;
    auto const& team = session.team();
    bool const lasting = durable || stage_.stage_sync() != StageSync::sync;
    bool const syncs = lasting || !file_.storage.coherent;  // otherwise the file would change after its state was noted
    core::Status status;
    if (syncs && file_.sync_chunks) status = file_.sync_chunks();
    if (status && syncs && (team.node_rank() == 0 || file_.set)) {  // a rank has opened some of a set's files
        auto* const target = file_.target();
        status = target ? target->sync() : file_.target_status();
    }
    if (status && syncs && file_.set && background_drainer_) status = background_drainer_->sync();
    if (syncs) status = session.agreement().agree(status);
    if (status && team.rank() == 0) {
        auto* const target = file_.target();
        auto const facts =
            target ? stage::facts_of(target->descriptor()) : tl::unexpected(file_.target_status().error());
        if (!facts) status = tl::unexpected(facts.error());
        // The first note was written when the marker was made.
        stage::Noted noted{stage_.epoch(), flushes_ + 2, stage::Noted::State::left, {}};
        if (facts) noted.file = *facts;
        if (status)
            status = marker_ ? stage::note(marker_, noted, lasting) : stage::note(held_, target_, noted, lasting);
    }
    status = session.agreement().agree(status);
    ++flushes_;
    return status;
}

/// Empties the logs. Collective.
core::Status Staging::empty()
{
    auto& session = *file_.session;
    bool const first = !shared() || session.team().node_rank() == 0;
    auto status = session.agreement().agree(first ? stage_.reset(true) : core::Status());
    if (!first) note_failure(stage_.reset(false));
    if (status && draining_) stage_.mark_doubtful();
    // Some log would be read as empty, whatever is added to it.
    if (!status) stage_.give_up("the log could not be emptied and is not used any more");
    auto place = stage_.writer().check_place();
    if (!place) place = stage_.writer().check_place();  // checking may itself have failed
    if (!place) stage_.give_up(place.error().text + ", and nothing can be staged any more");
    return status;
}

/// Whether a log of this node continues beside the target.
bool Staging::overflows() const
{
    auto const& team = file_.session->team();
    for (auto const rank : team.nodes()[static_cast<std::size_t>(team.my_node())])
        if (::access(stage::overflow_place(target_, static_cast<std::uint32_t>(rank)).meta().c_str(), F_OK) == 0)
            return true;
    return false;
}

/// The parts of the file that this node's background drainer has written. Collective over the node.
std::vector<Extent> Staging::pause_background_drainer()
{
    std::string text;
    if (background_drainer_) {
        auto done = background_drainer_->pause();
        if (overflows()) done.clear();  // the background drainer has not read those logs
        text.assign(reinterpret_cast<char const*>(done.data()), done.size() * sizeof done[0]);
    }
    text = comm::broadcast(file_.session->team().node(), std::move(text));
    std::vector<Extent> done(text.size() / sizeof(Extent));
    if (!done.empty()) std::memcpy(done.data(), text.data(), text.size());
    return done;
}

core::Status Staging::drain(stage::LogContent& content)
{
    advance();
    std::vector<Extent> done;
    if (draining_) done = pause_background_drainer();
    return LogFlush(file_, account_, content, std::move(done), {}).all();
}

core::Status Staging::flush(bool durable)
{
    auto const status = flush(durable, false);
    return status ? tell_failures() : status;
}

/// Tells all ranks of failures on any rank since the last time. Collective.
core::Status Staging::tell_failures()
{
    auto const status = file_.session->agreement().agree(failed_);
    failed_ = {};
    return status;
}

core::Status Staging::flush(bool durable, bool closing)
{
    core::Stopwatch const watch(flushing_);
    auto& session = *file_.session;
    reads_since_flush_ = 0;
    if (shared() || draining_) (void)session.agreement().agree({});  // nobody appends to the log while others read it
    auto const content = stage_.content();
    std::array<std::int64_t, 2> all = {content ? 0 : -1, stage_.empty() ? 0 : -1};
    auto status = session.agreement().least(all);
    if (status && all[0] != 0)
        status = session.agreement().agree(content ? core::Status() : tl::unexpected(content.error()));
    bool flushed = false;
    if (status && all[1] != 0) {
        status = drain(**content);
        if (status) {
            status = commit(durable);
            stage_.advance();  // later requests come after what was noted, whether or not this succeeded
            flushed = status.has_value();
        }
        if (status && !closing) status = empty();
        if (status && closing) flushed_ = *content;
        if (background_drainer_ && !closing) background_drainer_->resume(flushed);
        if (!closing) note_failure(rest());
    }
    if (!status) {
        std::array<std::int64_t, 1> there = {stage_.writer().check_place() ? 1 : 0};
        bool const kept = session.agreement().least(there).has_value() && there[0] == 1;
        status.error().text +=
            kept ? fmt::format(
                       "; the staged data is still in the log: `tapioca log recover {}` writes it to the file "
                       "later",
                       core::shell_word(target_))
                 : "; the staged data is lost when the program ends: somebody has removed a log, or moved it away";
    }
    return status;
}

std::int64_t Staging::end()
{
    std::array<std::int64_t, 1> value = {-stage_.end()};
    return file_.session->agreement().least(value) ? -value[0] : stage_.end();
}

core::Status Staging::close()
{
    auto& session = *file_.session;
    auto status = flush(false, true);
    drained_bytes_ = background_drainer_ ? background_drainer_->drained_bytes() : 0;
    background_drainer_.reset();
    if (!status) return status;
    // Wherever the job is killed from here on, no log is left that a later job takes for one with data: the logs read
    // as empty before the marker is removed, and the marker is removed before the logs.
    bool const first_user = !shared() || session.team().node_rank() == 0;
    stage_.finish(first_user);
    if (shared()) (void)session.agreement().agree({});
    status = session.agreement().agree(stage_.remove_overflow());
    if (!status) return status;
    bool const first = session.team().rank() == 0;
    status = session.agreement().agree(first ? stage::remove_marker(target_) : core::Status());
    if (!status) return status;
    if (first && stage_.stage_sync() != StageSync::sync) status = stage::keep_marker_away(target_);
    core::keep_first(status, stage_.remove(first_user));
    status = session.agreement().agree(status);
    stage::remove_directory(stage_.writer().place().directory);
    removed_ = status.has_value();
    auto const failures = tell_failures();
    return status ? failures : status;
}

std::string Staging::figures()
{
    auto const& totals = stage_.totals;
    auto const& team = file_.session->team();
    auto const sums =
        team.sum({totals.requests, totals.bytes, totals.through, totals.overflow, drained_bytes_, fetched_.bytes});
    auto const micros = [](double seconds) { return -static_cast<std::int64_t>(seconds * 1e6); };
    std::array<std::int64_t, 3> times = {micros(creating_), micros(totals.seconds), micros(flushing_)};
    (void)file_.session->agreement().least(times);
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
                                  {"reads_without_flush", reads_without_flush_},
                                  {"read_from_other_nodes_bytes", sums[5]},
                                  // of the slowest rank
                                  {"creating_seconds", seconds(0)},
                                  {"logging_seconds", seconds(1)},
                                  {"flushing_seconds", seconds(2)}}
        .dump();
}

}  // namespace tapioca::flush
