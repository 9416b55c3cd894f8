// Team: communicators of the library for the ranks of a file, and the few collectives that planning needs. Only this
// folder calls MPI to communicate.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace tapioca::comm {

/// The same Status on every rank: ok, or the failure of the lowest failing rank.
/// Collective over `comm`: one 4-byte allreduce; the failure is broadcast only if there is one.
core::Status agree(MPI_Comm comm, core::Status const& local);

/// Returns the failure of rank `failed` on every rank; all ranks know which rank failed. Collective.
core::Status spread(MPI_Comm comm, int failed, core::Status const& local);

/// A communicator of `ranks` of `comm`, ascending; the caller must free it. Collective over these ranks only.
MPI_Comm chosen(MPI_Comm comm, std::vector<int> const& ranks);

/// Returns rank 0's `text` on every rank. Collective.
std::string broadcast(MPI_Comm comm, std::string text);
/// Returns rank 0's `value` on every rank. Collective.
int broadcast(MPI_Comm comm, int value);

/// The ranks of each node, ascending; nodes in the order of their first ranks.
using Nodes = std::vector<std::vector<int>>;

/// A private duplicate of a communicator, and which of its ranks share a node's memory. A team of one rank has no
/// communicator of its own, and none of its functions communicates.
class Team {
public:
    /// Collective over `comm`. If `ranks_per_node` is above 0 on rank 0, each group of that many ranks pretends to be a
    /// node.
    explicit Team(MPI_Comm comm, int ranks_per_node = 0);
    Team(Team const&) = delete;
    Team& operator=(Team const&) = delete;
    /// Frees the communicators, unless MPI has been finalised.
    ~Team();

    /// Messages may remain that nobody will receive: the communicator must never be used for anything else, and is not
    /// freed.
    void keep() { kept_ = true; }

    [[nodiscard]] MPI_Comm all() const { return all_; }
    [[nodiscard]] MPI_Comm node() const { return node_; }
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int size() const { return size_; }
    [[nodiscard]] int node_rank() const { return node_rank_; }
    [[nodiscard]] int node_size() const { return node_size_; }
    [[nodiscard]] Nodes const& nodes() const { return nodes_; }
    [[nodiscard]] int my_node() const { return my_node_; }
    [[nodiscard]] int ranks_per_node() const { return ranks_per_node_; }
    /// The number of ranks that share the machine, including those of other pretended nodes and, in a part of a team,
    /// of other parts.
    [[nodiscard]] int machine_size() const { return machine_size_; }

    /// Sums over all ranks. Collective.
    [[nodiscard]] std::vector<std::uint64_t> sum(std::vector<std::uint64_t> values) const;
    /// The least of each value over all ranks. Collective.
    void least(std::span<int> values) const;
    /// Combines with `combine` what the first ranks of the nodes have at `data`: `count` elements of `bytes` bytes. The
    /// result is on all ranks. Collective.
    using Combine = void(void* in, void* in_out, int* count, MPI_Datatype*);
    void reduce_nodes(void* data, std::size_t bytes, int count, Combine* combine) const;
    /// The same for all ranks of `comm`. Collective over it; the caller tells the watchdog what is waited for.
    static void reduce(MPI_Comm comm, void* data, std::size_t bytes, int count, Combine* combine);
    /// Bitwise or over the ranks of this node. Collective over them.
    void unite(std::span<unsigned char> bits) const;
    /// Sums over the ranks of this node. Collective over them.
    [[nodiscard]] std::vector<std::uint64_t> sum_on_node(std::vector<std::uint64_t> values) const;
    /// The values of the first rank of every node, by node, on every rank. Collective.
    [[nodiscard]] std::vector<std::vector<std::uint64_t>> gather_nodes(std::vector<std::uint64_t> const& mine) const;
    /// The same with texts. Collective.
    [[nodiscard]] std::vector<std::string> gather_texts(std::string const& mine) const;
    /// Bytes that this rank has contributed so far to the collectives of this class, and to others that were counted.
    [[nodiscard]] std::uint64_t traffic_bytes() const { return traffic_bytes_; }
    void count(std::uint64_t bytes) const { traffic_bytes_ += bytes; }
    /// Every rank's values, by rank, on every rank. Collective; for reports and check mode.
    [[nodiscard]] std::vector<double> gather(std::span<double const> values) const;

