// What the verbs of `tapioca target` find out: which sets have subfiles on this node's tiers, and where those of a set
// are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "subfile/place_owner.hpp"
#include "subfile_look.hpp"

namespace tools {

using tapioca::subfile::Belonging;
using tapioca::subfile::find_owner;
using tapioca::subfile::PlaceOwner;

/// The directory of a tier on this node.
tapioca::core::Result<std::string> directory_of_tier(std::string const& tier);
/// The tier that TAPIOCA_TARGET names. Fails if it names none.
tapioca::core::Result<std::string> tier_of_environment();

enum class SubfilePlace {
    in_directory,  ///< of the set
    here,          ///< on this node's tier
    elsewhere,     ///< on another node's, as far as can be told from here
    missing,       ///< it was written on this host, and is not there
};
/// Where a subfile is, and how much of it.
struct SubfileWhere {
    std::uint32_t number;
    std::uint64_t bytes;  ///< as the index says
    SubfilePlace where;
    std::uint64_t size;  ///< of what is there; elsewhere: 0
    std::string host;    ///< that wrote it; empty: not known
};
/// What of a set is where.
struct SetOnTier {
    std::string place;                ///< the set's directory on this node's tier, whether or not it exists
    std::vector<std::uint32_t> here;  ///< all subfiles there, also those that the index does not know
    std::vector<SubfileWhere> subfiles;

    [[nodiscard]] std::size_t count(SubfilePlace where) const;
    /// "n1, n2 and 3 more": the hosts of those that are elsewhere.
    [[nodiscard]] std::string other_hosts() const;
};
/// For a set whose stub names no tier, everything is in its directory, or missing. Fails if the directory on this
/// node's tier cannot be trusted. A node without the tier has nothing.
tapioca::core::Result<SetOnTier> look_for_subfiles(OpenSet const& set);

/// Fails if the set is a copy of the one whose subfiles lie on this node's tier: they would be lost to that one.
tapioca::core::Status check_no_copy(OpenSet const& set, SetOnTier const& found);

/// Bytes of all subfiles in a directory on a tier.
std::uint64_t bytes_in(tapioca::subfile::TierPlace const& place);

}  // namespace tools
