#include "target/range_lock.hpp"

#include <fcntl.h>

#include "core/interrupt.hpp"
#include "target/target.hpp"

namespace tapioca::target {

namespace {

bool set(int fd, short type, std::int64_t begin, std::int64_t end)
{
    struct flock range = {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = begin;
    range.l_len = end - begin;
    return core::uninterrupted([&] { return ::fcntl(fd, F_OFD_SETLKW, &range); }) == 0;
}

}  // namespace

RangeLock::RangeLock(Target const& file, std::int64_t begin, std::int64_t end)
    : fd_(begin < end ? file.descriptor() : -1), begin_(begin), end_(end)
{
    if (fd_ >= 0 && !set(fd_, F_WRLCK, begin_, end_)) fd_ = -1;
}

RangeLock::~RangeLock()
{
    if (fd_ >= 0) (void)set(fd_, F_UNLCK, begin_, end_);
}

}  // namespace tapioca::target
