#include "comm/shared_memory_groups.hpp"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/team.hpp"
#include "core/descriptor.hpp"
#include "core/host.hpp"
#include "core/interrupt.hpp"

namespace tapioca::comm {

namespace {

/// The same number on ranks that seem to share memory: those of one kernel that see the same directory, whatever their
/// host's name. A unique number if there is no such directory.
std::uint64_t place_of_memory()
{
    struct stat directory = {};
    if (::stat(core::shm_directory, &directory) != 0) return core::random_number();
    std::uint64_t const numbers[] = {directory.st_dev, directory.st_ino};
    return core::digest({reinterpret_cast<char const*>(numbers), sizeof numbers}, core::digest(core::boot_id()));
}

/// What the first rank of a group sends to the others.
struct SharedSign {
    char name[56];        ///< of a file; empty: the file could not be made
    std::uint64_t token;  ///< the contents of the file
};

/// The file that the others look for. It exists as long as this object.
class Made {
public:
    Made()
    {
        auto const name = core::new_memory_name();
        path_ = std::string(core::shm_directory) + "/" + name;
        file_ = core::Descriptor(core::uninterrupted(
            [&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600); }));
        if (!file_) return;
        (void)::flock(file_.get(), LOCK_EX | LOCK_NB);  // so that it is not taken for a leftover
        sign_.token = core::random_number();
        auto const* const bytes = reinterpret_cast<std::byte const*>(&sign_.token);
        if (core::write_all(file_.get(), 0, {bytes, sizeof sign_.token}, "a sign to neighbours") &&
            name.size() < sizeof sign_.name)
            std::memcpy(sign_.name, name.data(), name.size());
    }
    Made(Made const&) = delete;
    Made& operator=(Made const&) = delete;
    ~Made()
    {
        for (int tries = 0; file_ && tries < 2; ++tries)  // tries again if it fails once
            if (::unlink(path_.c_str()) == 0 || errno == ENOENT) break;
    }
    [[nodiscard]] SharedSign const& sign() const { return sign_; }

private:
    std::string path_;
    core::Descriptor file_;
    SharedSign sign_ = {};
};

/// As strict as attaching memory: it must be a plain file that belongs to this user alone.
bool is_seen(SharedSign const& sign)
{
    if (sign.name[0] == '\0') return false;
    auto const path = std::string(core::shm_directory) + "/" + sign.name;
    core::Descriptor const file(
        core::uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); }));
    struct stat found = {};
    if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != ::geteuid())
        return false;
    std::uint64_t token = 0;
    auto const read = core::read_all(file.get(), 0, {reinterpret_cast<std::byte*>(&token), sizeof token}, "a sign");
    return read && token == sign.token;
}

struct Seen {
    bool here = true, everywhere = true;
};

/// Finds out which ranks see the file of the first rank of `group`. Collective over `group`.
Seen look(MPI_Comm group)
{
    if (size_of(group) == 1) return {};
    auto const try_it = [&](SharedSign sign) {
        MPI_Bcast(&sign, sizeof sign, MPI_BYTE, 0, group);
        int const here = is_seen(sign) ? 1 : 0;
        int everywhere = 0;
        MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, group);
        return Seen{here == 1, everywhere == 1};
    };
    if (rank_in(group) != 0) return try_it({});
    Made const made;  // exists until all have looked
    return try_it(made.sign());
}

/// A communicator of the ranks of `all` with the same number. Gathering is collective over `all`; the rest is not.
MPI_Comm alike(MPI_Comm all, std::uint64_t number)
{
    std::vector<std::uint64_t> numbers(static_cast<std::size_t>(size_of(all)));
    MPI_Allgather(&number, 1, MPI_UINT64_T, numbers.data(), 1, MPI_UINT64_T, all);
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < numbers.size(); ++rank)
        if (numbers[rank] == number) ranks.push_back(static_cast<int>(rank));
    return chosen(all, ranks);
}

/// A communicator of the ranks of `group` with the same colour; `group` is freed. Collective over it.
MPI_Comm divide(MPI_Comm group, int colour)
{
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(group, colour, rank_in(group), &part);
    MPI_Comm_free(&group);
    return part;
}

}  // namespace

MPI_Comm neighbours(MPI_Comm all)
{
    MPI_Comm group = alike(all, place_of_memory());
    auto seen = look(group);
    if (seen.everywhere) return group;
    // Copies of one virtual machine look alike, except for their names.
    group = divide(group, seen.here ? 0 : 1 + static_cast<int>(core::digest(core::host_name()) % INT_MAX));
    if (seen.here) return group;
    seen = look(group);
    return seen.everywhere ? group : divide(group, seen.here ? 0 : 1 + rank_in(group));
}

}  // namespace tapioca::comm
