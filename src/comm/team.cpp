#include "comm/team.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <numeric>

#include "comm/background.hpp"
#include "comm/shared_memory_groups.hpp"
#include "comm/watchdog.hpp"

namespace tapioca::comm {

namespace {

/// What nearly all of these functions wait for; which rank is missing is unknown.
constexpr auto others = "the other ranks to arrive";

}  // namespace

core::Status agree(MPI_Comm comm, core::Status const& local)
{
    if (size_of(comm) == 1) return spread(comm, 0, local);
    Waiting const waiting(others);
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    int mine = local ? INT_MAX : rank;
    int failed = 0;
    MPI_Allreduce(&mine, &failed, 1, MPI_INT, MPI_MIN, comm);
    if (failed == INT_MAX) return {};
    return spread(comm, failed, local);
}

core::Status spread(MPI_Comm comm, int failed, core::Status const& local)
{
    if (size_of(comm) == 1) {
        auto alone = local;
        if (!alone) alone.error().rank = 0;
        return alone;
    }
    Waiting const waiting("word from the rank that failed");
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    std::vector<std::byte> bytes;
    if (rank == failed) bytes = core::pack(local.error());
    auto length = static_cast<int>(bytes.size());
    MPI_Bcast(&length, 1, MPI_INT, failed, comm);
    bytes.resize(static_cast<std::size_t>(length));
    MPI_Bcast(bytes.data(), length, MPI_BYTE, failed, comm);
    auto failure = core::unpack(bytes);
    failure.rank = failed;
    return tl::unexpected(std::move(failure));
}

std::string broadcast(MPI_Comm comm, std::string text)
{
    if (size_of(comm) == 1) return text;
    Waiting const waiting("word from rank 0");
    // Most texts fit into the first message, so one broadcast is enough.
    constexpr std::size_t room = 2040;
    struct {
        std::uint64_t length;
        char start[room];
    } message = {};
    message.length = text.size();
    std::memcpy(message.start, text.data(), std::min(room, text.size()));
    MPI_Bcast(&message, sizeof message, MPI_BYTE, 0, comm);
    text.resize(message.length);
    if (message.length > room)
        MPI_Bcast(text.data(), static_cast<int>(message.length), MPI_CHAR, 0, comm);
    else
        std::memcpy(text.data(), message.start, message.length);
    return text;
}

int broadcast(MPI_Comm comm, int value)
{
    Waiting const waiting("word from rank 0");
    MPI_Bcast(&value, 1, MPI_INT, 0, comm);
    return value;
}

Team::Team(MPI_Comm comm, int ranks_per_node) : ranks_per_node_(ranks_per_node)
{
    auto const around = machine_size_around(comm);
    machine_size_ = std::max(machine_size_, around);
    if (size_of(comm) == 1) {  // nothing to do; and with threads, Open MPI may hang when it duplicates these
        all_ = node_ = MPI_COMM_SELF;
        nodes_ = {{0}};
        return;
    }
    Waiting const waiting(others);
    MPI_Comm_dup(comm, &all_);
    MPI_Comm_set_errhandler(all_, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_rank(all_, &rank_);
    MPI_Comm_size(all_, &size_);
    node_ = neighbours(all_);
    machine_size_ = std::max(size_of(node_), around);
    find_nodes();
    if (ranks_per_node_ > 0) {
        MPI_Comm whole = node_;
        MPI_Comm_split(whole, my_node_, rank_, &node_);
        MPI_Comm_free(&whole);
    }
    MPI_Comm_rank(node_, &node_rank_);
    MPI_Comm_size(node_, &node_size_);
    join_leaders();
}

/// Derives the nodes from the ranks of each machine, and from which of them pretend to be a node.
void Team::find_nodes()
{
    struct {
        int leader, ranks_per_node;
    } mine = {rank_, ranks_per_node_};
    MPI_Bcast(&mine.leader, 1, MPI_INT, 0, node_);
    std::vector<decltype(mine)> all(static_cast<std::size_t>(size_));
    MPI_Allgather(&mine, 2, MPI_INT, all.data(), 2, MPI_INT, all_);
    ranks_per_node_ = all[0].ranks_per_node;
    std::map<std::pair<int, int>, int> number;  // number of the node that consists of these ranks of a machine
    for (int rank = 0; rank < size_; ++rank) {
        int const part = ranks_per_node_ > 0 ? rank / ranks_per_node_ : 0;
        auto const [at, is_new] =
            number.try_emplace({all[static_cast<std::size_t>(rank)].leader, part}, static_cast<int>(nodes_.size()));
        if (is_new) nodes_.emplace_back();
        nodes_[static_cast<std::size_t>(at->second)].push_back(rank);
        if (rank == rank_) my_node_ = at->second;
    }
}

void Team::join_leaders()
{
    if (nodes_.size() == 1 || node_rank_ > 0) return;
    std::vector<int> first;
    for (auto const& ranks : nodes_) first.push_back(ranks[0]);
    leaders_ = chosen(all_, first);
}

Team::~Team()
{
    if (size_ == 1 || !mpi_is_active()) return;
    Waiting const waiting("the other ranks to give a communicator back");
    if (leaders_ != MPI_COMM_NULL) MPI_Comm_free(&leaders_);
    MPI_Comm_free(&node_);
    if (!kept_) MPI_Comm_free(&all_);
}

std::vector<std::uint64_t> Team::sum(std::vector<std::uint64_t> values) const
{
    if (size_ == 1) return values;
    Waiting const waiting(others);
    traffic_bytes_ += values.size() * sizeof values[0];
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_UINT64_T, MPI_SUM, all_);
    return values;
}

void Team::least(std::span<int> values) const
{
    if (size_ == 1) return;
    Waiting const waiting(others);
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT, MPI_MIN, all_);
}

