// SetDirectory: the directory of a set of subfiles: which files are in it, what its index and journals say, who is
// writing it, and how it is made, completed and removed. All calls are local.
//
//   index       everything about the set as it was last closed; replaced as a whole
//   rest        bytes that no chunk has, at their own offsets; its size is part of the file's size
//   subfile.N   data of one group of ranks, chunk after chunk
//   draining.N  a copy of subfile.N, which lies on a tier, that is being made
//   journal.N   records about subfile.N since the index was written
//   writer      exists, locked, while a job adds chunks
//   stub        a second name of the stub: the number of its names tells whether the first one still exists
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ctime>

#include "core/descriptor.hpp"
#include "subfile/extent_map.hpp"

namespace tapioca::subfile {

std::string subfile_name(std::uint32_t number);
std::string journal_name(std::uint32_t number);
std::string draining_name(std::uint32_t number);
inline constexpr char const* index_name = "index";
inline constexpr char const* rest_name = "rest";
inline constexpr char const* writer_name = "writer";

inline constexpr char const* note_magic = "TAPISETW";

/// A job has no more groups.
inline constexpr std::uint32_t most_groups = std::uint32_t{1} << 17;

/// What a job that adds chunks says about itself, in the file `writer`.
struct WriterNote {
    char magic[8];
    SetId identity;
    std::uint64_t generation;     ///< that its index will have
    std::uint32_t first_subfile;  ///< its groups' subfiles are numbered from here on
    std::uint32_t groups;
    std::uint32_t ranks;
    std::uint32_t nodes;
    std::uint64_t process;
    char layout[64];
    char host[64];
    char name[256];
    std::uint64_t checksum;
};

enum class SetState {
    complete,     ///< the index says everything
    live,         ///< a job is adding chunks
    interrupted,  ///< such a job has ended without completing the index
};

/// The directory `path`, which must be one and not a link.
core::Result<core::Descriptor> open_directory(std::string const& path);

/// What is known about a set, and kept up to date. For one thread at a time.
class SetContents {
public:
    SetContents(int directory, SetId const& identity) : directory_(directory), identity_(identity) {}

    /// The job has ended. If its machine stopped, a journal may have chunks that were lost: chunks that lie beyond the
    /// end of their subfile are left out. `on_tier`: those of subfiles that are not in the directory count, since these
    /// may lie on nodes. To be called before the first refresh().
    void leave_out_lost(bool on_tier)
    {
        leaves_out_lost_ = true;
        on_tier_ = on_tier;
    }
    /// How many were left out.
    [[nodiscard]] std::size_t lost() const { return lost_; }

    /// Reads what has changed since the last call. Fails if the index or a journal's head is damaged.
    core::Status refresh();
    /// The same for the map alone, without the state. Takes one look at the directory, and one at each journal, as long
    /// as no file gets or loses its name.
    core::Status refresh_map();
    [[nodiscard]] SetState state() const { return state_; }
    [[nodiscard]] ExtentMap const& map() const { return map_; }
    /// Of the index; all zero if there is none.
    [[nodiscard]] SetHead const& head() const { return head_; }
    [[nodiscard]] bool has_index() const { return index_.exists; }
    /// Whether there is an index, or a job that makes one. Otherwise the set is gone: joined, removed or replaced.
    [[nodiscard]] bool is_there() const { return index_.exists || writer_.groups > 0; }
    /// Whether journals have records that the index has not. Then a writer is adding chunks, or was interrupted.
    [[nodiscard]] bool has_additions() const { return has_additions_; }
    /// Whether the note of a job that died before its first chunk is all that keeps its subfiles' numbers from being
    /// given to others. What it has left may lie on nodes that nobody can look at now.
    [[nodiscard]] bool note_keeps_numbers() const { return next_subfile() > next_without_note(); }
    /// Of the job that adds chunks, or did so when it was interrupted.
    [[nodiscard]] WriterNote const& writer() const { return writer_; }
    /// The number of the next new subfile.
    [[nodiscard]] std::uint32_t next_subfile() const;

private:
    /// Tells whether a file was replaced or changed.
    struct SeenFile {
        bool exists = false;
        std::uint64_t inode = 0;
        std::int64_t size = 0;
        timespec changed = {};
        [[nodiscard]] bool same_as(SeenFile const& other) const;
    };
    struct Journal {
        core::Descriptor file;
        std::uint64_t read = 0;  ///< bytes that were read
        std::string host;        ///< where its subfiles are written
    };
    [[nodiscard]] SeenFile look(char const* name) const;
    [[nodiscard]] std::uint32_t next_without_note() const;
    [[nodiscard]] std::int64_t names_changed();
    core::Status refresh_once();
    core::Status read_index();
    core::Status read_writer();
    core::Status read_journals();
    core::Status read_known_journals();
    core::Status read_journal(std::uint32_t number, Journal& journal);
    core::Result<bool> is_lost(std::span<std::byte const> record) const;

