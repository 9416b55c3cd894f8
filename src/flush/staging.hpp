// Staging: the log of an open file, as all its ranks see it: opening, flushing and closing are collective.
#pragma once

#include <memory>
#include <string>

#include "core/descriptor.hpp"
#include "file/open_file.hpp"
#include "report/account.hpp"
#include "stage/background_drainer.hpp"
#include "stage/marker.hpp"
#include "stage/stage.hpp"

namespace tapioca::flush {

class Staging {
public:
    /// The log that the file's settings ask for, or null. Collective. Throws if it cannot be had; a full tier is a
    /// warning, and the file goes without.
    static std::unique_ptr<Staging> open(file::OpenFile& file, report::Account& account);
    ~Staging();
    Staging(Staging const&) = delete;
    Staging& operator=(Staging const&) = delete;

    [[nodiscard]] stage::Stage& stage() { return stage_; }
    /// A collective call of the program on the file begins.
    void advance() { stage_.advance(); }

    /// A failure of this rank's alone, for all to hear at the next flush. Local.
    void note_failure(core::Status const& status);
    /// One variable of a write. Local: the failure is this rank's alone.
    core::Status write(stage::Stage::Write const& write);
    /// Likewise, but to the file at once. `beside_others`: other handles of the file may hand over older bytes.
    core::Status write_through(stage::Stage::Write const& write, bool beside_others);

    /// Before somebody reads or writes the target past the log: brings what this rank has in it there, as
    /// stage::Stage::hand_over() has it. Local. `durable`: on the target's devices.
    core::Status hand_over(stage::Stage::PastTheLog next, bool durable);
    /// Notes that this rank is about to change the target, or just did, in a way that is not seen here. Local.
    void touch() { stage_.writer().changes()->note(); }
    /// Brings all that is in the logs into the file. Collective; the same Status on every rank. If it fails, the logs
    /// stay as they are. `durable`: on the target's devices.
    core::Status flush(bool durable);
    /// The same if somebody's log may have bytes that somebody will read: [begin, end) here. Collective.
    core::Status flush_before_read(std::int64_t begin, std::int64_t end);
    /// Where the furthest byte in anybody's log ends. Collective.
    [[nodiscard]] std::int64_t end();
    /// Flushes; then, if that went well, removes logs and marker. Collective.
    core::Status close();

    /// As JSON, for the report. Collective.
    [[nodiscard]] std::string figures();

private:
    Staging(file::OpenFile& file, report::Account& account, stage::Stage stage, std::string tier, std::string target);
    void settle(core::Descriptor marker);
    /// Whether the node's ranks share a log.
    [[nodiscard]] bool shared() const { return stage_.writer().head().mapping == StageMapping::node; }
    core::Status flush(bool durable, bool closing);
    core::Status commit(bool durable);
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
    std::string target_;                                            ///< its path when it was opened, resolved
    core::Descriptor marker_;                                       ///< on rank 0, where it cannot be mapped
    stage::HeldMarker held_;                                        ///< else, which needs no descriptor
    bool draining_ = false;                                         ///< in the background; the same on all ranks
    std::unique_ptr<stage::BackgroundDrainer> background_drainer_;  ///< then, on the first rank of each node
    core::Status failed_;   ///< of this rank's collective writes the first failure, to be told at a flush
    bool removed_ = false;  ///< the log's files are gone
    std::shared_ptr<stage::LogContent> flushed_;  ///< what was in them, at the end
    std::int64_t reach_ = 0;                      ///< the file can become so long
    std::uint64_t flushes_ = 0;
    std::uint64_t drained_bytes_ = 0;  ///< by the background_drainer
    double creating_ = 0;
    double flushing_ = 0;
};

/// What is told of a staged file for which MPI, or its life, ends before close().
std::string never_closed(std::string const& path);

}  // namespace tapioca::flush
