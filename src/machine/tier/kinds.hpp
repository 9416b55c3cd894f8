// What tiers are made of. To add a kind, write one .cpp with its TierKind, and one row of rows.inc.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "core/host.hpp"
#include "machine/tier/tier.hpp"

namespace tapioca::machine {

/// A kind of tier: all that is special about it.
struct TierKind {
    std::string_view name;
    std::string_view help;                                ///< for people, as docs/platforms.md has it
    std::string_view place = {};                          ///< what follows the colon, for messages; empty: nothing does
    std::string_view place_prefix = {};                   ///< before a place that is shown to people
    std::span<std::string_view const> described_as = {};  ///< names that mean it in platform files, beside its own
    std::span<std::string_view const> found_as = {};      ///< names under which find_tiers() has some
    bool ordinary = false;                                ///< memory that every node has: exactly one kind
    bool device = false;  ///< its bytes take no memory of the node, and are there only after a flush
    Persistency persistency = Persistency::none;
    // One copy by one process, as far as nothing better is known.
    double latency_s, write_bandwidth, read_bandwidth;  ///< of a tier that nobody has described
    std::uint64_t (*free_bytes)(TierTraits const& tier);
    core::Result<std::unique_ptr<Tier>> (*make)(TierTraits const& traits);
    bool (*is_place)(std::string const& text) = nullptr;  ///< null: it has no place
    /// True if the tier at `place` is also the one at `part`; null: its places have nothing to do with each other.
    bool (*includes)(std::string const& place, std::string const& part) = nullptr;
    /// A place to try it out, in the empty directory `scratch` if it takes one. Null: it has no place.
    std::string (*sample)(std::string const& scratch) = nullptr;
};

/// All kinds, in the order of rows.inc.
std::span<TierKind const* const> tier_kinds();
/// Null if there is none of this name.
TierKind const* find_kind(std::string_view name);
/// What find_tiers() finds; the names for numa are in numa.hpp.
extern TierKind const dram_tier, numa_tier;

/// A tier of `kind` that nobody has described.
TierTraits assumed_traits(TierKind const& kind, std::string name, std::string place);

/// How a file behind a mapping is made.
struct FileRequest {
    std::string directory;
    std::uint64_t bytes = 0;
    std::uint64_t free_bytes = 0;  ///< more is refused before the system is asked, which might kill for it
    std::string tier;              ///< for messages
    std::string advice;            ///< what to do if it does not fit
    Pages pages = Pages::now;
    std::function<core::Status(std::byte*, std::uint64_t)> place;  ///< called before there are pages; may be empty
};
/// A new file that nobody else can have put there, with all its pages, zeroed. Without bytes there is no file.
core::Result<TierMapping> create_file(FileRequest const& request);
/// Refuses what is not a plain file of this user's alone: others may have put it there.
core::Result<TierMapping> attach_file(std::string const& name, std::uint64_t bytes, Pages pages);
/// Removes files in `directory` whose creators were killed before they could. Once for each process and directory.
void remove_leftovers(std::string const& directory);

using core::shm_directory;
inline constexpr char const* shm_advice = "lower TAPIOCA_BUFFERSIZE or TAPIOCA_MEMORY";

}  // namespace tapioca::machine
