// Directories of nodes that only pretend to be several: each is the working directory of its ranks, so that they do not
// see what the others have on their tier.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

#include "support/mpi_test.hpp"

namespace tapioca::test {

/// Of the working directory, which is that of a node.
constexpr char const* own_directory = "ssd:/proc/self/cwd";

/// A directory of each host's own, if the ranks are on several.
inline char const* place_on_hosts()
{
    return std::getenv("TARGET_PLACE");
}

/// What the environment says. It is taken out of the environment, since readers have other nodes than writers.
inline int ranks_per_node()
{
    static int const wished = [] {
        auto const* const wish = std::getenv("TAPIOCA_RANKS_PER_NODE");
        int const number = wish ? std::atoi(wish) : ranks();
        ::unsetenv("TAPIOCA_RANKS_PER_NODE");
        return number;
    }();
    return wished;
}

inline int my_node()
{
    return rank() / ranks_per_node();
}

inline int nodes()
{
    return (ranks() + ranks_per_node() - 1) / ranks_per_node();
}

/// Gives each node a directory of its own, for as long as this lives.
class NodeDirectories {
public:
    explicit NodeDirectories(Scratch const& scratch)
        : before_(std::filesystem::current_path()), here_(scratch.path("node"))
    {
        here_ += std::to_string(my_node());
        if (auto const* const place = place_on_hosts()) here_ = place;
        if (rank() % ranks_per_node() == 0) std::filesystem::create_directories(here_);
        barrier();
        EXPECT_EQ(::chdir(here_.c_str()), 0);
    }
    NodeDirectories(NodeDirectories const&) = delete;
    NodeDirectories& operator=(NodeDirectories const&) = delete;
    ~NodeDirectories() { EXPECT_EQ(::chdir(before_.c_str()), 0); }

    /// How many sets have data here.
    [[nodiscard]] auto sets() const { return std::distance(std::filesystem::directory_iterator(here_), {}); }
    [[nodiscard]] std::size_t subfiles() const
    {
        std::size_t count = 0;
        for (auto const& entry : std::filesystem::recursive_directory_iterator(here_))
            if (entry.path().filename().string().starts_with("subfile.")) ++count;
        return count;
    }

private:
    std::filesystem::path before_;
    std::string here_;
};

}  // namespace tapioca::test
