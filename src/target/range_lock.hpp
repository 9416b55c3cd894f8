// RangeLock: excludes others that read a part of a file, change it in memory and write it back as a whole. ROMIO writes
// pieces that lie close together in this way (data sieving) and takes the same lock, which also works between ROMIO and
// this library within one process. Plain writes take no lock, in ROMIO as here.
#pragma once

#include <cstdint>

namespace tapioca::target {

class Target;

class RangeLock {
public:
    /// Locks [begin, end); waits for the lock. Has no effect on file systems without locks.
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
