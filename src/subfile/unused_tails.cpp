#include "subfile/unused_tails.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/interrupt.hpp"
#include "subfile/directory_files.hpp"

namespace tapioca::subfile {

namespace {

/// A link may be of a file that is not the set's, and root may cut the files of others.
bool is_of_set(int directory, struct stat const& file)
{
    struct stat around = {};
    return S_ISREG(file.st_mode) && file.st_nlink == 1 && ::fstat(directory, &around) == 0 &&
           file.st_uid == around.st_uid;
}

std::uint64_t cut_tail(int directory, std::uint32_t number, std::uint64_t end)
{
    auto const file = open_in(directory, subfile_name(number).c_str(), O_RDWR);
    struct stat now = {};
    if (!file || ::fstat(file->get(), &now) != 0 || !is_of_set(directory, now)) return 0;
    auto const bytes = static_cast<std::uint64_t>(now.st_size);
    if (bytes <= end) return 0;
    if (core::uninterrupted([&] { return ::ftruncate(file->get(), static_cast<off_t>(end)); }) != 0) return 0;
    (void)sync(file->get(), "a subfile");  // some file systems give the blocks back only then
    return bytes - end;
}

}  // namespace

std::uint64_t cut_unused_tails(int directory, SetContents const& contents, bool on_tier)
{
    if (!is_live(directory)) return 0;
    auto const& job = contents.writer();
    auto const& known = contents.map().subfiles();
    // Of a set on a tier, the last one is never on it.
    std::uint64_t bytes = 0;
    for (auto i = on_tier && job.groups > 0 ? job.groups - 1 : 0; i < job.groups; ++i) {
        auto const chunks = known.find(job.first_subfile + i);
        bytes += cut_tail(directory, job.first_subfile + i, chunks == known.end() ? 0 : chunks->second);
    }
    return bytes;
}

}  // namespace tapioca::subfile
