// The kinds of tiers. To add a kind, write one .cpp with its TierKind, and one row of rows.inc.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "core/host.hpp"
#include "machine/tier/tier.hpp"

namespace tapioca::machine {

/// A kind of tier: everything that is specific to it.
struct TierKind {
    std::string_view name;
    std::string_view help;                                ///< text for users, as in docs/platforms.md
    std::string_view place = {};                          ///< what follows the colon, for messages; empty: nothing
    std::string_view place_prefix = {};                   ///< text before a place that is shown to users
    std::span<std::string_view const> described_as = {};  ///< further names of this kind in platform files
    std::span<std::string_view const> found_as = {};      ///< names under which find_tiers() returns tiers of this kind
    bool ordinary = false;                                ///< memory that every node has; exactly one kind
    bool device = false;  ///< its bytes take no memory of the node, and are stored only after a flush
    Persistency persistency = Persistency::none;
    // Figures for one copy by one process, unless better ones are known.
    double latency_s, write_bandwidth, read_bandwidth;  ///< of a tier that is not described
    std::uint64_t (*free_bytes)(TierTraits const& tier);
    core::Result<std::unique_ptr<Tier>> (*make)(TierTraits const& traits);
    bool (*is_place)(std::string const& text) = nullptr;  ///< null: the kind has no place
    /// True if the tier at `place` includes the one at `part`; null: places of this kind are independent.
    bool (*includes)(std::string const& place, std::string const& part) = nullptr;
    /// A place for trying it out, in the empty directory `scratch` if it needs one. Null: the kind has no place.
    std::string (*sample)(std::string const& scratch) = nullptr;
};

/// All kinds, in the order of rows.inc.
std::span<TierKind const* const> tier_kinds();
/// Null if there is no kind of this name.
TierKind const* find_kind(std::string_view name);
/// The kinds that find_tiers() finds; the names for numa are in numa.hpp.
extern TierKind const dram_tier, numa_tier;

/// The traits of a tier of `kind` that is not described.
TierTraits assumed_traits(TierKind const& kind, std::string name, std::string place);

/// How to create the file behind a mapping.
struct FileRequest {
    std::string directory;
    std::uint64_t bytes = 0;
    std::uint64_t free_bytes = 0;  ///< more is refused before the system is asked, which might kill the process
    std::string tier;              ///< for messages
    std::string advice;            ///< what to do if it does not fit
    Pages pages = Pages::now;
    std::function<core::Status(std::byte*, std::uint64_t)> place;  ///< called before there are pages; may be empty
};
/// Creates a new file, exclusively, with all its pages zeroed. For 0 bytes there is no file.
core::Result<TierMapping> create_file(FileRequest const& request);
/// Opens a file of memory. Refuses anything but a plain file that belongs to this user alone, because others may have
/// put it there.
core::Result<core::Descriptor> open_file(std::string const& name);
/// Maps what open_file() opens.
core::Result<TierMapping> attach_file(std::string const& name, std::uint64_t bytes, Pages pages);
/// Removes files in `directory` whose creators were killed before they could remove them, and named memory that was not
/// to outlive them. Does this once for each process and directory.
void remove_leftovers(std::string const& directory);

using core::shm_directory;
inline constexpr char const* shm_advice = "lower TAPIOCA_BUFFERSIZE or TAPIOCA_MEMORY";

}  // namespace tapioca::machine