    /// Lowest rank whose `value` differs from rank 0's, or -1. Collective.
    [[nodiscard]] int first_different(std::uint64_t value) const;

    /// Sends each rank its list and returns what was received, with the sender. Collective; for check mode.
    struct Interval {
        std::int64_t begin, end, rank;
    };
    [[nodiscard]] std::vector<Interval> exchange(std::vector<std::vector<Interval>> const& to_rank) const;

private:
    void find_nodes();
    void join_leaders();

    MPI_Comm all_ = MPI_COMM_NULL;
    MPI_Comm node_ = MPI_COMM_NULL;
    MPI_Comm leaders_ = MPI_COMM_NULL;  ///< the first ranks of all nodes; null on other ranks
    int rank_ = 0, size_ = 1, node_rank_ = 0, node_size_ = 1;
    int ranks_per_node_ = 0;
    int machine_size_ = 1;
    int my_node_ = 0;
    bool kept_ = false;
    mutable std::uint64_t traffic_bytes_ = 0;
    Nodes nodes_;
};

/// The sum of `mine` over lower ranks, and over all ranks. Collective.
std::pair<std::int64_t, std::int64_t> prefix_and_total(MPI_Comm comm, std::int64_t mine);

/// Every rank's bytes, by rank, on rank 0; nothing on the other ranks. Collective.
std::vector<std::vector<std::byte>> collect(MPI_Comm comm, std::vector<std::byte> const& mine);

/// A communicator of `ranks` of the team, ascending, of which this rank is one. It is made at the first call with these
/// ranks, which is collective over them, and kept with the team's. Teams made of it count the ranks of the whole team
/// as sharing the machine.
MPI_Comm kept_part(Team const& team, std::vector<int> const& ranks);
/// The ranks that share this machine while those of `comm` are busy: those of the team that it is a part of; 0 if it is
/// no part.
int machine_size_around(MPI_Comm comm);

/// Returns rank 0's number on every rank. Collective.
std::int64_t tell(MPI_Comm comm, std::int64_t number);

/// Why no file can be opened on `comm`, or null. Local; the same on all of its ranks.
char const* unfit(MPI_Comm comm);

int rank_in(MPI_Comm comm);
int size_of(MPI_Comm comm);

/// This process's rank in MPI_COMM_WORLD.
int world_rank();

/// True between MPI_Init and MPI_Finalize.
bool mpi_is_active();

/// The pairs of an MPI_Info.
std::vector<std::pair<std::string, std::string>> pairs_of(MPI_Info info);

/// A key under which one user keeps objects with communicators, one object per communicator. Every file on the
/// communicator finds the object; it is dropped when the communicator is freed or MPI is finalised. Each user has one
/// key, a constant made at its first use.
class AttachmentKey {
public:
    /// Local. @pre MPI has been initialised
    AttachmentKey();
    [[nodiscard]] int value() const { return value_; }

private:
    int value_;
};
std::shared_ptr<void> attached(MPI_Comm comm, AttachmentKey const& key);
void attach(MPI_Comm comm, AttachmentKey const& key, std::shared_ptr<void> object);
/// Drops the object. Local.
void detach(MPI_Comm comm, AttachmentKey const& key);

/// A window that has not been freed. Windows that remain when MPI is finalised are freed then, which some MPIs require.
struct Remaining {
    MPI_Win window;
    MPI_Comm comm;      ///< of its ranks; used only for this
    bool torn = false;  ///< left in the middle of an epoch, so it cannot be freed
};
/// All three are local.
void enter(Remaining const& window);
void strike_out(MPI_Win window);
void tear(MPI_Win window);

/// Lets MPI make progress with all messages under way, including the program's own. Local.
void nudge(MPI_Comm comm);

}  // namespace tapioca::comm