void Team::reduce(MPI_Comm comm, void* data, std::size_t bytes, int count, Combine* combine)
{
    if (size_of(comm) == 1) return;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(combine, 1, &op);
    MPI_Allreduce(MPI_IN_PLACE, data, count, type, op, comm);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

void Team::reduce_nodes(void* data, std::size_t bytes, int count, Combine* combine) const
{
    if (size_ == 1) return;
    Waiting const waiting(others);
    if (node_rank_ == 0 && nodes_.size() > 1) {
        traffic_bytes_ += bytes * static_cast<std::size_t>(count);
        reduce(leaders_, data, bytes, count, combine);
    }
    MPI_Bcast(data, static_cast<int>(bytes) * count, MPI_BYTE, 0, node_);
}

void Team::unite(std::span<unsigned char> bits) const
{
    if (size_ == 1) return;
    Waiting const waiting(others);
    MPI_Allreduce(MPI_IN_PLACE, bits.data(), static_cast<int>(bits.size()), MPI_UNSIGNED_CHAR, MPI_BOR, node_);
}

std::vector<std::uint64_t> Team::sum_on_node(std::vector<std::uint64_t> values) const
{
    if (size_ == 1) return values;
    Waiting const waiting(others);
    traffic_bytes_ += values.size() * sizeof values[0];
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_UINT64_T, MPI_SUM, node_);
    return values;
}

std::vector<std::vector<std::uint64_t>> Team::gather_nodes(std::vector<std::uint64_t> const& mine) const
{
    if (size_ == 1) return {mine};
    Waiting const waiting(others);
    // Most lists are short, so one message has the length and the whole list; the rest of longer ones follows.
    constexpr std::size_t room = 23;
    struct Start {
        std::uint64_t count, values[room];
    };
    Start start = {mine.size(), {}};
    std::copy_n(mine.begin(), std::min(room, mine.size()), start.values);
    std::vector<Start> starts(nodes_.size(), start);
    bool const crosses = nodes_.size() > 1 && node_rank_ == 0;
    if (crosses) {
        traffic_bytes_ += mine.size() * sizeof mine[0];
        MPI_Allgather(&start, sizeof start, MPI_BYTE, starts.data(), sizeof start, MPI_BYTE, leaders_);
    }
    MPI_Bcast(starts.data(), static_cast<int>(starts.size() * sizeof start), MPI_BYTE, 0, node_);
    std::vector<int> counts;
    for (auto const& one : starts)
        counts.push_back(static_cast<int>(one.count - std::min<std::uint64_t>(room, one.count)));
    std::vector<int> begins(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
    std::vector<std::uint64_t> rest(static_cast<std::size_t>(begins.back() + counts.back()));
    if (!rest.empty()) {
        auto const* const mine_rest = mine.data() + std::min(room, mine.size());
        if (crosses)
            MPI_Allgatherv(mine_rest, counts[static_cast<std::size_t>(my_node_)], MPI_UINT64_T, rest.data(),
                           counts.data(), begins.data(), MPI_UINT64_T, leaders_);
        else if (node_rank_ == 0)
            std::copy(mine_rest, mine.data() + mine.size(), rest.begin());
        MPI_Bcast(rest.data(), static_cast<int>(rest.size()), MPI_UINT64_T, 0, node_);
    }
    std::vector<std::vector<std::uint64_t>> nodes;
    for (std::size_t node = 0; node < counts.size(); ++node) {
        auto const* const values = starts[node].values;
        nodes.emplace_back(values, values + std::min<std::uint64_t>(room, starts[node].count));
        auto const from = rest.begin() + begins[node];
        nodes.back().insert(nodes.back().end(), from, from + counts[node]);
    }
    return nodes;
}

std::vector<std::string> Team::gather_texts(std::string const& mine) const
{
    std::vector<std::uint64_t> packed(1 + (mine.size() + 7) / 8, 0);
    packed[0] = mine.size();
    std::memcpy(packed.data() + 1, mine.data(), mine.size());
    std::vector<std::string> texts;
    for (auto const& node : gather_nodes(packed))
        texts.emplace_back(reinterpret_cast<char const*>(node.data() + 1), node[0]);
    return texts;
}

std::vector<double> Team::gather(std::span<double const> values) const
{
    if (size_ == 1) return {values.begin(), values.end()};
    Waiting const waiting(others);
    auto const count = static_cast<int>(values.size());
    std::vector<double> all(values.size() * static_cast<std::size_t>(size_));
    MPI_Allgather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, all_);
    return all;
}