    int directory_;
    SetId identity_;
    ExtentMap map_;
    SetHead head_ = {};
    WriterNote writer_ = {};
    SetState state_ = SetState::complete;
    bool read_before_ = false;
    bool has_additions_ = false;
    std::int64_t lately_ = 0;        ///< nanoseconds within which two changes may have the same time; 0: not known yet
    std::int64_t names_known_ = -1;  ///< when a name had last changed, as of the last look at all; -1: just then
    bool leaves_out_lost_ = false;
    bool on_tier_ = false;
    std::size_t lost_ = 0;
    SeenFile index_;
    SeenFile note_;
    std::map<std::uint32_t, Journal> journals_;
};

/// Which job, and how, for heads and notes.
struct WriterFacts {
    std::uint32_t ranks = 1;
    std::uint32_t nodes = 1;
    std::uint32_t groups = 1;
    std::string layout;
    std::string name;  ///< of the file
};
/// The name of the directory for a new set of the open file `stub` at `path`: there is none of this name, or it has
/// only what a set has left that had this stub, or whose stub was removed. A set whose stub was renamed is left alone.
std::string choose_directory(std::string const& path, int stub);
/// Gives the stub at `path` its second name, if the file system can.
void link_stub(std::string const& path, std::string const& directory);
/// Makes the directory of a new set, removes what an earlier set of this name has left there, and takes the lock.
/// Fails if a job is writing there.
/// `like`: whoever may use this open file may use the set; -1: anybody may whom the umask does not exclude.
core::Result<core::Descriptor> make_set(std::string const& directory, SetId const& identity, WriterFacts const& facts,
                                        int like = -1);
/// Takes the lock of a set that exists, in order to add chunks. Nothing if another job, or another handle of this one,
/// has it, or has changed the set since `contents` was refreshed. Fails if the set was interrupted.
core::Result<std::optional<core::Descriptor>> take_lock(int directory, SetContents& contents, SetId const& identity,
                                                        WriterFacts const& facts);
/// Ends what take_lock() has begun for nothing but the lock (0 groups). To be called before the lock is closed.
void give_back_lock(int directory, SetContents const& contents);
/// Writes the index of everything that counts of what index and journals say. Then removes the journals, the subfiles
/// that have no chunk left, and the writer's note. To be called by whoever has the lock. `durable`: it survives a crash
/// of the machine; if it replaces an index, or if there are subfiles to remove, it always does. `writer`: whether it
/// has died, so that chunks may be missing that the journals have; of a set on a tier, only of subfiles that are in the
/// directory. Without room for the index, what the writer's failed steps have left behind their last chunks is cut off;
/// if this is not enough, it fails with no_space, and can be repeated.
enum class WriterOfSet { closes, closes_on_tier, died, died_on_tier };
core::Status complete_set(int directory, SetId const& identity, bool durable, WriterOfSet writer = WriterOfSet::closes);
/// Makes durable what a job before this one has written, as far as it is in the directory. Without its index, journals
/// of later jobs are of no use.
core::Status sync_complete_set(std::string const& directory, SetId const& identity);
/// Removes all files of the set and its directory. Files that are not a set's are left, and so is the directory then.
core::Status remove_set(std::string const& directory);
/// The same for the set to which the stub with this identity and inode leads; but if another stub leads there, too, or
/// if another set has the directory, nothing is removed.
core::Status remove_set_of(std::string const& directory, SetId const& identity, std::uint64_t inode);
/// Whether some job holds the lock.
bool is_live(int directory);

/// Fails if the open stub is a copy of another file's, whose directory this one would change.
core::Status check_own_directory(std::string const& path, Stub const& stub, int fd);

/// Why a set cannot be used now, or ok. `path`: of the stub.
core::Status check_usable(std::string const& path, Stub const& stub);

}  // namespace tapioca::subfile
