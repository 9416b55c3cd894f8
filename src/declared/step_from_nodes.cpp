// StepState on a set whose subfiles lie on the nodes' tiers: each rank finds where the bytes lie that it wants, reads
// what its own node has, and gets the rest from ranks of the nodes that have it.
#include <array>

#include <fmt/core.h>

#include "core/descriptor.hpp"
#include "core/output.hpp"
#include "declared/step_state.hpp"
#include "engine/fetch.hpp"
#include "file/on_tier.hpp"
#include "subfile/set_target.hpp"

namespace tapioca::declared {

namespace {

/// The rank that reads this subfile for this rank: itself, unless only another node has it. -1: no node has it.
/// The ranks of a node take turns.
core::Result<int> server_of(FileState const& file, subfile::SetTarget& set, std::uint32_t number)
{
    auto const& team = file.session->team();
    if (number == subfile::in_rest) return team.rank();
    auto const here = set.subfile(number);
    if (here) return team.rank();
    if (here.error().code != Errc::not_found) return tl::unexpected(here.error());
    auto const& set_of_file = *file.set;
    auto node = set_of_file.node_of.find(number);
    if (node == set_of_file.node_of.end() && set_of_file.numbers > 0 && number >= set_of_file.first_subfile)
        node = set_of_file.node_of.find(set_of_file.first_subfile +
                                        (number - set_of_file.first_subfile) % set_of_file.numbers);
    if (node == set_of_file.node_of.end() || node->second == team.my_node()) return -1;
    auto const& ranks = team.nodes()[static_cast<std::size_t>(node->second)];
    return ranks[static_cast<std::size_t>(team.rank()) % ranks.size()];
}

/// The same for all subfiles, each looked up once.
class Servers {
public:
    Servers(FileState const& file, subfile::SetTarget& set) : file_(file), set_(set) {}
    core::Result<int> of(std::uint32_t number)
    {
        auto const known = known_.find(number);
        if (known != known_.end()) return known->second;
        auto const found = server_of(file_, set_, number);
        if (found) known_.emplace(number, *found);
        return found;
    }

private:
    FileState const& file_;
    subfile::SetTarget& set_;
    std::map<std::uint32_t, int> known_;
};

core::Failure missing(subfile::SetTarget& set, std::uint32_t number)
{
    auto const host = set.host_of(number);
    return {
        Errc::not_found, 0, -1,
        fmt::format("no node of this job has {}{}: the data in it cannot be read; `tapioca target list` shows where "
                    "subfiles are",
                    subfile::subfile_name(number),
                    host.empty() ? std::string() : fmt::format(", which {} has written", core::printable(host)))};
}

}  // namespace

/// Finds the pieces of all variables. Sets `unknown` if no node is known to have some subfile. Local.
core::Status StepState::find_on_nodes(subfile::SetTarget& set, std::vector<engine::FetchPiece>& pieces, bool& unknown)
{
    auto const size = set.size();  // looks at the set
    if (!size) return tl::unexpected(size.error());
    Servers servers(*file_, set);
    core::Status status;
    for (std::size_t var = 0; var < variables().size(); ++var) {
        auto const& variable = relaid_[var] ? *relaid_[var] : *variables()[var];
        auto const placed = subfile::placed_pieces(set, variable, base_, static_cast<std::int64_t>(*size));
        if (!placed) return tl::unexpected(placed.error());
        for (auto const& piece : *placed) {
            auto const server = servers.of(piece.subfile);
            if (!server) return tl::unexpected(server.error());
            if (*server < 0) {
                unknown = true;
                core::keep_first(status, tl::unexpected(missing(set, piece.subfile)));
                continue;
            }
            pieces.push_back({*server, piece.subfile, piece.at, piece.length, data_[var] + piece.place});
            received_[var] += static_cast<std::uint64_t>(piece.length);
        }
    }
    return status;
}

/// Reads all variables. Collective; the same Status on every rank.
core::Status StepState::read_from_nodes()
{
    auto& session = *file_->session;
    auto* const set = dynamic_cast<subfile::SetTarget*>(file_->target());
    std::vector<engine::FetchPiece> pieces;
    core::Status status;
    for (bool looked = false, again = true; again; looked = true) {
        bool unknown = false;
        pieces.clear();
        received_.assign(variables().size(), 0);
        status = set ? find_on_nodes(*set, pieces, unknown) : file_->target_status();
        // A subfile may have been added since this file was opened.
        std::array<std::int64_t, 1> all = {unknown ? 0 : 1};
        if (auto agreed = session.agreement().least(all); !agreed) return agreed;
        again = all[0] == 0 && !looked;
        if (again) file::find_subfiles(*file_);
    }
    auto const read = [&](std::uint64_t source, std::int64_t position, std::span<std::byte> to) -> core::Status {
        auto const number = static_cast<std::uint32_t>(source);
        if (number == subfile::in_rest) return set->read_rest(position, to);
        auto const fd = set->subfile(number);
        if (!fd) return tl::unexpected(fd.error());
        return core::read_all(*fd, static_cast<std::uint64_t>(position), to, "a subfile");
    };
    straight_times_ = {};
    for (auto const bytes : received_) straight_times_.bytes += bytes;
    straight_times_.calls = pieces.size();
    core::Stopwatch const watch(straight_times_.draining);
    return engine::fetch(session, status, std::move(pieces), read);
}

}  // namespace tapioca::declared
