// StageReader: streams of requests from snapshots, which are refreshed whenever all their requests were returned.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include <fmt/ranges.h>

#include <tapioca/stage.hpp>

#include "core/host.hpp"
#include "stage/find_logs.hpp"
#include "stage/snapshot.hpp"

namespace tapioca {

namespace stage {

struct Found {
    std::size_t log;
    LogRequest request;
};

namespace {

[[noreturn]] void raise(std::string const& path, core::Failure const& failure)
{
    throw Error(failure.code, -1, failure.sys_errno, path, "tapioca: " + failure.text);
}

/// Says where the logs are.
std::string nothing_here(std::string const& path, std::vector<Sought> const& logs)
{
    std::set<std::string> hosts;
    for (auto const& sought : logs) hosts.insert(sought.host);
    return fmt::format(
        "{}: none of its {} logs is on this host ({}); they are on {}: read them there, on each of these hosts", path,
        logs.size(), core::host_name(), fmt::join(hosts, ", "));
}

StagedKind kind_of(EntryKind kind)
{
    return kind == EntryKind::contiguous ? StagedKind::contiguous
           : kind == EntryKind::subarray ? StagedKind::subarray
                                         : StagedKind::layout;
}

}  // namespace

/// The logs, and how many of each rank's requests have been returned.
class Reading {
public:
    explicit Reading(std::string const& path) : path_(path)
    {
        auto finding = find_logs(path);
        if (!finding) raise(path, finding.error());
        marker_ = std::move(finding->marker);
        for (auto const& sought : finding->logs) {
            if (marker_ && !is_here(sought.place))
                missing_.push_back(sought.host + ":" + sought.place.meta());
            else
                add(sought);
        }
        if (logs_.empty()) raise(path, {Errc::not_found, 0, -1, nothing_here(path, finding->logs)});
        auto const& head = logs_.front().snapshot.image().head();
        target_ = marker_ ? finding->target : head.target;
        ranks_ = head.ranks;
    }

    std::optional<StagedRequest> next()
    {
        if (auto request = advance()) return request;
        for (auto& log : logs_) refresh(log);
        look_beside();
        at_ = 0;
        return advance();
    }

    [[nodiscard]] bool finished() const
    {
        for (auto const& log : logs_)
            if (log.snapshot.is_live()) return false;
        return true;
    }

    [[nodiscard]] std::vector<std::byte> data(StagedRequest const& request) const
    {
        auto const& found = *request.found_;
        if (found.request.gone()) raise(path_, {Errc::invalid_state, 0, -1, "the request went to the target only"});
        auto bytes = logs_.at(found.log).snapshot.data_of(found.request.note, request.generation);
        if (!bytes) raise(path_, bytes.error());
        return std::move(*bytes);
    }

    [[nodiscard]] std::string const& path() const { return path_; }
    [[nodiscard]] std::string const& target() const { return target_; }
    [[nodiscard]] std::uint32_t ranks() const { return ranks_; }
    [[nodiscard]] std::vector<std::string> const& missing() const { return missing_; }

private:
    struct Stream {
        LogImage::EntryCursor cursor;
        bool broken = false;
    };
    struct Log {
        Snapshot snapshot;
        std::map<std::uint32_t, Stream> streams;  ///< by rank
        std::vector<std::string> told;            ///< damage that was reported for the logs as a whole
        bool beside;                              ///< beside the target
    };

    void add(Sought const& sought)
    {
        auto snapshot = Snapshot::of(sought.place);
        if (!snapshot) raise(path_, snapshot.error());
        if (auto status = snapshot->check_data_head(); !status && !snapshot->is_live()) raise(path_, status.error());
        if (marker_)
            if (auto status = check_belongs(sought, snapshot->image().head(), *marker_); !status)
                raise(path_, status.error());
        logs_.push_back({std::move(*snapshot), {}, {}, sought.beside});
        settle(logs_.back());
    }

    /// Finds logs that have continued beside the target since the last call. Each flush removes such continuations.
    void look_beside()
    {
        if (!marker_) return;
        for (auto const& sought : logs_in(*marker_)) {
            if (!sought.beside) continue;
            auto const now = Snapshot::of(sought.place);
            if (!now) continue;  // removed again
            auto const known = std::any_of(logs_.begin(), logs_.end(), [&](Log const& log) {
                return log.snapshot.place().meta() == sought.place.meta() &&
                       log.snapshot.image().head().generation == now->image().head().generation;
            });
            if (!known) add(sought);
        }
    }

    /// How many of a rank's requests come before those beside the target.
    [[nodiscard]] std::uint64_t before(std::uint32_t rank) const
    {
        std::uint64_t entries = 0;
        if (logs_[at_].beside)
            for (auto const& log : logs_)
                if (auto const stream = log.streams.find(rank); !log.beside && stream != log.streams.end())
                    entries += stream->second.cursor.entries;
        return entries;
    }

