// A small file system, which is soon full.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include <sys/mount.h>
#include <sys/stat.h>

#include "support/mpi_test.hpp"

namespace tapioca::test {

/// A file system of some size, such as "1m", on all ranks, for the life of this object.
class SmallFileSystem {
public:
    SmallFileSystem(std::string directory, std::string const& size) : directory_(std::move(directory))
    {
        if (rank() == 0) {
            ::mkdir(directory_.c_str(), 0755);
            mounted_ = ::mount("tmpfs", directory_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
            error_ = errno;
        }
        mounted_ = from_rank_0(mounted_ ? 1 : 0) == 1;
    }
    SmallFileSystem(SmallFileSystem const&) = delete;
    SmallFileSystem& operator=(SmallFileSystem const&) = delete;
    ~SmallFileSystem()
    {
        barrier();
        if (rank() == 0 && mounted_) ::umount2(directory_.c_str(), MNT_DETACH);
        barrier();
    }
    void resize(std::string const& size) const
    {
        if (rank() == 0) {
            EXPECT_EQ(::mount("tmpfs", directory_.c_str(), "tmpfs", MS_REMOUNT, ("size=" + size).c_str()), 0);
        }
        barrier();
    }
    /// Not every user may mount one; then error() gives the reason, on rank 0.
    [[nodiscard]] bool mounted() const { return mounted_; }
    [[nodiscard]] int error() const { return error_; }

private:
    std::string directory_;
    bool mounted_ = false;
    int error_ = 0;
};

}  // namespace tapioca::test
