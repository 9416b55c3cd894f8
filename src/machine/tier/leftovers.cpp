// Removes memory files whose creator was killed between creating one and removing its name.
#include <algorithm>
#include <ctime>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/tier/kinds.hpp"
#include "machine/tier/named.hpp"

namespace tapioca::machine {

namespace {

// Longer than the time between creating a file and locking it.
constexpr std::time_t least_age_s = 60;

/// tapioca-PID-NONCE, as named by create_file(). Logs of the stage have no second dash.
bool is_memory_file(std::string_view name)
{
    constexpr std::string_view prefix = "tapioca-";
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    auto const dash = name.find('-');
    if (dash == name.npos || dash == 0 || dash > 10) return false;
    auto const digit = [](char c) { return c >= '0' && c <= '9'; };
    auto const hex = [&](char c) { return digit(c) || (c >= 'a' && c <= 'f'); };
    auto const pid = name.substr(0, dash);
    auto const nonce = name.substr(dash + 1);
    return std::all_of(pid.begin(), pid.end(), digit) && nonce.size() == 16 &&
           std::all_of(nonce.begin(), nonce.end(), hex);
}

bool is_old_and_ours(struct stat const& file)
{
    return S_ISREG(file.st_mode) && file.st_nlink == 1 && file.st_uid == ::geteuid() &&
           file.st_mtime < std::time(nullptr) - least_age_s;
}

void remove_if_left(int directory, char const* name)
{
    struct stat found = {};
    if (::fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) != 0 || !is_old_and_ours(found)) return;
    int const fd = ::openat(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    struct stat opened = {};
    struct stat named = {};
    // Checks again, since the name may belong to another file by now. Without locks the file stays.
    bool const left = ::fstat(fd, &opened) == 0 && is_old_and_ours(opened) && ::flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                      ::fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == opened.st_dev &&
                      named.st_ino == opened.st_ino;
    if (left) (void)::unlinkat(directory, name, 0);
    ::close(fd);
}

/// True at the first call for a directory.
bool is_new_to_us(std::string const& directory)
{
    static std::mutex mutex;
    static std::set<std::string> known;
    std::lock_guard const lock(mutex);
    return known.insert(directory).second;
}

}  // namespace

void remove_leftovers(std::string const& directory)
{
    if (!is_new_to_us(directory)) return;
    std::unique_ptr<DIR, int (*)(DIR*)> const entries(::opendir(directory.c_str()), &::closedir);
    if (!entries) return;
    while (auto const* const entry = ::readdir(entries.get()))
        if (is_memory_file(entry->d_name))
            remove_if_left(::dirfd(entries.get()), entry->d_name);
        else if (is_named_memory(entry->d_name))
            remove_unused_memory(directory + '/' + entry->d_name);
}

}  // namespace tapioca::machine
