// Marker: a small file beside the target that says where the logs of a staged file are, and how far they were flushed.
// It is there from open to close, and stays after a crash.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stage/log_files.hpp"

namespace tapioca::stage {

/// What tells a file from another of its name, and from itself when somebody has changed it.
struct FileFacts {
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::uint64_t born_ns = 0;     ///< since 1970; 0 where the file system does not tell
    std::uint64_t changed_ns = 0;  ///< of the contents; since 1970
    bool remote = false;           ///< other machines serve it, and their clocks may count; not in the marker
};
/// As its server knows the file now, if it has one.
core::Result<FileFacts> facts_of(int fd);
/// How far the clock of this file's times, which are those of its neighbours, is ahead of this host's. @pre it was
/// written to just now
std::int64_t clock_ahead_ns(Descriptor const& file);

/// What a marker says of the target, in turns at one of two places.
struct Noted {
    enum class State : char {
        left = 's',        ///< the file is as our last change left it, but for what the logs say of later ones
        recovering = 'r',  ///< a recovery changes it; `changed_ns` is when it was last known to do so
        others = 'o',      ///< a program was let past the marker then; has a place of its own
        nothing = '-',
    };
    std::uint64_t epoch = 0;       ///< all requests of this epoch and before are in the target
    std::uint64_t generation = 0;  ///< grows with each of our flushes, and while we recover
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
    std::uint64_t flushed = 0;  ///< all requests of this epoch and before are in the target
    Noted noted;                ///< State::nothing in a marker of version 1, which knows nothing of the file
    Noted others;               ///< State::nothing if nobody was let past it

    /// The pairs of files of a node; with those beside the target that are there.
    [[nodiscard]] std::vector<LogPlace> logs_of(NodeEntry const& node) const;
};

/// The target's path without links or dots, by which its marker is found.
std::string resolved(std::string const& target);
/// Where the marker of a target is.
std::string marker_path(std::string const& target);
/// True if there is something of that name: then nobody may touch the target before it was recovered.
bool has_marker(std::string const& target);
/// What to tell people who find one.
std::string what_to_do(std::string const& target);
/// Whether a program that is running has the file open with a stage, as far as locks tell.
bool is_staged_now(std::string const& target);

core::Result<Marker> read_marker(std::string const& target);
/// Makes the marker, which says what `marker.noted` says. Fails if there is one. `durable`: even if the machine stops.
core::Result<Descriptor> create_marker(Marker const& marker, bool durable);
/// Notes how far the log was flushed, and what the file is then. `durable`: even if the machine stops.
core::Status note(Descriptor const& file, Noted const& noted, bool durable);
/// Whoever holds a marker goes on holding it for as long as this is there, also when the descriptor is closed.
struct HeldMarker {
    MappedFile page;
    std::uint64_t inode = 0;
};
core::Result<HeldMarker> keep_held(Descriptor const& file);
/// The same as above. The marker is opened for it, and is an error if it is another file by now.
core::Status note(HeldMarker const& held, std::string const& target, Noted const& noted, bool durable);
/// A program that is not kept from the target by its marker may change it from now on. Local.
void let_others_in(std::string const& target);
/// Whatever they have changed is written over.
core::Status forget_others(Descriptor const& file);
core::Status remove_marker(std::string const& target);
/// A marker that was removed does not come back even if the machine stops. Where this fails, its logs are removed all
/// the same: nobody could find them without it.
core::Status keep_marker_away(std::string const& target);

/// What others have done to the target since the job or the recovery was last known to change it, in words; nothing if
/// they have not. `now` is what the file is, `touched_ns` the latest of the logs' Counters::touched.
std::optional<std::string> changed_by_others(Marker const& marker, FileFacts const& now, std::uint64_t touched_ns);

/// Where a rank's log goes on when its tier is full: beside the target.
LogPlace overflow_place(std::string const& target, std::uint32_t rank);
/// Where that log is made, until it is whole.
LogPlace unfinished_place(LogPlace const& overflow);

/// The name of the pair of files of a rank or, where a node's ranks share one, of the node.
std::string log_name(StageMapping mapping, std::uint32_t number);

}  // namespace tapioca::stage
