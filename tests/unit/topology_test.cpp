// Topologies compared with breadth-first search over graphs that are built here, link by link, from the same
// description.
#include "machine/topology/topology.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace tapioca::machine {
namespace {

using Shared = std::shared_ptr<Topology const>;

/// Nodes come first, then routers and switches. A link has a level.
struct Graph {
    explicit Graph(int vertices) : links(static_cast<std::size_t>(vertices)) {}
    void join(int a, int b, int level)
    {
        links[a].emplace_back(b, level);
        links[b].emplace_back(a, level);
    }
    [[nodiscard]] std::vector<int> distances(int from) const
    {
        std::vector<int> result(links.size(), -1);
        std::queue<int> open;
        result[from] = 0;
        for (open.push(from); !open.empty(); open.pop())
            for (auto const& [next, level] : links[open.front()])
                if (result[next] < 0) {
                    result[next] = result[open.front()] + 1;
                    open.push(next);
                }
        return result;
    }
    /// Links of each level on the shortest routes: one element if all have the same.
    [[nodiscard]] std::set<std::vector<int>> routes(int from, int to, std::size_t levels) const
    {
        auto const left = distances(to);
        std::map<int, std::set<std::vector<int>>> ways{{from, {std::vector<int>(levels, 0)}}};
        for (int step = left[from]; step > 0; --step) {
            std::map<int, std::set<std::vector<int>>> next;
            for (auto const& [at, taken] : ways)
                for (auto const& [to_vertex, level] : links[at])
                    if (left[to_vertex] == step - 1)
                        for (auto way : taken) {
                            ++way[level];
                            next[to_vertex].insert(way);
                        }
            ways = std::move(next);
        }
        return ways[to];
    }
    std::vector<std::vector<std::pair<int, int>>> links;
};

struct Case {
    std::string name;
    Shared topology;
    Graph graph;
};

Graph flat_graph(int nodes)
{
    Graph graph(nodes + 1);
    for (int node = 0; node < nodes; ++node) graph.join(node, nodes, 0);
    return graph;
}

Graph torus_graph(std::vector<int> const& sizes)
{
    int const nodes = std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
    Graph graph(nodes);
    int stride = nodes;
    for (int const size : sizes) {
        stride /= size;
        for (int node = 0; node < nodes; ++node) {
            bool const last = node / stride % size == size - 1;
            int const next = last ? node - (size - 1) * stride : node + stride;
            if (size > 1) graph.join(node, next, 0);
        }
    }
    return graph;
}

Graph dragonfly_graph(DragonflyShape const& s)
{
    int const routers = s.groups * s.rows * s.columns, nodes = routers * s.nodes_per_router;
    Graph graph(nodes + routers);
    auto const router = [&](int g, int r, int c) { return nodes + (g * s.rows + r) * s.columns + c; };
    for (int node = 0; node < nodes; ++node) graph.join(node, nodes + node / s.nodes_per_router, 0);
    for (int g = 0; g < s.groups; ++g)
        for (int r = 0; r < s.rows; ++r)
            for (int c = 0; c < s.columns; ++c) {
                for (int other = c + 1; other < s.columns; ++other) graph.join(router(g, r, c), router(g, r, other), 1);
                for (int other = r + 1; other < s.rows; ++other) graph.join(router(g, r, c), router(g, other, c), 1);
                for (int other = g + 1; other < s.groups; ++other) graph.join(router(g, r, c), router(other, r, c), 2);
            }
    return graph;
}

Graph tree_graph(std::vector<std::vector<int>> const& switches)
{
    auto const nodes = static_cast<int>(switches[0].size());
    std::map<std::pair<int, int>, int> vertices;  // (level, switch)
    for (int level = 0; level < static_cast<int>(switches.size()); ++level)
        for (int const number : switches[level])
            vertices.try_emplace({level, number}, nodes + static_cast<int>(vertices.size()));
    Graph graph(nodes + static_cast<int>(vertices.size()));
    std::set<std::pair<int, int>> joined;
    for (int node = 0; node < nodes; ++node) {
        int below = node;
        for (int level = 0; level < static_cast<int>(switches.size()); ++level) {
            int const above = vertices.at({level, switches[level][node]});
            if (joined.emplace(below, above).second) graph.join(below, above, level);
            below = above;
        }
    }
    return graph;
}

std::vector<Level> some_levels(std::size_t count)
{
    std::vector<Level> levels;
    for (std::size_t i = 0; i < count; ++i) levels.push_back({"level " + std::to_string(i), 1e-6, 1e9});
    return levels;
}

Case torus_case(std::vector<int> const& sizes)
{
    return {"torus", make_torus(sizes, {"link", 1e-6, 1e9}), torus_graph(sizes)};
}

Case dragonfly_case(DragonflyShape shape)
{
    auto const levels = some_levels(3);
    return {"dragonfly", make_dragonfly(shape, levels[0], levels[1], levels[2]), dragonfly_graph(shape)};
}

Case tree_case(std::vector<std::vector<int>> const& switches)
{
    return {"fat tree", make_fat_tree(switches, some_levels(switches.size())), tree_graph(switches)};
}

std::vector<Case> small_machines()
{
    std::vector<Case> cases;
    for (int const nodes : {1, 2, 7})
        cases.push_back({"flat", make_flat(nodes, {"link", 1e-6, 1e9}), flat_graph(nodes)});
    for (auto const& sizes : std::vector<std::vector<int>>{
             {1}, {2}, {3}, {8}, {9}, {1, 5}, {2, 2, 2}, {4, 3}, {3, 1, 4}, {5, 4, 3}, {2, 3, 4, 2, 2}, {7, 6}})
        cases.push_back(torus_case(sizes));
    for (auto const& shape : std::vector<DragonflyShape>{{1, 1, 1, 1},
                                                         {1, 1, 1, 3},
                                                         {2, 1, 1, 2},
                                                         {1, 3, 4, 2},
                                                         {3, 1, 4, 2},
                                                         {3, 4, 1, 1},
                                                         {4, 3, 5, 2},
                                                         {5, 2, 2, 3}})
        cases.push_back(dragonfly_case(shape));
    cases.push_back(tree_case({{0, 0, 0, 0}}));
    cases.push_back(tree_case({{0, 0, 1, 1, 2, 2, 3, 3}, {0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0}}));
    cases.push_back(tree_case({{5, 9, 5, 7, 9, 9, 2}, {1, 4, 1, 1, 4, 4, 4}, {0, 0, 0, 0, 0, 0, 0}}));
    cases.push_back(tree_case({{0, 1, 2}, {0, 0, 0}}));
    return cases;
}

Shared toy()
{
    return make_matrix({{0, 5, 7, 4}, {5, 0, 5, 3}, {7, 5, 0, 7}, {4, 3, 7, 0}}, {"link", 30e-3, 12.5e9});
}

std::vector<int> row_major(int node, std::vector<int> const& sizes)
{
    std::vector<int> result(sizes.size());
    for (std::size_t d = sizes.size(); d-- > 0; node /= sizes[d]) result[d] = node % sizes[d];
    return result;
}

void expect_route(Case const& machine, int from, int to, int wanted)
{
    auto const& topology = *machine.topology;
    EXPECT_EQ(topology.distance(from, to), wanted) << machine.name << ' ' << from << " to " << to;
    auto const hops = topology.hops(from, to);
    EXPECT_EQ(hops.size(), topology.levels().size());
    EXPECT_EQ(std::accumulate(hops.begin(), hops.end(), 0), wanted);
}

TEST(Topology, DistancesAreThoseOfTheGraphBetweenAllPairsOfSmallMachines)
{
    for (auto const& machine : small_machines()) {
        int const nodes = machine.topology->nodes();
        int diameter = 0, wanted_diameter = 0;
        for (int from = 0; from < nodes; ++from) {
            auto const wanted = machine.graph.distances(from);
            for (int to = 0; to < nodes; ++to) {
                expect_route(machine, from, to, wanted[to]);
                EXPECT_EQ(machine.topology->distance(from, to), machine.topology->distance(to, from));
                diameter = std::max(diameter, machine.topology->distance(from, to));
                wanted_diameter = std::max(wanted_diameter, wanted[to]);
            }
        }
        EXPECT_EQ(diameter, wanted_diameter);
    }
}

TEST(Topology, LinksOfEachLevelAreThoseOfAShortestRoute)
{
    for (auto const& machine : small_machines()) {
        int const nodes = machine.topology->nodes();
        for (int from = 0; from < nodes; from += 1 + nodes / 8)
            for (int to = 0; to < nodes; to += 1 + nodes / 24)
                EXPECT_EQ(machine.graph.routes(from, to, machine.topology->levels().size()),
                          std::set<std::vector<int>>{machine.topology->hops(from, to)})
                    << machine.name << ' ' << from << " to " << to;
    }
}

void expect_sampled(Case const& machine, int starts, int diameter)
{
    std::mt19937 random(7);
    int farthest = 0;
    for (int i = 0; i < starts; ++i) {
        auto const from = static_cast<int>(random() % static_cast<unsigned>(machine.topology->nodes()));
        auto const wanted = machine.graph.distances(from);
        for (int to = 0; to < machine.topology->nodes(); ++to) {
            expect_route(machine, from, to, wanted[to]);
            farthest = std::max(farthest, wanted[to]);
        }
    }
    EXPECT_EQ(farthest, diameter);
}

TEST(Topology, MiraHas4096NodesAtMost17LinksApart)
{
    auto const machine = torus_case({4, 4, 16, 8, 2});
    EXPECT_EQ(machine.topology->nodes(), 4096);
    expect_sampled(machine, 64, 2 + 2 + 8 + 4 + 1);
}

TEST(Topology, ThetaHas3456NodesAtMost5LinksApart)
{
    auto const machine = dragonfly_case({9, 16, 6, 4});
    EXPECT_EQ(machine.topology->nodes(), 3456);
    expect_sampled(machine, 64, 5);
}

TEST(Topology, CoordinatesAreWithinTheDimensionsAndTellNodesApart)
{
    auto machines = small_machines();
    machines.push_back({"matrix", toy(), Graph(4)});
    for (auto const& machine : machines) {
        auto const sizes = machine.topology->dimensions();
        std::set<std::vector<int>> seen;
        for (int node = 0; node < machine.topology->nodes(); ++node) {
            auto const at = machine.topology->coordinates(node);
            EXPECT_EQ(at.size(), sizes.size());
            for (std::size_t d = 0; d < sizes.size(); ++d) EXPECT_TRUE(0 <= at[d] && at[d] < sizes[d]);
            EXPECT_TRUE(seen.insert(at).second) << machine.name << ' ' << node;
            if (machine.name == "fat tree") continue;
            EXPECT_EQ(at, row_major(node, sizes)) << machine.name;
        }
    }
}

TEST(Topology, ARegularFatTreeHasTheDimensionsOfItsArity)
{
    auto const tree = make_fat_tree({{0, 0, 1, 1, 2, 2}, {0, 0, 0, 0, 0, 0}}, some_levels(2));
    EXPECT_EQ(tree->dimensions(), (std::vector<int>{3, 2}));
    EXPECT_EQ(tree->coordinates(3), (std::vector<int>{1, 1}));
}

TEST(Topology, CostsAreTheSumsOfCost)
{
    auto machines = small_machines();
    machines.push_back({"matrix", toy(), Graph(4)});
    machines.push_back(torus_case({4, 4, 4, 8, 2}));
    machines.push_back(dragonfly_case({9, 8, 3, 4}));
    std::mt19937 random(11);
    auto const draw_to = [&](unsigned end) { return static_cast<double>(random() % end); };
    for (auto const& machine : machines)
        for (int draw = 0; draw < 12; ++draw) {
            auto const& topology = *machine.topology;
            auto const nodes = static_cast<unsigned>(topology.nodes());
            std::vector<Source> sources(random() % 20);
            for (auto& s : sources) s = {static_cast<int>(random() % nodes), draw_to(100000)};
            std::vector<Charge> charges(topology.levels().size());
            for (auto& c : charges) c = {1e-3 * draw_to(7), 1e-5 * draw_to(7)};
            auto const found = topology.costs(sources, charges);
            ASSERT_EQ(found.size(), nodes);
            for (int to = 0; to < topology.nodes(); ++to) {
                double wanted = 0;
                for (auto const& source : sources) wanted += topology.cost(source, to, charges);
                EXPECT_NEAR(found[to], wanted, 1e-9 * (1 + wanted)) << machine.name << ' ' << nodes << " to " << to;
            }
        }
}

TEST(Topology, BytesPayTheDearestLevelCrossedAndHopsTheirOwn)
{
    auto const levels = some_levels(3);
    auto const theta = make_dragonfly({9, 16, 6, 4}, levels[0], levels[1], levels[2]);
    std::vector<Charge> const charges{{1, 10}, {100, 5}, {10000, 30}};
    int const router = 4, row = 6 * router, group = 16 * row;
    EXPECT_EQ(theta->cost({0, 2}, 0, charges), 0);
    EXPECT_EQ(theta->cost({0, 2}, 1, charges), 2 + 20);
    EXPECT_EQ(theta->cost({0, 2}, router, charges), 102 + 20);
    EXPECT_EQ(theta->cost({0, 2}, row + router, charges), 202 + 20);
    EXPECT_EQ(theta->cost({0, 2}, group, charges), 10002 + 60);
    EXPECT_EQ(theta->cost({0, 2}, group + row + router, charges), 10202 + 60);
}

TEST(Topology, TheNearestPlaceIsTheNearestOfAll)
{
    auto machines = small_machines();
    machines.push_back({"matrix", toy(), Graph(4)});
    std::mt19937 random(13);
    for (auto const& machine : machines)
        for (int draw = 0; draw < 8; ++draw) {
            auto const& topology = *machine.topology;
            std::vector<int> places(1 + random() % 4);
            for (int& place : places) place = static_cast<int>(random() % static_cast<unsigned>(topology.nodes()));
            EXPECT_EQ(topology.nearest(places), topology.Topology::nearest(places)) << machine.name;
        }
}

TEST(Topology, SwitchesShareTheirLinksToTheLevelAbove)
{
    auto levels = some_levels(2);
    levels[1].bandwidth = 100;
    std::vector<std::vector<int>> const switches = {{0, 0, 1, 1, 2, 2}, {0, 0, 0, 0, 0, 0}};
    std::vector<Delivery> const deliveries = {{0, 1, 5000}, {0, 2, 300}, {1, 3, 100}, {2, 4, 50}, {5, 0, 700}};
    auto const unknown = make_fat_tree(switches, levels);
    EXPECT_FALSE(unknown->has_shared_links());
    EXPECT_EQ(unknown->shared_seconds(deliveries), 0);
    levels[1].links = 1;
    auto const one = make_fat_tree(switches, levels);
    EXPECT_TRUE(one->has_shared_links());
    EXPECT_EQ(one->shared_seconds(deliveries), 7) << "into the first switch; what stays below it does not count";
    levels[1].links = 2;
    EXPECT_EQ(make_fat_tree(switches, levels)->shared_seconds(deliveries), 3.5);
    EXPECT_EQ(make_torus({4, 4}, levels[1])->shared_seconds(deliveries), 0) << "a torus has no switches";
}

TEST(Topology, CostsOfAllNodesOfAllOfMiraAreQuick)
{
    auto const mira = make_torus({8, 12, 16, 16, 2}, {"link", 1e-6, 1.8e9});
    ASSERT_EQ(mira->nodes(), 49152);
    std::vector<Source> sources;
    for (int node = 0; node < mira->nodes(); ++node) sources.push_back({node, 1e6});
    auto const costs = mira->costs(sources, std::vector<Charge>{{1, 0}});
    // Everybody sends: by symmetry all nodes cost the same, the mean distance times their number.
    EXPECT_EQ(*std::min_element(costs.begin(), costs.end()), *std::max_element(costs.begin(), costs.end()));
    EXPECT_EQ(costs[0], 49152 * (2 + 3 + 4 + 4 + 0.5));
}

}  // namespace
}  // namespace tapioca::machine
