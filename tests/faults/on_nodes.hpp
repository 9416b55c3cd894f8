// Sweeps over sets whose data stays on a tier of the nodes. Each pretended node has a directory of its own, which its
// ranks work in, so that the nodes do not see each other's data.
#pragma once

#include <filesystem>
#include <string>

#include "faults/sweep.hpp"
#include "subfile/drain.hpp"
#include "subfile/stub.hpp"
#include "subfile/tier_place.hpp"

namespace tapioca::faults {

constexpr char const* own_directory = "/proc/self/cwd";
constexpr char const* own_tier = "ssd:/proc/self/cwd";
constexpr int ranks_of_a_node = 2;

/// The directories node0 and node1 of a trial, as long as this lives; nothing if not `wanted`.
class OnNodes {
public:
    OnNodes(Trial const& trial, bool wanted)
        : wanted_(wanted), is_first_(trial.rank() % ranks_of_a_node == 0), before_(std::filesystem::current_path())
    {
        auto const node = trial.path("node" + std::to_string(trial.rank() / ranks_of_a_node));
        if (wanted_) std::filesystem::current_path(node);
    }
    OnNodes(OnNodes const&) = delete;
    OnNodes& operator=(OnNodes const&) = delete;
    ~OnNodes()
    {
        if (wanted_) std::filesystem::current_path(before_);
    }

    /// Brings what this node has of a complete set to the set's directory, without faults. Collective.
    void drain(Trial& trial, std::string const& path) const
    {
        if (!wanted_) return;
        MPI_Barrier(trial.comm());
        auto const wrong = is_first_ ? drain_here(path) : std::string();
        trial.expect(wrong.empty(), "the nodes' data cannot be drained: " + wrong);
        MPI_Barrier(trial.comm());
    }

private:
    /// Says what is wrong, or nothing.
    static std::string drain_here(std::string const& path)
    {
        auto const stub = subfile::find_stub(path);
        if (!stub || !*stub || (*stub)->tier.empty()) return {};
        auto const& identity = (*stub)->identity;
        auto const place = subfile::tier_place(own_directory, identity);
        auto const found = subfile::find_tier_place(place, identity);
        if (!found) return found.error().text;
        if (!*found) return {};
        for (auto const number : (*found)->subfiles) {
            auto const drained =
                subfile::drain_subfile({subfile::beside(path, (*stub)->directory), place, identity, number},
                                       subfile::Drain::Writer::ended, [](std::int64_t) {});
            if (!drained) return drained.error().text;
        }
        auto const removed = subfile::remove_from_tier(place, {});
        return removed ? "" : removed.error().text;
    }

    bool wanted_;
    bool is_first_;
    std::filesystem::path before_;
};

}  // namespace tapioca::faults
