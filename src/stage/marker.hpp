// Marker: a small file beside the target that says where the logs of a staged file are, and how far they were flushed.
// It exists from open to close, and remains after a crash.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stage/log_files.hpp"

namespace tapioca::stage {

/// Distinguishes a file from others of the same name, and from its own state before somebody changed it.
struct FileFacts {
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::uint64_t born_ns = 0;     ///< since 1970; 0 if the file system does not tell
    std::uint64_t changed_ns = 0;  ///< last change of the contents; since 1970
    bool remote = false;           ///< other machines serve it, and their clocks may count; not in the marker
};
/// The facts as the file's server knows them now, if it has one.
core::Result<FileFacts> facts_of(int fd);
/// How far the clock of this file's times, which is that of other files in its directory, is ahead of this host's. @pre
/// the file was written to just now
std::int64_t clock_ahead_ns(Descriptor const& file);

/// What a marker says about the target, at one of two places in turn.
struct Noted {
    enum class State : char {
        left = 's',  ///< the file is as the job's last change left it, except for later changes that the logs record
        recovering = 'r',  ///< a recovery is changing the file; `changed_ns` is when it was last known to do so
        others = 'o',      ///< a program was allowed to ignore the marker; stored at a place of its own
        nothing = '-',
    };
    std::uint64_t epoch = 0;       ///< all requests of this epoch and earlier ones are in the target
    std::uint64_t generation = 0;  ///< grows with each flush of the job, and during a recovery
    State state = State::nothing;
    FileFacts file;
};

struct Marker {
    /// A node and its logs.
    struct NodeEntry {
        std::string host;
        std::string directory;
        std::vector<std::uint32_t> ranks;
    };
    OpeningId identity = {};
    std::uint32_t ranks = 0;
    StageMapping mapping = StageMapping::process;
    std::string tier;
    std::string target;
    std::vector<NodeEntry> nodes;
    std::uint64_t flushed = 0;  ///< all requests of this epoch and earlier ones are in the target
    Noted noted;                ///< State::nothing in a marker of version 1, which says nothing about the file
    Noted others;               ///< State::nothing if no program was allowed to ignore the marker

    /// The pairs of files of a node, including the existing ones beside the target.
    [[nodiscard]] std::vector<LogPlace> logs_of(NodeEntry const& node) const;
};

/// The target's path without links or dots, from which the path of its marker follows.
std::string resolved(std::string const& target);
/// Where the marker of a target is.
std::string marker_path(std::string const& target);
/// True if the marker's name exists: then nobody may change the target before it was recovered.
bool has_marker(std::string const& target);
/// True also if that cannot be found out, as where a directory is not mounted.
bool may_have_marker(std::string const& target);
/// The advice for users who find a marker.
std::string what_to_do(std::string const& target);
/// Whether a running program has the file open with a stage, as far as locks show.
bool is_staged_now(std::string const& target);

core::Result<Marker> read_marker(std::string const& target);
/// Creates the marker with the contents of `marker`. Fails if there is one already. `durable`: the marker survives a
/// crash of the machine.
core::Result<Descriptor> create_marker(Marker const& marker, bool durable);
/// Notes how far the log was flushed, and the facts of the file at that time. `durable`: the note survives a crash of
/// the machine.
core::Status note(Descriptor const& file, Noted const& noted, bool durable);
/// Keeps the lock on a marker for the life of this object, even after the descriptor was closed.
struct HeldMarker {
    MappedFile page;
    std::uint64_t inode = 0;
};
core::Result<HeldMarker> keep_held(Descriptor const& file);
/// The same as above. Opens the marker for this; fails if it is another file by now.
core::Status note(HeldMarker const& held, std::string const& target, Noted const& noted, bool durable);
/// Notes that a program that the marker does not keep from the target may change it from now on. Local.
void let_others_in(std::string const& target);
/// Removes that note, because everything that such programs changed is being overwritten.
core::Status forget_others(Descriptor const& file);
core::Status remove_marker(std::string const& target);
/// Makes sure that a marker that was removed does not come back after a crash of the machine. If this fails, its logs
/// are removed nevertheless, since nobody could find them without the marker.
core::Status keep_marker_away(std::string const& target);

/// Describes what others have done to the target since the job or the recovery was last known to change it; nothing if
/// they have done nothing. `now` is the present state of the file, `touched_ns` the latest Counters::touched of the
/// logs.
std::optional<std::string> changed_by_others(Marker const& marker, FileFacts const& now, std::uint64_t touched_ns);

/// Where a rank's log continues, beside the target, when its tier is full.
LogPlace overflow_place(std::string const& target, std::uint32_t rank);
/// Where that log is made until it is complete.
LogPlace unfinished_place(LogPlace const& overflow);

/// The name of the pair of files of a rank or, if a node's ranks share one, of the node.
std::string log_name(StageMapping mapping, std::uint32_t number);

}  // namespace tapioca::stage
