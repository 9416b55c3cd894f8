// Staging: the log of an open file, as all its ranks see it. Opening, flushing and closing are collective.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.hpp"
#include "engine/slices.hpp"
#include "file/open_file.hpp"
#include "flush/logged_read.hpp"
#include "report/account.hpp"
#include "stage/background_drainer.hpp"
#include "stage/marker.hpp"
#include "stage/stage.hpp"

namespace tapioca::flush {

class Staging {
public:
    /// Opens the log that the file's settings ask for, or returns null. Collective. Throws if the log cannot be made;
    /// if the tier is full, prints a warning, and the file has no log.
    static std::unique_ptr<Staging> open(file::OpenFile& file, report::Account& account);
    ~Staging();
    Staging(Staging const&) = delete;
    Staging& operator=(Staging const&) = delete;

    [[nodiscard]] stage::Stage& stage() { return stage_; }
    /// A collective call of the program on the file begins.
    void advance() { stage_.advance(); }

    /// Records a failure of this rank alone, which all ranks hear of at the next flush. Local.
    void note_failure(core::Status const& status);
    /// Logs one variable of a write. Local: a failure concerns only this rank.
    core::Status write(stage::Stage::Write const& write);
    /// Logs a variable and writes it to the file at once. `beside_others`: other handles of the file may hand over
    /// older bytes.
    core::Status write_through(stage::Stage::Write const& write, bool beside_others);

    /// To be called before an access to the target past the log: writes this rank's contents of the log to the target,
    /// as stage::Stage::hand_over() does. Local. `durable`: on the target's devices.
    core::Status hand_over(stage::Stage::PastTheLog next, bool durable);
    /// Records that this rank is about to change the target, or has just done so, in a way that is not seen here.
    /// Local.
    void touch() { stage_.writer().changes()->note(); }
    /// Writes the contents of all logs to the file. Collective; the same Status on every rank. If it fails, the logs
    /// stay as they are. `durable`: on the target's devices.
    core::Status flush(bool durable);
    /// Returns what this rank wants to read, or nothing if it can only read from the file.
    using Wanted = std::function<std::optional<std::vector<WantedPiece>>()>;
    /// To be called before a collective read; [begin, end) is this rank's range. Where its bytes are, the same on all
    /// ranks. If the logs have some of them, but they cannot be read from there, flushes first. `mixed`: whether some
    /// may come from logs and others from the file. Collective.
    core::Result<ReadFrom> prepare_read(std::int64_t begin, std::int64_t end, bool mixed, Wanted const& wanted);
    /// Reads the bytes that are in the logs; those that are in the file must have been read before. `local`: this
    /// rank's failure until now. Collective; the same Status on every rank. @pre prepare_read() said that there are
    /// some, and nothing was logged since
    core::Status read_logs(core::Status const& local);
    /// The end of the furthest byte in any rank's log. Collective.
    [[nodiscard]] std::int64_t end();
    /// Flushes and, if this succeeds, removes logs and marker. Collective.
    core::Status close();

    /// Figures as JSON, for the report. Collective.
    [[nodiscard]] std::string figures();

private:
    Staging(file::OpenFile& file, report::Account& account, stage::Stage stage, std::string tier, std::string target);
    void settle(core::Descriptor marker);
    /// Whether the node's ranks share a log.
    [[nodiscard]] bool shared() const { return stage_.writer().head().mapping == StageMapping::node; }
    core::Status flush(bool durable, bool closing);
    core::Status commit(bool durable);
    /// What all ranks know before a read.
    struct BeforeRead {
        engine::FileSection range = {};  ///< of all ranks
        bool touches = false;            ///< some rank's log may have some of the bytes
        bool longer = false;             ///< the logs make the file longer, and some rank reads there
    };
    core::Result<BeforeRead> look_before_read(std::int64_t begin, std::int64_t end);
    core::Status empty();
    core::Status drain(stage::LogContent& content);
    [[nodiscard]] std::vector<stage::LogPlace> logs_of_node() const;
    void meet_neighbours();
    void launch_background_drainer();
    std::vector<Extent> pause_background_drainer();
    [[nodiscard]] bool overflows() const;
    core::Status rest();
    core::Status tell_failures();
    core::Status check_reach(stage::Stage::Write const& write);
    core::Status write_to_target(stage::Stage::Write const& write);
    void warn_if_full();

    file::OpenFile& file_;
    report::Account& account_;
    stage::Stage stage_;
    std::string tier_;
    std::string target_;                                            ///< the target's resolved path when it was opened
    core::Descriptor marker_;                                       ///< on rank 0, if the marker cannot be mapped
    stage::HeldMarker held_;                                        ///< otherwise; needs no descriptor
    bool draining_ = false;                                         ///< in the background; the same on all ranks
    std::unique_ptr<stage::BackgroundDrainer> background_drainer_;  ///< if draining_, on the first rank of each node
    core::Status failed_;   ///< the first failure of this rank's collective writes, to be reported at a flush
    bool removed_ = false;  ///< the log's files are gone
    std::shared_ptr<stage::LogContent> flushed_;  ///< the contents of the logs at the end
    std::int64_t reach_ = 0;                      ///< the greatest size that the file can have
    std::uint64_t flushes_ = 0;
    std::optional<LoggedRead> logged_read_;  ///< between prepare_read() and read_logs()
    int reads_since_flush_ = 0;              ///< collective reads that looked into the logs
    std::uint64_t reads_without_flush_ = 0;
    engine::FetchCounts fetched_;
    std::uint64_t drained_bytes_ = 0;  ///< by the background drainer
    double creating_ = 0;
    double flushing_ = 0;
};

/// The message about a staged file that was not closed before MPI, or the file object, ended.
std::string never_closed(std::string const& path);

}  // namespace tapioca::flush
