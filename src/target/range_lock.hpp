// RangeLock: keeps out those who read a part of a file, change it in memory and write it back whole. ROMIO writes
// pieces that lie close together in this way (data sieving) and takes the same lock for it, which also holds between
// the two in one process. Plain writes of others take none, there as here.
#pragma once

#include <cstdint>

namespace tapioca::target {

class Target;

class RangeLock {
public:
    /// Of [begin, end); waits for it. Where a file system has no locks, nothing happens.
    RangeLock(Target const& file, std::int64_t begin, std::int64_t end);
    RangeLock(RangeLock const&) = delete;
    RangeLock& operator=(RangeLock const&) = delete;
    ~RangeLock();

private:
    int fd_;  ///< -1: nothing is locked
    std::int64_t begin_;
    std::int64_t end_;
};

}  // namespace tapioca::target
