// crash_lose SEED KEPT TARGET BEFORE PATH...: does to the files below each PATH what a machine that stops does. For
// every page that differs from the copy kept at the file's last fsync (see forget.c), the old or the new one is kept,
// at random; a file that was never synced keeps only zeros or new pages. TARGET began as BEFORE. Prints how many bytes
// were lost. A copy that is older than the file is of another one, which had the same inode.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/random_patterns.hpp"

namespace {

namespace fs = std::filesystem;
using namespace tapioca::test;

constexpr std::size_t page = 4096;

struct Contents {
    Bytes bytes;
    timespec changed = {};
};

Contents contents(std::string const& path)
{
    Contents result;
    struct stat info = {};
    if (::stat(path.c_str(), &info) != 0) return result;
    result.changed = info.st_mtim;
    result.bytes.resize(static_cast<std::size_t>(info.st_size));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(result.bytes.data()), static_cast<std::streamsize>(result.bytes.size()));
    return result;
}

/// When the file was made, in ns; 0 if that is not known.
std::int64_t born(std::string const& path)
{
    struct statx info = {};
    bool const known =
        ::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &info) == 0 && (info.stx_mask & STATX_BTIME) != 0;
    return known ? info.stx_btime.tv_sec * 1'000'000'000 + info.stx_btime.tv_nsec : 0;
}

/// What is left of `now` where `kept` is certain; how many bytes that are lost is added up.
Contents mixed(Random& random, Contents const& kept, Contents const& now, std::size_t& lost)
{
    Contents result = kept;
    auto const percent = static_cast<int>(random.one_of<std::int64_t>({0, 0, 50, 90}));
    if (random.chance(percent)) result.bytes.resize(now.bytes.size());
    for (std::size_t at = 0; at < std::min(now.bytes.size(), result.bytes.size()); at += page) {
        auto const end = std::min({at + page, now.bytes.size(), result.bytes.size()});
        if (std::equal(now.bytes.begin() + static_cast<long>(at), now.bytes.begin() + static_cast<long>(end),
                       result.bytes.begin() + static_cast<long>(at)))
            continue;
        if (random.chance(percent)) {
            std::copy(now.bytes.begin() + static_cast<long>(at), now.bytes.begin() + static_cast<long>(end),
                      result.bytes.begin() + static_cast<long>(at));
            result.changed = now.changed;
        } else {
            lost += end - at;
        }
    }
    return result;
}

void put(std::string const& path, Contents const& contents)
{
    int const file = ::open(path.c_str(), O_WRONLY | O_TRUNC);
    timespec const times[2] = {contents.changed, contents.changed};
    if (file < 0 ||
        ::write(file, contents.bytes.data(), contents.bytes.size()) != static_cast<ssize_t>(contents.bytes.size()) ||
        ::futimens(file, times) != 0)
        std::abort();
    ::close(file);
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc < 6) return 2;
    Random random(std::strtoull(argv[1], nullptr, 10));
    std::string const target = argv[3];
    std::size_t lost = 0;
    std::vector<std::string> files;
    for (int i = 5; i < argc; ++i) {
        if (fs::is_regular_file(argv[i])) files.push_back(argv[i]);
        std::error_code error;
        for (auto const& entry : fs::recursive_directory_iterator(argv[i], error))
            if (entry.is_regular_file()) files.push_back(entry.path().string());
    }
    for (auto const& file : files) {
        struct stat info = {};
        if (::stat(file.c_str(), &info) != 0) return 1;
        auto const kept = std::string(argv[2]) + "/" + std::to_string(info.st_ino);
        bool const is_its = fs::exists(kept) && born(file) <= born(kept);
        auto certain = contents(is_its ? kept : file == target ? argv[4] : "/none");
        put(file, mixed(random, certain, contents(file), lost));
    }
    std::printf("%zu\n", lost);
    return 0;
}
