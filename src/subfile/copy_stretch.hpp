// StretchCopier: copies stretches of files whose data need not pass through this process. For one thread; all calls are
// local. The files must stay open.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "core/result.hpp"

namespace tapioca::subfile {

/// Holes shorter than this do not save anything.
inline constexpr std::int64_t smallest_hole = 4096;

/// Remembers where files have data, because some file systems look through all of it to find the next hole.
class StretchCopier {
public:
    /// Copies `length` bytes at `from_at` of one file to `to_at` of another. What is a hole in the first is not
    /// written, so it stays a hole in a new file. Fails if the first file is too short.
    core::Status copy(int from, std::int64_t from_at, int to, std::int64_t to_at, std::int64_t length);

    /// Calls visit(begin, end) for the stretches of [begin, end) of a file that are not holes, in ascending order.
    /// Where the file system does not know of holes, there are none. Nothing lies behind the end of the file.
    using VisitData = std::function<core::Status(std::int64_t begin, std::int64_t end)>;
    core::Status each_data(int fd, std::int64_t begin, std::int64_t end, VisitData const& visit);

private:
    /// Bytes that are no holes.
    struct Data {
        std::int64_t begin, end;
    };
    core::Result<Data> data_at(int fd, std::int64_t offset);

    std::map<int, Data> known_;  ///< by descriptor: what was found last
};

}  // namespace tapioca::subfile