int Team::first_different(std::uint64_t value) const
{
    if (size_ == 1) return -1;
    Waiting const waiting(others);
    std::uint64_t of_rank_0 = value;
    MPI_Bcast(&of_rank_0, 1, MPI_UINT64_T, 0, all_);
    int mine = value == of_rank_0 ? INT_MAX : rank_;
    int lowest = 0;
    MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, all_);
    return lowest == INT_MAX ? -1 : lowest;
}

std::vector<Team::Interval> Team::exchange(std::vector<std::vector<Interval>> const& to_rank) const
{
    if (size_ == 1) return to_rank[0];
    Waiting const waiting(others);
    MPI_Datatype interval = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(3, MPI_INT64_T, &interval);
    MPI_Type_commit(&interval);
    std::vector<Interval> outgoing;
    std::vector<int> send_counts;
    std::vector<int> send_starts;
    for (auto const& list : to_rank) {
        send_starts.push_back(static_cast<int>(outgoing.size()));
        send_counts.push_back(static_cast<int>(list.size()));
        outgoing.insert(outgoing.end(), list.begin(), list.end());
    }
    std::vector<int> counts(static_cast<std::size_t>(size_));
    MPI_Alltoall(send_counts.data(), 1, MPI_INT, counts.data(), 1, MPI_INT, all_);
    std::vector<int> starts;
    int total = 0;
    for (int const count : counts) {
        starts.push_back(total);
        total += count;
    }
    std::vector<Interval> incoming(static_cast<std::size_t>(total));
    MPI_Alltoallv(outgoing.data(), send_counts.data(), send_starts.data(), interval, incoming.data(), counts.data(),
                  starts.data(), interval, all_);
    MPI_Type_free(&interval);
    return incoming;
}

std::pair<std::int64_t, std::int64_t> prefix_and_total(MPI_Comm comm, std::int64_t mine)
{
    if (size_of(comm) == 1) return {0, mine};
    Waiting const waiting(others);
    std::vector<std::int64_t> all(static_cast<std::size_t>(size_of(comm)));
    MPI_Allgather(&mine, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, comm);
    auto const before = std::accumulate(all.begin(), all.begin() + rank_in(comm), std::int64_t{0});
    return {before, std::accumulate(all.begin() + rank_in(comm), all.end(), before)};
}

std::int64_t tell(MPI_Comm comm, std::int64_t number)
{
    if (size_of(comm) == 1) return number;
    Waiting const waiting("word from rank 0");
    MPI_Bcast(&number, 1, MPI_INT64_T, 0, comm);
    return number;
}

void nudge(MPI_Comm comm)
{
    if (Background::now()) return;
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, MPI_STATUS_IGNORE);
}

char const* unfit(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL) return "the communicator is MPI_COMM_NULL";
    int between_groups = 0;
    MPI_Comm_test_inter(comm, &between_groups);
    return between_groups ? "the communicator is an intercommunicator" : nullptr;
}

int rank_in(MPI_Comm comm)
{
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

int size_of(MPI_Comm comm)
{
    int size = 1;
    PMPI_Comm_size(comm, &size);
    return size;
}

int world_rank()
{
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

bool mpi_is_active()
{
    int initialised = 0;
    int finalised = 0;
    PMPI_Initialized(&initialised);
    if (initialised) PMPI_Finalized(&finalised);
    return initialised && !finalised;
}

std::vector<std::pair<std::string, std::string>> pairs_of(MPI_Info info)
{
    std::vector<std::pair<std::string, std::string>> pairs;
    if (info == MPI_INFO_NULL) return pairs;
    int keys = 0;
    MPI_Info_get_nkeys(info, &keys);
    for (int i = 0; i < keys; ++i) {
        char key[MPI_MAX_INFO_KEY + 1] = {};
        MPI_Info_get_nthkey(info, i, key);
        int length = 0;
        int found = 0;
        MPI_Info_get_valuelen(info, key, &length, &found);
        std::string value(static_cast<std::size_t>(length) + 1, '\0');
        if (found) MPI_Info_get(info, key, length, value.data(), &found);
        value.resize(std::strlen(value.c_str()));
        if (found) pairs.emplace_back(key, value);
    }
    return pairs;
}

}  // namespace tapioca::comm
