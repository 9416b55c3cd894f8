// A directory that everybody may write, and a victim's file in a directory that nobody else may write.
#pragma once

#include <filesystem>

#include <sys/stat.h>

#include "attack/users.hpp"
#include "support/mpi_test.hpp"

namespace tapioca::test {

/// Collective. `sticky`, as /tmp is: only the owner of a file may remove or rename it.
class SharedPlace {
public:
    explicit SharedPlace(bool sticky)
    {
        std::array<char, 64> name = {"/tmp/tapioca-attack-XXXXXX"};
        if (rank() == 0) {
            if (!::mkdtemp(name.data())) name[0] = 0;
            ::chmod(name.data(), 0755);
        }
        MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
        root_ = name.data();
        if (rank() == 0) {
            std::filesystem::create_directory(path(""));
            ::chmod(path("").c_str(), sticky ? 01777 : 0777);
            std::filesystem::create_directory(root_ + "/home");
            ::chmod((root_ + "/home").c_str(), 0755);
            write_plain(victim(), stream(99, 5000));
            ::chmod(victim().c_str(), 0640);
        }
        barrier();
    }
    SharedPlace(SharedPlace const&) = delete;
    SharedPlace& operator=(SharedPlace const&) = delete;
    ~SharedPlace()
    {
        barrier();
        std::error_code ignored;
        if (rank() == 0) std::filesystem::remove_all(root_, ignored);
        barrier();
    }
    /// A path in the shared directory.
    [[nodiscard]] std::string path(std::string const& name) const { return root_ + "/shared/" + name; }
    [[nodiscard]] std::string directory() const { return root_ + "/shared"; }
    [[nodiscard]] std::string victim() const { return root_ + "/home/victim"; }
    /// Checks content, mode, owner, length and number of names.
    void expect_victim_untouched() const
    {
        struct stat found = {};
        ASSERT_EQ(::lstat(victim().c_str(), &found), 0);
        EXPECT_EQ(found.st_mode, S_IFREG | 0640U);
        EXPECT_EQ(found.st_uid, 0U);
        EXPECT_EQ(found.st_size, 5000);
        EXPECT_EQ(found.st_nlink, 1U);
        EXPECT_TRUE(contents(victim()) == stream(99, 5000));
    }

private:
    std::string root_;
};

}  // namespace tapioca::test
