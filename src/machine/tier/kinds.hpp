// What tiers are made of. Adding one: a .cpp with the functions of a row, the row in tier.cpp, a line in the contract
// test.
#pragma once

#include <functional>
#include <string_view>

#include "machine/tier/tier.hpp"

namespace tapioca::machine {

/// A kind of tier; its traits are those of one that nobody has described.
struct Kind {
    std::string_view name;
    std::string_view place;  ///< what follows the colon, for messages: "a directory"; empty: nothing does
    bool (*is_place)(std::string const& text);
    std::uint64_t (*free_bytes)(TierTraits const& tier);
    core::Result<std::unique_ptr<Tier>> (*make)(TierTraits const& traits);
    double latency_s, write_bandwidth, read_bandwidth;
    Persistency persistency;
};

core::Result<std::unique_ptr<Tier>> make_dram(TierTraits const& traits);
core::Result<std::unique_ptr<Tier>> make_numa(TierTraits const& traits);
core::Result<std::unique_ptr<Tier>> make_ssd(TierTraits const& traits);

std::uint64_t dram_free_bytes(TierTraits const& tier);
std::uint64_t numa_free_bytes(TierTraits const& tier);
std::uint64_t ssd_free_bytes(TierTraits const& tier);

bool is_numa_place(std::string const& text);
bool is_ssd_place(std::string const& text);

/// A tier of `kind` that nobody has described.
TierTraits assumed_traits(std::string const& kind, std::string name, std::string place);
/// The numbers in "1,3".
std::vector<unsigned> numa_nodes(std::string const& place);

/// How a file behind a mapping is made.
struct FileRequest {
    std::string directory;
    std::uint64_t bytes = 0;
    std::uint64_t free_bytes = 0;  ///< more is refused before the system is asked, which might kill for it
    std::string tier;              ///< for messages
    std::string advice;            ///< what to do if it does not fit
    bool populate = true;          ///< map the pages now
    std::function<core::Status(std::byte*, std::uint64_t)> place;  ///< called before there are pages; may be empty
};
/// A new file that nobody else can have put there, with all its pages, zeroed. Without bytes there is no file.
core::Result<Mapping> create_file(FileRequest const& request);
/// Refuses what is not a plain file of this user's alone: others may have put it there.
core::Result<Mapping> attach_file(std::string const& name, std::uint64_t bytes, bool populate);
/// Removes files in `directory` whose creators were killed before they could. Once for each process and directory.
void remove_leftovers(std::string const& directory);

inline constexpr char const* shm_directory = "/dev/shm";
inline constexpr char const* shm_advice = "lower TAPIOCA_BUFFERSIZE or TAPIOCA_MEMORY";

}  // namespace tapioca::machine
