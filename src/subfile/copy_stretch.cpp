#include "subfile/copy_stretch.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "core/descriptor.hpp"
#include "core/interrupt.hpp"

namespace tapioca::subfile {

namespace {

/// Bytes that are read and written at a time where the system does not copy by itself.
constexpr std::int64_t most_in_memory = std::int64_t{1} << 20;

core::Status copy_through_memory(int from, std::int64_t from_at, int to, std::int64_t to_at, std::int64_t length)
{
    std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(length, most_in_memory)));
    for (std::int64_t done = 0; done < length;) {
        auto const part = std::span(bytes).first(static_cast<std::size_t>(std::min(length - done, most_in_memory)));
        auto const read = core::read_all(from, static_cast<std::uint64_t>(from_at + done), part, "the data to copy");
        if (!read) return read;
        auto const written = core::write_all(to, static_cast<std::uint64_t>(to_at + done), part, "the copy");
        if (!written) return written;
        done += static_cast<std::int64_t>(part.size());
    }
    return {};
}

bool means_not_supported(int error)
{
    return error == EXDEV || error == EOPNOTSUPP || error == EINVAL || error == ENOSYS;
}

core::Status copy_data(int from, std::int64_t from_at, int to, std::int64_t to_at, std::int64_t length)
{
    while (length > 0) {
        off64_t source = from_at;
        off64_t place = to_at;
        auto const done = core::uninterrupted(
            [&] { return ::copy_file_range(from, &source, to, &place, static_cast<std::size_t>(length), 0); });
        // Some file systems copy nothing and say so in this way; reading tells whether it is the end of the file.
        if (done == 0 || (done < 0 && means_not_supported(errno)))
            return copy_through_memory(from, from_at, to, to_at, length);
        if (done < 0) return core::fail_errno(errno, "copying data");
        from_at += done;
        to_at += done;
        length -= done;
    }
    return {};
}

}  // namespace

/// The data at `offset`, or the next behind it; an empty stretch if there is none.
core::Result<StretchCopier::Data> StretchCopier::data_at(int fd, std::int64_t offset)
{
    auto const [at, is_new] = known_.try_emplace(fd, Data{0, 0});
    auto& known = at->second;
    if (is_new) {
        struct stat file = {};
        if (::fstat(fd, &file) != 0) return core::fail_errno(errno, "the data to copy");
        if (file.st_blocks * std::int64_t{512} >= file.st_size) known.end = file.st_size;  // there is no hole
    }
    if (known.begin <= offset && offset < known.end) return known;
    auto const data = ::lseek(fd, offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return Data{0, 0};  // there is nothing but a hole up to the end
    if (data < 0 && errno != EINVAL && errno != EOPNOTSUPP) return core::fail_errno(errno, "looking for data");
    auto const hole = data < 0 ? data : ::lseek(fd, data, SEEK_HOLE);
    known = {std::max<std::int64_t>(data, 0), hole < 0 ? std::numeric_limits<std::int64_t>::max() : hole};
    return known;
}

core::Status StretchCopier::each_data(int fd, std::int64_t begin, std::int64_t end, VisitData const& visit)
{
    while (begin < end) {
        auto const data = data_at(fd, begin);
        if (!data) return tl::unexpected(data.error());
        auto const from = std::max(data->begin, begin);
        auto const to = std::min(data->end, end);
        if (from >= to) return {};
        if (auto status = visit(from, to); !status) return status;
        begin = to;
    }
    return {};
}

core::Status StretchCopier::copy(int from, std::int64_t from_at, int to, std::int64_t to_at, std::int64_t length)
{
    auto const size = core::size_of(from, "the data to copy");
    if (!size) return tl::unexpected(size.error());
    if (static_cast<std::int64_t>(*size) < from_at + length)
        return core::fail(Errc::io,
                          "a file is shorter than it must be: `tapioca subfile verify` lists what is missing");
    return each_data(from, from_at, from_at + length, [&](std::int64_t begin, std::int64_t end) {
        return copy_data(from, begin, to, to_at + (begin - from_at), end - begin);
    });
}

}  // namespace tapioca::subfile
