#include "comm/team.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

namespace tapioca::comm {

core::Status agree(MPI_Comm comm, core::Status const& local)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    int mine = local ? INT_MAX : rank;
    int failed = 0;
    MPI_Allreduce(&mine, &failed, 1, MPI_INT, MPI_MIN, comm);
    if (failed == INT_MAX) return {};
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
    // Most texts fit into the first message, so that one broadcast does.
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

Team::Team(MPI_Comm comm)
{
    MPI_Comm_dup(comm, &all_);
    MPI_Comm_set_errhandler(all_, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_rank(all_, &rank_);
    MPI_Comm_size(all_, &size_);
    MPI_Comm_split_type(all_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node_);
    MPI_Comm_rank(node_, &node_rank_);
    MPI_Comm_size(node_, &node_size_);
}

Team::~Team()
{
    if (!mpi_is_active()) return;
    MPI_Comm_free(&node_);
    MPI_Comm_free(&all_);
}

std::vector<std::uint64_t> Team::sum(std::vector<std::uint64_t> values) const
{
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_UINT64_T, MPI_SUM, all_);
    return values;
}

void Team::unite(std::span<unsigned char> bits) const
{
    MPI_Allreduce(MPI_IN_PLACE, bits.data(), static_cast<int>(bits.size()), MPI_UNSIGNED_CHAR, MPI_BOR, all_);
}

std::vector<double> Team::gather(std::span<double const> values) const
{
    auto const count = static_cast<int>(values.size());
    std::vector<double> all(values.size() * static_cast<std::size_t>(size_));
    MPI_Allgather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, all_);
    return all;
}

int Team::first_different(std::uint64_t value) const
{
    std::uint64_t of_rank_0 = value;
    MPI_Bcast(&of_rank_0, 1, MPI_UINT64_T, 0, all_);
    int mine = value == of_rank_0 ? INT_MAX : rank_;
    int lowest = 0;
    MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, all_);
    return lowest == INT_MAX ? -1 : lowest;
}

std::vector<Team::Interval> Team::exchange(std::vector<std::vector<Interval>> const& to_rank) const
{
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
    std::int64_t upto = 0;
    MPI_Scan(&mine, &upto, 1, MPI_INT64_T, MPI_SUM, comm);
    std::int64_t total = 0;
    MPI_Allreduce(&mine, &total, 1, MPI_INT64_T, MPI_SUM, comm);
    return {upto - mine, total};
}

int world_rank()
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

bool mpi_is_active()
{
    int initialised = 0;
    int finalised = 0;
    MPI_Initialized(&initialised);
    if (initialised) MPI_Finalized(&finalised);
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