    /// The next request of the snapshots as they are.
    std::optional<StagedRequest> advance()
    {
        for (; at_ < logs_.size(); ++at_) {
            auto& log = logs_[at_];
            for (auto const rank : log.snapshot.image().ranks()) {
                auto& stream = log.streams[rank];
                if (auto request = take(rank, stream)) return request;
            }
            tell_damage(log);
        }
        return {};
    }

    std::optional<StagedRequest> take(std::uint32_t rank, Stream& stream)
    {
        if (stream.broken) return {};
        auto const& image = logs_[at_].snapshot.image();
        std::string damage;
        auto const bytes = image.next(rank, stream.cursor, damage);
        if (bytes.empty() && damage.empty()) return {};
        auto request =
            bytes.empty() ? core::Result<LogRequest>(core::fail(Errc::io, damage)) : decode(bytes, image.seed());
        if (!request) {
            stream.broken = true;
            raise(path_, {Errc::io, 0, -1, logs_[at_].snapshot.place().meta() + ": " + request.error().text});
        }
        return told(rank, stream, std::move(*request));
    }

    StagedRequest told(std::uint32_t rank, Stream const& stream, LogRequest request) const
    {
        StagedRequest result;
        result.rank = rank;
        result.generation = logs_[at_].snapshot.image().head().generation;
        result.number = before(rank) + stream.cursor.entries - 1;
        result.epoch = request.note.epoch;
        result.variable = request.note.variable;
        result.kind = kind_of(request.kind);
        result.array = request.array;
        result.begin = request.begin();
        result.end = request.end();
        result.bytes = request.note.data_bytes;
        result.in_target = request.stored();
        result.found_ = std::make_shared<Found const>(Found{at_, std::move(request)});
        return result;
    }

    /// Reports each damage once; further calls continue after it.
    void tell_damage(Log& log)
    {
        auto const& damage = log.snapshot.image().damage();
        if (log.told.size() >= damage.size()) return;
        auto const what = damage[log.told.size()];
        log.told.push_back(what);
        raise(path_, {Errc::io, 0, -1, log.snapshot.place().meta() + ": " + what});
    }

    void refresh(Log& log) const
    {
        auto const before = log.snapshot.image().head();
        if (auto status = log.snapshot.refresh(); !status) raise(path_, status.error());
        auto const& now = log.snapshot.image().head();
        if (now.identity != before.identity)
            raise(path_, {Errc::io, 0, -1, log.snapshot.place().meta() + ": was replaced by another log"});
        if (now.generation != before.generation) {
            log.streams.clear();
            log.told.clear();
        }
        settle(log);
    }

    /// An entry that is being written may look damaged for a moment.
    void settle(Log& log) const
    {
        for (int turn = 0; turn < (log.snapshot.is_live() ? 5 : 1); ++turn) {
            bool sound = true;
            for (auto const rank : log.snapshot.image().ranks()) {
                auto const stream = log.streams.find(rank);
                auto cursor = stream == log.streams.end() ? LogImage::EntryCursor() : stream->second.cursor;
                std::string damage;
                while (!log.snapshot.image().next(rank, cursor, damage).empty()) {}
                sound = sound && damage.empty();
            }
            if (sound) return;
            auto const generation = log.snapshot.image().head().generation;
            if (log.snapshot.is_live()) std::this_thread::sleep_for(std::chrono::milliseconds(1 << turn));
            if (!log.snapshot.refresh()) return;
            if (log.snapshot.image().head().generation != generation) log.streams.clear();
        }
    }

    std::string path_;
    std::string target_;
    std::uint32_t ranks_ = 0;
    std::vector<std::string> missing_;
    std::optional<Marker> marker_;
    std::vector<Log> logs_;
    std::size_t at_ = 0;
};

}  // namespace stage

StageReader::StageReader(std::string const& path) : reading_(std::make_unique<stage::Reading>(path)) {}
StageReader::StageReader(StageReader&&) noexcept = default;
StageReader& StageReader::operator=(StageReader&&) noexcept = default;
StageReader::~StageReader() = default;

std::string const& StageReader::target() const noexcept
{
    return reading_->target();
}

std::uint32_t StageReader::ranks() const noexcept
{
    return reading_->ranks();
}

std::vector<std::string> const& StageReader::missing() const noexcept
{
    return reading_->missing();
}

std::optional<StagedRequest> StageReader::next()
{
    return reading_->next();
}

bool StageReader::finished() const
{
    return reading_->finished();
}

std::vector<StagedPiece> StageReader::pieces(StagedRequest const& request) const
{
    std::vector<StagedPiece> pieces;
    pattern::each_piece(request.found_->request.layout,
                        [&](std::int64_t offset, std::int64_t length, std::int64_t place) {
                            pieces.push_back({offset, length, place});
                        });
    return pieces;
}

std::vector<std::byte> StageReader::data(StagedRequest const& request) const
{
    return reading_->data(request);
}

}  // namespace tapioca
