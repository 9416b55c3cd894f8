#include "engine/map_on_node.hpp"

#include "comm/team.hpp"

namespace tapioca::engine {

Circle circle_of(MPI_Comm node)
{
    return {comm::rank_in(node) == 0, [node](std::string const& text) { return comm::broadcast(node, text); },
            [node](core::Status const& local) { return comm::agree(node, local); }};
}

core::Result<machine::TierMapping> map_on_node(Circle const& node, machine::Tier const& tier, std::uint64_t bytes,
                                               machine::Pages pages)
{
    bool const first = node.first;
    core::Result<machine::TierMapping> mapping;
    if (first) mapping = tier.create(bytes, pages);
    // The name of the file and its inode number, because others may be able to swap names.
    auto const told =
        node.broadcast(mapping && bytes > 0 ? std::to_string(mapping->inode()) + " " + mapping->name() : std::string());
    if (!first && !told.empty()) {
        auto const space = told.find(' ');
        mapping = tier.attach(told.substr(space + 1), bytes, pages);
        if (mapping && std::to_string(mapping->inode()) != told.substr(0, space))
            mapping = core::fail(Errc::io, told.substr(space + 1) + ": another file has this name by now");
    }
    auto const status = node.agree(mapping ? core::Status() : tl::unexpected(mapping.error()));
    if (!status) return tl::unexpected(status.error());
    mapping->unlink();
    return mapping;
}

}  // namespace tapioca::engine
