#include "engine/share.hpp"

#include "comm/team.hpp"

namespace tapioca::engine {

core::Result<machine::Mapping> share(MPI_Comm node, machine::Tier const& tier, std::uint64_t bytes)
{
    bool const first = comm::rank_in(node) == 0;
    core::Result<machine::Mapping> mapping;
    if (first) mapping = tier.create(bytes);
    auto const name = comm::broadcast(node, mapping ? mapping->name() : std::string());
    if (!first && !name.empty()) mapping = tier.attach(name, bytes);
    auto const status = comm::agree(node, mapping ? core::Status() : tl::unexpected(mapping.error()));
    if (!status) return tl::unexpected(status.error());
    mapping->unlink();
    return mapping;
}

core::Result<machine::Mapping> share(MPI_Comm node, core::Result<std::unique_ptr<machine::Tier>> const& tier,
                                     std::uint64_t bytes)
{
    auto const status = comm::agree(node, tier ? core::Status() : tl::unexpected(tier.error()));
    if (!status) return tl::unexpected(status.error());
    return share(node, **tier, bytes);
}

}  // namespace tapioca::engine
