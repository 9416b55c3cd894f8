// What the tests of the C interface share: arrays for TAPIOCA_Init, data, and a check that codes are the same on every
// rank.
#pragma once

#include <tapioca/tapioca.h>

#include "support/mpi_test.hpp"

namespace tapioca::test {

/// Checks that a call returned `code` on every rank, with one text that contains `parts`. Collective over the world.
inline void expect_code(int returned, int code, std::vector<std::string> const& parts)
{
    EXPECT_EQ(returned, code) << TAPIOCA_Last_error();
    TAPIOCA_Failure last{};
    EXPECT_EQ(TAPIOCA_Last_failure(&last), TAPIOCA_SUCCESS);
    EXPECT_EQ(last.code, returned);
    expect_same_on_all_ranks({static_cast<Errc>(returned), last.rank, last.sys_errno, last.text, last.path});
    expect_parts(last.text, parts);
}

#define EXPECT_OK(call) EXPECT_EQ(call, TAPIOCA_SUCCESS) << TAPIOCA_Last_error()

/// Three arrays of 5 values of 8 bytes on every rank, one after the other, as in the paper's Algorithm 2.
struct Arrays {
    static constexpr int n = 3;
    static constexpr std::int64_t each = 40;

    Arrays()
    {
        for (int i = 0; i < n; ++i) {
            count[i] = 5;
            type[i] = 8;
            offset[i] = (rank() * n + i) * each;
            data[i] = stream(static_cast<std::uint64_t>(rank() * n + i), each);
            back[i].assign(each, std::byte{0});
        }
    }
    int write(TAPIOCA_File file, int i) { return TAPIOCA_Write(file, offset[i], data[i].data(), 5, 8, &status[i]); }
    int read(TAPIOCA_File file, int i) { return TAPIOCA_Read(file, offset[i], back[i].data(), 5, 8, &status[i]); }
    void expect_statuses(std::int64_t bytes, int error) const
    {
        for (auto const& one : status) {
            EXPECT_EQ(one.bytes, bytes);
            EXPECT_EQ(one.error, error);
        }
    }
    /// Checks that the file contains every rank's three arrays from `base` on. Local.
    static void expect_in(std::string const& path, std::int64_t base = 0)
    {
        auto const all = contents(path);
        ASSERT_GE(all.size(), static_cast<std::size_t>(base + ranks() * n * each));
        for (int i = 0; i < ranks() * n; ++i) {
            auto const wanted = stream(static_cast<std::uint64_t>(i), each);
            EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), all.begin() + base + i * each)) << "array " << i;
        }
    }

    std::int64_t count[n], type[n], offset[n];
    std::vector<std::byte> data[n], back[n];
    TAPIOCA_Status status[n] = {{-1, -1}, {-1, -1}, {-1, -1}};
};

inline TAPIOCA_File open(std::string const& path, int mode = TAPIOCA_MODE_CREATE)
{
    TAPIOCA_File file = TAPIOCA_FILE_NULL;
    EXPECT_OK(TAPIOCA_Open(MPI_COMM_WORLD, path.c_str(), mode, MPI_INFO_NULL, &file));
    return file;
}

}  // namespace tapioca::test
