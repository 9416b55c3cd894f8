// TierPlace: where a set keeps subfiles on a tier of one node, such as an SSD: a directory of its own, named after the
// set's identity, with a catalogue entry that tells other programs, and people, which file this is. All calls are
// local.
//
//   tapioca-IDENTITY.set/    in the directory of the tier
//       catalogue            whose data this is; written first, as a whole
//       subfile.N            as in the set's directory beside the stub
//       drained.N            how much of subfile.N was copied to that directory; locked while this is done
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.hpp"
#include "subfile/stub.hpp"

namespace tapioca::subfile {

inline constexpr char const* catalogue_name = "catalogue";
std::string drained_name(std::uint32_t number);
inline constexpr char const* catalogue_magic = "TAPISETP";

/// What the catalogue says. Specified in docs/formats/subfiles.md; change both together.
struct CatalogueEntry {
    char magic[8];
    std::uint32_t version;
    std::uint32_t bytes;    ///< of the entry
    SetId identity;         ///< of the set
    SetId place;            ///< random: nodes that find the same one look at the same directory
    std::uint64_t made;     ///< seconds since 1970
    std::uint64_t process;  ///< that made it
    char host[64];          ///< of that process
    char job[64];           ///< what the batch system calls the job; empty: there is none
    char tier[256];         ///< as in the setting `target`
    char path[4096];        ///< of the stub, absolute, as that host finds it
    std::uint64_t around;   ///< inode of the stub's directory: is it the same file system now? 0: not known
    std::byte reserved[48];
    std::uint64_t checksum;  ///< of everything before it
};
static_assert(sizeof(CatalogueEntry) == 4608);

/// A set's directory on a tier.
struct TierPlace {
    std::string path;
    CatalogueEntry entry;
    std::uint32_t owner;                  ///< user who made it
    std::uint64_t inode;                  ///< of the directory: that of a copy is another one
    std::vector<std::uint32_t> subfiles;  ///< numbers of those that lie there, ascending
};

/// The path of a set's directory on a tier with this directory.
std::string tier_place(std::string const& tier_directory, SetId const& identity);

/// What a new catalogue entry says.
struct PlaceFacts {
    std::string tier;
    std::string file;  ///< path of the stub
};
/// Makes the directory, with its catalogue entry, if it is not there. Several processes may do this at once. Fails if
/// somebody has made it whom find_tier_place() does not trust, or if something else has its name. `like`: whoever may
/// use this open file may use what is made, but never everybody may write to it; -1: only this user.
core::Status make_tier_place(std::string const& path, SetId const& identity, PlaceFacts const& facts, int like = -1);
/// Replaces the file's path in the entry of a place, if this user may.
void rename_entry(TierPlace const& place, std::string const& file);
/// Nothing if it does not exist. Fails if it is not a set's, or if the entry is damaged or of another set. In many
/// tiers everybody may make directories, so it also fails if nobody has made it who could have written to the open file
/// `like`, the stub; -1: if another user has made it.
core::Result<std::optional<TierPlace>> find_tier_place(std::string const& path, SetId const& identity, int like = -1);
/// All that lie in the directory of a tier, of any user, by the time when they were made. What cannot be read is in
/// `damaged`: where and why, in one line each. `unfinished`: directories without an entry and without subfiles, which
/// somebody is just making or removing, or was when his job was killed.
struct Catalogue {
    std::vector<TierPlace> places;
    std::vector<std::string> unfinished;
    std::vector<std::string> damaged;
};
core::Result<Catalogue> read_catalogue(std::string const& tier_directory);
/// Opens a subfile there: a plain file, never a link; for root, only a file of the directory's owner. `flags` as for
/// open(). A file that is made may be used by whoever may use the directory.
core::Result<core::Descriptor> open_on_tier(std::string const& place, std::uint32_t number, int flags);
/// Removes subfiles and, when none is left, the catalogue entry and the directory, unless these are to be kept for
/// subfiles to come. Files that are not a set's stay.
enum class EmptyPlace { removed, kept };
core::Status remove_from_tier(std::string const& place, std::vector<std::uint32_t> const& numbers,
                              EmptyPlace empty = EmptyPlace::removed);
core::Status remove_tier_place(std::string const& place);

/// What the batch system calls this job: SLURM_JOB_ID, PBS_JOBID and the like; empty if there is none.
std::string job_name();

}  // namespace tapioca::subfile
