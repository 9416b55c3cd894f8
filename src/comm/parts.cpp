// Parts of a communicator: communicators of some of its ranks, and what rank 0 gathers from the others.
#include <algorithm>
#include <map>

#include "comm/team.hpp"
#include "comm/watchdog.hpp"

namespace tapioca::comm {

MPI_Comm chosen(MPI_Comm comm, std::vector<int> const& ranks)
{
    MPI_Group everybody = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm_group(comm, &everybody);
    MPI_Group_incl(everybody, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_create_group(comm, some, 0, &made);
    MPI_Group_free(&some);
    MPI_Group_free(&everybody);
    return made;
}

std::vector<std::vector<std::byte>> collect(MPI_Comm comm, std::vector<std::byte> const& mine)
{
    if (size_of(comm) == 1) return {mine};
    constexpr std::size_t most = std::size_t{1} << 30;  // counts are ints
    constexpr int tag = 0;
    Waiting const waiting("the other ranks' part");
    auto const bytes = static_cast<std::int64_t>(mine.size());
    bool const first = rank_in(comm) == 0;
    std::vector<std::int64_t> sizes(first ? static_cast<std::size_t>(size_of(comm)) : 0);
    MPI_Gather(&bytes, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, 0, comm);
    std::vector<std::vector<std::byte>> all;
    if (!first)
        for (std::size_t at = 0; at < mine.size(); at += most)
            MPI_Send(mine.data() + at, static_cast<int>(std::min(most, mine.size() - at)), MPI_BYTE, 0, tag, comm);
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
        auto& part = all.emplace_back(static_cast<std::size_t>(sizes[rank]));
        if (rank == 0) part = mine;
        for (std::size_t at = 0; rank > 0 && at < part.size(); at += most)
            MPI_Recv(part.data() + at, static_cast<int>(std::min(most, part.size() - at)), MPI_BYTE,
                     static_cast<int>(rank), tag, comm, MPI_STATUS_IGNORE);
    }
    return all;
}

namespace {

struct KeptParts {
    KeptParts() = default;
    KeptParts(KeptParts const&) = delete;
    KeptParts& operator=(KeptParts const&) = delete;
    ~KeptParts()
    {
        if (!mpi_is_active()) return;
        for (auto& [ranks, comm] : made) MPI_Comm_free(&comm);
    }
    std::map<std::vector<int>, MPI_Comm> made;  ///< by their ranks
};

AttachmentKey const& machine_size_key()
{
    static AttachmentKey const key;
    return key;
}

}  // namespace

int machine_size_around(MPI_Comm comm)
{
    auto const noted = std::static_pointer_cast<int>(attached(comm, machine_size_key()));
    return noted ? *noted : 0;
}

MPI_Comm kept_part(Team const& team, std::vector<int> const& ranks)
{
    static AttachmentKey const key;
    auto kept = std::static_pointer_cast<KeptParts>(attached(team.all(), key));
    if (!kept) {
        kept = std::make_shared<KeptParts>();
        attach(team.all(), key, kept);
    }
    auto& part = kept->made.try_emplace(ranks, MPI_COMM_NULL).first->second;
    if (part == MPI_COMM_NULL) {
        Waiting const waiting("the other ranks of its group");
        part = chosen(team.all(), ranks);
        attach(part, machine_size_key(), std::make_shared<int>(team.machine_size()));
    }
    return part;
}

}  // namespace tapioca::comm
