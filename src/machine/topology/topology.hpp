// Topology: how the nodes of a machine are connected, and what it costs to bring their data together.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tapioca::machine {

/// A kind of link, such as those inside a dragonfly's groups.
struct Level {
    std::string name;
    double latency_s = 0;  ///< of one hop
    double bandwidth = 0;  ///< of one link, bytes per second
    int links = 0;  ///< number of links of a switch to the level above, shared by all below it; 0: as many as needed
};

/// A node with data for others.
struct Source {
    int node = 0;
    double bytes = 0;
};

/// Bytes on their way from one node to another.
struct Delivery {
    int from = 0, to = 0;
    double bytes = 0;
};

/// The price of a level in a cost model.
struct Charge {
    double per_hop_s = 0;
    double per_byte_s = 0;
};

struct TopologyKind;
struct TopologyDrawing;

/// Distances count links crossed. Nodes are 0 to nodes()-1; routes are shortest paths.
class Topology {
public:
    virtual ~Topology() = default;
    Topology(Topology const&) = delete;
    Topology& operator=(Topology const&) = delete;

    /// Its name in platform files.
    [[nodiscard]] std::string_view kind() const;
    [[nodiscard]] int nodes() const { return nodes_; }
    /// From the nodes outwards. getLatency and getBandwidth of the papers.
    [[nodiscard]] std::vector<Level> const& levels() const { return levels_; }
    /// NetworkDimensions and RankToCoordinates: one number per dimension.
    [[nodiscard]] virtual std::vector<int> dimensions() const = 0;
    [[nodiscard]] virtual std::vector<int> coordinates(int node) const = 0;
    /// Links of each level between two nodes; all 0 between a node and itself.
    [[nodiscard]] virtual std::vector<int> hops(int from, int to) const = 0;
    /// DistanceBetweenRanks, for the ranks' nodes.
    [[nodiscard]] virtual int distance(int from, int to) const = 0;
    /// For every node: the distance to the nearest of `places`, which must not be empty.
    [[nodiscard]] virtual std::vector<int> nearest(std::span<int const> places) const;

    /// The cost of bringing one source's data to `to`: the hops at their levels' prices, the bytes at the price of the
    /// most expensive level crossed. 0 if the source is `to`. `charges` has one element per level.
    [[nodiscard]] double cost(Source const& source, int to, std::span<Charge const> charges) const;
    /// For every node: the sum of cost() over `sources`, in time that grows with nodes plus sources, not with their
    /// product (except for `matrix`).
    [[nodiscard]] virtual std::vector<double> costs(std::span<Source const> sources,
                                                    std::span<Charge const> charges) const = 0;

    /// The switch to which a node is attached; -1: there are none.
    [[nodiscard]] virtual int switch_of(int /*node*/) const { return -1; }
    /// The switch whose links of this level carry everything that its nodes exchange with others; -1: none.
    [[nodiscard]] virtual int switch_below(std::size_t /*level*/, int /*node*/) const { return -1; }
    /// Whether the number of links of such a switch is known for any level.
    [[nodiscard]] bool has_shared_links() const;
    /// The time that the busiest of these switches takes for all deliveries, which are made at the same time; 0 if none
    /// is known.
    [[nodiscard]] double shared_seconds(std::span<Delivery const> deliveries) const;

    /// The keys that describe it in the [topology] of a platform file, as lines, in addition to the keys of all kinds.
    /// `hosts` are the names of the nodes, if they have names.
    [[nodiscard]] virtual std::string to_toml(std::vector<std::string> const& hosts) const = 0;
    /// The same network with other figures for each of its levels.
    [[nodiscard]] virtual std::shared_ptr<Topology const> with_levels(std::vector<Level> levels) const = 0;
    /// Its nodes in cells of this size. If the network is much larger than the nodes `used`, only their surroundings.
    [[nodiscard]] virtual TopologyDrawing layout(std::vector<int> const& used, double cell) const = 0;

protected:
    Topology(TopologyKind const& kind, int nodes, std::vector<Level> levels)
        : kind_(&kind), nodes_(nodes), levels_(std::move(levels))
    {
    }

private:
    TopologyKind const* kind_;
    int nodes_;
    std::vector<Level> levels_;
};

/// Hosts behind one switch: one level, two links between any two hosts.
std::shared_ptr<Topology const> make_flat(int nodes, Level link);
/// A torus of any number of dimensions, with wrap-around; the last dimension varies fastest. One level.
std::shared_ptr<Topology const> make_torus(std::vector<int> dimensions, Level link);
/// Groups of rows x columns routers with `nodes_per_router` nodes each. Nodes vary fastest, then columns, rows, groups.
/// The routers of a row are connected all to all, and so are those of a column; each router is connected to the one in
/// the same position of every other group. Levels: node to router, inside a group, between groups.
struct DragonflyShape {
    int groups = 1, rows = 1, columns = 1, nodes_per_router = 1;
};
std::shared_ptr<Topology const> make_dragonfly(DragonflyShape shape, Level node, Level inside, Level between);
/// A tree of switches. `switches[l][n]` is the number of the level-l switch above node n: nodes with the same level-0
/// switch are two links apart, with the same level-1 switch four, ...; the last level has one switch.
std::shared_ptr<Topology const> make_fat_tree(std::vector<std::vector<int>> switches, std::vector<Level> levels);
/// Any distances, for small or odd machines: `distances[a][b]` hops of one level, symmetric.
std::shared_ptr<Topology const> make_matrix(std::vector<std::vector<int>> distances, Level link);

}  // namespace tapioca::machine
