// tapioca-recover: the MPI program behind `tapioca log recover`. One process is enough if it sees all logs.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "core/output.hpp"
#include "core/units.hpp"
#include "deal.hpp"
#include "declared/file_state.hpp"
#include "flush/log_flush.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "sign.hpp"
#include "subfile/join.hpp"
#include "subfile/recover.hpp"

namespace {

namespace declared = tapioca::declared;
namespace flush = tapioca::flush;
namespace comm = tapioca::comm;
namespace core = tapioca::core;
namespace stage = tapioca::stage;
using recover::LogView;
using tapioca::Errc;

/// How to ask this MPI's launcher for one process per host.
#ifdef OPEN_MPI
constexpr auto one_a_host = "mpiexec --map-by ppr:1:node";
#else
constexpr auto one_a_host = "mpiexec -ppn 1";
#endif

struct RecoverArguments {
    std::string target;
    bool partial = false;
    bool force = false;
    bool live = false;
};

int processes()
{
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

int me()
{
    return comm::world_rank();
}

std::uint64_t sum(std::uint64_t value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

/// All processes' lines, sorted, without duplicates. Collective; the same on every process.
std::vector<std::string> gather(std::vector<std::string> const& mine)
{
    auto const text = fmt::format("{}\n", fmt::join(mine, "\n"));
    std::set<std::string> all;
    for (int p = 0; p < processes(); ++p) {
        auto bytes = static_cast<std::uint64_t>(text.size());
        MPI_Bcast(&bytes, 1, MPI_UINT64_T, p, MPI_COMM_WORLD);
        auto from = p == me() ? text : std::string(bytes, '\0');
        MPI_Bcast(from.data(), static_cast<int>(bytes), MPI_CHAR, p, MPI_COMM_WORLD);
        for (std::size_t at = 0, end = 0; at < from.size(); at = end + 1) {
            end = from.find('\n', at);
            if (end > at) all.insert(from.substr(at, end - at));
        }
    }
    return {all.begin(), all.end()};
}

/// "rank 3", "ranks 0 to 3", "ranks 0, 2 and 4".
std::string to_text(std::vector<std::uint32_t> const& ranks)
{
    if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
    bool const row = ranks.back() - ranks.front() + 1 == ranks.size();
    if (row) return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
    return fmt::format("ranks {}", fmt::join(ranks, ", "));
}

/// A recovery, step by step. Every member function is collective.
class Recovery {
public:
    explicit Recovery(RecoverArguments const& arguments) : a_(arguments), progress_(me() == 0, arguments.live) {}

    /// The result is the same on every process.
    core::Result<int> run()
    {
        std::uint64_t const nothing = me() == 0 && !stage::has_marker(a_.target) ? 1 : 0;
        if (sum(nothing) != 0) return say_nothing();
        if (auto status = read_marker(); !status) return tl::unexpected(status.error());
        look();
        if (auto status = refuse_live(); !status) return tl::unexpected(status.error());
        read_logs();
        if (!tell_problems()) return 1;
        if (auto status = refuse_changed(); !status) return tl::unexpected(status.error());
        if (auto status = complete_set(); !status) return tl::unexpected(status.error());
        if (auto status = write(); !status) return tl::unexpected(status.error());
        if (auto status = clean_up(); !status) return tl::unexpected(status.error());
        return 0;
    }

private:
    core::Result<int> say_nothing() const
    {
        core::Status found;
        if (me() == 0 && ::access(a_.target.c_str(), F_OK) != 0) found = core::fail_errno(errno, a_.target);
        if (auto status = comm::agree(MPI_COMM_WORLD, found); !status) return tl::unexpected(status.error());
        if (me() == 0) fmt::print("{}: nothing to recover\n", a_.target);
        return 0;
    }

    core::Status read_marker()
    {
        auto marker = stage::read_marker(a_.target);
        core::Status status;
        if (!marker) status = tl::unexpected(marker.error());
        if (status && me() == 0) {  // during the whole recovery
            auto held = stage::open_private(stage::marker_path(a_.target), true);
            if (!held)
                status = tl::unexpected(held.error());
            else if (!stage::hold_alone(*held))
                status = core::fail(Errc::invalid_state,
                                    a_.target + ": a job that is running, or another recovery, has the file open");
            else
                marker_file_ = std::move(*held);
        }
        if (status = comm::agree(MPI_COMM_WORLD, status); !status) return status;
        marker_ = std::move(*marker);
        logs_ = stage::logs_in(marker_);
        return {};
    }

    /// Finds out which process sees which logs, and distributes them.
    void look()
    {
        std::vector<LogView> mine;
        for (auto const& log : logs_) {
            std::string why;
            mine.push_back(recover::look(log, marker_, why));
            if (mine.back() == LogView::refused) refused_.push_back(why);
        }
        views_.resize(mine.size() * static_cast<std::size_t>(processes()));
        MPI_Allgather(mine.data(), static_cast<int>(mine.size()), MPI_BYTE, views_.data(),
                      static_cast<int>(mine.size()), MPI_BYTE, MPI_COMM_WORLD);
        dealt_ = recover::deal(logs_, views_, processes());
    }

    [[nodiscard]] bool seen_as(std::size_t log, LogView view) const
    {
        for (std::size_t at = log; at < views_.size(); at += logs_.size())
            if (views_[at] == view) return true;
        return false;
    }

    [[nodiscard]] core::Status refuse_live() const
    {
        for (std::size_t log = 0; log < logs_.size(); ++log)
            if (seen_as(log, LogView::in_use))
                return core::fail(Errc::invalid_state,
                                  fmt::format("{}: {} on {} is being written: the job is still running", a_.target,
                                              logs_[log].place.meta(), logs_[log].host));
        return {};
    }

    /// Reads and checks this process's share of the logs. Errors go to problems_.
    void read_logs()
    {
        content_.after(marker_.flushed);
        std::vector<std::string> wrong = refused_;
        for (std::size_t log = 0; log < logs_.size(); ++log) {
            std::vector<std::uint32_t> mine;
            auto const& takers = dealt_[log].takers;
            for (std::size_t i = 0; i < takers.size(); ++i)
                if (takers[i] == me()) mine.push_back(logs_[log].ranks[i]);
            if (mine.empty()) continue;
            if (auto status = content_.add(logs_[log].place, mine); !status) wrong.push_back(status.error().text);
            if (auto const lost = stage::lost_continuations(logs_[log], content_.continued(logs_[log].place), logs_);
                lost > 0)
                wrong.push_back(
                    fmt::format("{}: the logs of {} went on beside the file, as {}.tapioca.rank..., and {} "
                                "of those are gone",
                                logs_[log].place.meta(), to_text(logs_[log].ranks), a_.target, lost));
        }
        progress_.begin("checking", content_.bytes());
        auto const bad = content_.verify([&](std::uint64_t bytes) { progress_.add(bytes); });
        progress_.end();
        wrong.insert(wrong.end(), content_.damage().begin(), content_.damage().end());
        wrong.insert(wrong.end(), bad.begin(), bad.end());
        damage_ = gather(wrong);
    }

    [[nodiscard]] bool is_missing(std::size_t log) const
    {
        return dealt_[log].takers.empty() && !seen_as(log, LogView::refused);
    }
    [[nodiscard]] bool is_damaged(std::size_t log) const
    {
        auto const& place = logs_[log].place;
        return std::any_of(damage_.begin(), damage_.end(), [&](std::string const& line) {
            return line.starts_with(place.meta()) || line.starts_with(place.data());
        });
    }

    /// Returns false if the recovery must end here.
    [[nodiscard]] bool tell_problems() const
    {
        std::size_t missing = 0;
        for (std::size_t log = 0; log < logs_.size(); ++log) {
            if (!is_missing(log)) continue;
            ++missing;
            if (me() == 0)
                fmt::print(stderr, "missing: {}: {} ({})\n", core::printable(logs_[log].host),
                           core::printable(logs_[log].place.meta()), to_text(logs_[log].ranks));
        }
        for (auto const& line : damage_)
            if (me() == 0) fmt::print(stderr, "damaged: {}\n", core::printable(line));
        bool const sound = missing == 0 && damage_.empty();
        if (sound || a_.partial) return true;
        if (me() == 0)
            fmt::print(stderr,
                       "tapioca: {}: {} of {} logs are missing, {} things are damaged: nothing was changed. Start a "
                       "process on every host ({} tapioca log recover), or recover the rest with --partial\n",
                       a_.target, missing, logs_.size(), damage_.size(), one_a_host);
        return false;
    }

    /// Fails if others have changed the file since, because the logs' data is older.
    core::Status refuse_changed()
    {
        auto touched = content_.touched_ns();
        MPI_Allreduce(MPI_IN_PLACE, &touched, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
        auto const requests = sum(content_.requests());
        core::Status status;
        if (me() == 0 && requests > 0) {
            auto const now = facts_now();
            if (!now) status = tl::unexpected(now.error());
            bool const known = marker_.noted.state != stage::Noted::State::nothing;
            auto const changed = now && known ? stage::changed_by_others(marker_, *now, touched) : std::nullopt;
            if (now && !known)
                fmt::print(stderr,
                           "tapioca: {}: its marker is of version 1: whether others have changed the file since cannot "
                           "be told\n",
                           core::printable(a_.target));
            if (changed && a_.force)
                fmt::print(stderr, "tapioca: {}: {}: the older data of the logs is written over it\n",
                           core::printable(a_.target), *changed);
            if (changed && !a_.force)
                status = core::fail(
                    Errc::invalid_state,
                    fmt::format(
                        "{}: {}. The data in the logs is older, so nothing was changed. `tapioca log recover --force "
                        "{}` writes it to the file nevertheless, `tapioca log discard {}` discards it",
                        a_.target, *changed, core::shell_word(a_.target), core::shell_word(a_.target)));
        }
        return comm::agree(MPI_COMM_WORLD, status);
    }

    [[nodiscard]] core::Result<stage::FileFacts> facts_now() const
    {
        stage::Descriptor const file(::open(a_.target.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) return core::fail_errno(errno, a_.target);
        return stage::facts_of(file.get());
    }

    /// A job that wrote chunks to a set of subfiles has not completed it either; only a complete set takes more.
    core::Status complete_set() const
    {
        core::Status status;
        auto const path = tapioca::subfile::resolved(a_.target);
        auto const stub =
            me() == 0 ? tapioca::subfile::find_stub(path) : core::Result<std::optional<tapioca::subfile::Stub>>();
        if (!stub) status = tl::unexpected(stub.error());
        if (stub && *stub) {
            auto const found = tapioca::subfile::recover_set(path, **stub);
            if (!found) status = tl::unexpected(found.error());
            if (found && *found)
                fmt::print(stderr, "tapioca: {}: completed its set of subfiles with {} chunks\n",
                           core::printable(a_.target), (*found)->chunks);
        }
        return comm::agree(MPI_COMM_WORLD, status);
    }

    core::Status write()
    try {
        // If the recovery is interrupted, the marker shows that it was the recovery that changed the file.
        std::optional<recover::Sign> sign;
        auto const now = facts_now();
        if (me() == 0 && now && marker_.noted.state != stage::Noted::State::nothing)
            sign.emplace(marker_file_, marker_.noted, *now);
        MPI_Barrier(MPI_COMM_WORLD);
        auto const file = declared::open_file(MPI_COMM_WORLD, a_.target, tapioca::Mode::update, {}, MPI_INFO_NULL,
                                              {.recovering = true});
        progress_.begin("writing", content_.bytes());
        auto const status =
            flush::replay(*file, file->account, content_, [&](std::uint64_t bytes) { progress_.add(bytes); });
        progress_.end();
        if (!status) return status;
        file->sync();
        file->close();
        return {};
    } catch (tapioca::file::Raised const& error) {
        return core::fail(error.failure.code, error.failure.text);
    }

    /// Removes the marker first: without logs, it would ask for a recovery that has already been made.
    core::Status clean_up()
    {
        auto const requests = sum(content_.requests());
        auto const bytes = sum(content_.bytes());
        core::Status status;
        if (me() == 0) stage::remove_unfinished(marker_);
        if (me() == 0) status = stage::remove_marker(a_.target);
        if (status = comm::agree(MPI_COMM_WORLD, status); !status) return status;
        if (me() == 0) status = stage::keep_marker_away(a_.target);
        std::uint64_t removed = 0;
        for (std::size_t log = 0; log < logs_.size(); ++log) {
            if (dealt_[log].takers.empty() || dealt_[log].takers.front() != me() || is_damaged(log)) continue;
            core::keep_first(status, stage::remove_log(logs_[log].place));
            ++removed;
        }
        status = comm::agree(MPI_COMM_WORLD, status);
        for (auto const& node : marker_.nodes) stage::remove_directory(node.directory);
        removed = sum(removed);
        if (me() != 0) return status;
        fmt::print("{}: recovered {} requests with {} of {} ranks; removed {} of {} logs and the marker\n", a_.target,
                   requests, core::format_bytes(bytes), marker_.ranks, removed, logs_.size());
        for (std::size_t log = 0; log < logs_.size(); ++log)
            if (is_damaged(log)) fmt::print("left as it is: {}\n", logs_[log].place.meta());
        return status;
    }

    RecoverArguments const& a_;
    recover::Progress progress_;
    stage::Marker marker_;
    stage::Descriptor marker_file_;
    std::vector<stage::Sought> logs_;
    std::vector<std::string> refused_;
    std::vector<LogView> views_;
    std::vector<recover::Dealt> dealt_;
    stage::LogContent content_;
    std::vector<std::string> damage_;
};

}  // namespace

int main(int argc, char** argv)
{
    RecoverArguments a;
    a.live = ::isatty(STDERR_FILENO) != 0;
    CLI::App app("Brings the logs of a staged file that was not closed into the file, and removes them.");
    app.name("tapioca log recover");
    app.add_option("TARGET", a.target, "the staged file")->required();
    app.add_flag("--partial", a.partial, "continue without logs that are missing or damaged; their data is lost");
    app.add_flag("--force", a.force, "write over what others have changed in the file since");
    app.add_flag("--live", a.live, "redraw one line of progress instead of printing many");
    if (auto const status = recover::parse(app, argc, argv)) return *status;
    constexpr std::string_view ending = ".tapioca";  // of the marker, whose name users may also give
    if (a.target.ends_with(ending) && !stage::has_marker(a.target)) a.target.resize(a.target.size() - ending.size());
    return recover::on_all_ranks(app.get_name(), argc, argv, [&] { return Recovery(a).run(); });
}
