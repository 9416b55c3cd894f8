#include "report/report_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tapioca/version.h>

#include "core/descriptor.hpp"
#include "core/interrupt.hpp"
#include "target/file_identity.hpp"

namespace tapioca::report {

namespace {

using core::Descriptor;

constexpr std::string_view tail = "\n  ]\n}\n";

/// Distinguishes this process from any other that wrote the same report before.
std::string process_identity()
{
    std::ifstream stat("/proc/self/stat");
    std::string const text((std::istreambuf_iterator<char>(stat)), {});
    auto const after_name = text.rfind(')');
    std::istringstream fields(after_name == std::string::npos ? "" : text.substr(after_name + 2));
    std::string field;
    for (int i = 3; i <= 22; ++i) fields >> field;  // field 22 is the start time
    return fmt::format("{}-{}", ::getpid(), field);
}

/// Locks are on bytes far beyond the end of a report. A process holds `life`, shared with others, as long as it may add
/// to the report, and holds `turn` exclusively while it adds.
enum class LockedByte : std::int64_t { life = std::int64_t{1} << 60, turn };

/// True unless somebody else has the lock. On file systems without locks, everybody gets it.
bool lock(Descriptor const& file, LockedByte part, short type, bool wait)
{
    struct flock range = {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(part);
    range.l_len = 1;
    auto const command = wait ? F_OFD_SETLKW : F_OFD_SETLK;
    return core::uninterrupted([&] { return ::fcntl(file.get(), command, &range); }) == 0 ||
           (errno != EAGAIN && errno != EACCES);
}

/// Waits only for a limited time, because others who may only read the report could lock it for ever.
bool take_turn(Descriptor const& file)
{
    for (int tries = 0; tries < 5000; ++tries) {
        if (lock(file, LockedByte::turn, F_WRLCK, false)) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

/// A report that this process adds to.
struct Known {
    Descriptor file;
    dev_t device = 0;
    ino_t inode = 0;
};

struct Reports {
    std::mutex mutex;
    pid_t owner = ::getpid();
    std::map<std::string, Known> known;  ///< by path
};

/// Never destroyed, because destructors of the program's globals may close files.
Reports& the_reports()
{
    static auto& reports = *new Reports;
    return reports;
}

bool is(struct stat const& found, Known const& known)
{
    return found.st_dev == known.device && found.st_ino == known.inode;
}

/// Whether the file is the one that has this name.
bool is_named(Descriptor const& file, std::string const& path)
{
    struct stat opened = {};
    struct stat named = {};
    return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

std::string indented(std::string const& account)
{
    std::string text = "    ";
    for (char const c : account) text += c == '\n' ? "\n    " : std::string(1, c);
    return text;
}

core::Status append(Descriptor const& file, std::string const& path, std::string const& account)
{
    if (!take_turn(file)) return core::fail(Errc::io, path + ": another process keeps it locked");
    auto status = [&]() -> core::Status {
        auto const size = core::size_of(file.get(), path);
        if (!size) return tl::unexpected(size.error());
        std::string end(tail.size(), '\0');
        if (*size < tail.size() ||
            !core::read_all(file.get(), *size - tail.size(), std::as_writable_bytes(std::span(end)), "the report") ||
            end != tail)
            return core::fail(Errc::io, path + ": does not end like a report");
        auto const text = ",\n" + indented(account) + std::string(tail);
        auto const at = *size - tail.size();
        auto written = core::write_all(file.get(), at, std::as_bytes(std::span(text)), "the report");
        if (!written) {  // the old content remains a valid document
            (void)core::write_all(file.get(), at, std::as_bytes(std::span(tail)), "the report");
            (void)::ftruncate(file.get(), static_cast<off_t>(*size));
            return core::fail_errno(written.error().sys_errno, "writing " + path);
        }
        return {};
    }();
    lock(file, LockedByte::turn, F_UNLCK, false);
    return status;
}

/// Like rename(). Without `replace`, fails with EEXIST if `to` exists.
int give_name(std::string const& from, std::string const& to, bool replace)
{
    if (replace) return std::rename(from.c_str(), to.c_str());
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
    if (::link(from.c_str(), to.c_str()) == 0) return ::unlink(from.c_str());  // NFS does not support the flag
    if (errno == EEXIST) return -1;
    return std::rename(from.c_str(), to.c_str());  // and some file systems have no hard links
}

/// Creates a report with its first account. It is made under another name, so that anything that others put in its
/// place, such as a link, is not touched. With `replace` it replaces an existing file; otherwise an existing file is a
/// failure.
core::Result<Known> create(std::string const& path, std::string const& account, bool replace)
{
    std::uint64_t nonce = 0;
    (void)::getrandom(&nonce, sizeof nonce, 0);
    auto const temporary = fmt::format("{}.{:016x}.tmp", path, nonce);
    Known made;
    made.file = Descriptor(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!made.file) return core::fail_errno(errno, "writing " + temporary);
    lock(made.file, LockedByte::life, F_RDLCK, false);
    auto const text = fmt::format("{{\n  \"tapioca\": \"{}\",\n  \"process\": \"{}\",\n  \"files\": [\n{}{}",
                                  TAPIOCA_VERSION_STRING, process_identity(), indented(account), tail);
    auto status = core::write_all(made.file.get(), 0, std::as_bytes(std::span(text)), "the report");
    if (!status) status = core::fail_errno(status.error().sys_errno, "writing " + temporary);
    struct stat found = {};
    if (status && ::fstat(made.file.get(), &found) != 0) status = core::fail_errno(errno, temporary);
    made.device = found.st_dev;
    made.inode = found.st_ino;
    if (status && give_name(temporary, path, replace) != 0) status = core::fail_errno(errno, "renaming " + temporary);
    if (status) return made;
    ::unlink(temporary.c_str());
    return tl::unexpected(status.error());
}

/// What is at `path` now: a report to which another process is adding, or nothing that can be continued.
struct There {
    bool something = false;
    Descriptor file;     ///< if this user alone wrote it
    bool alive = false;  ///< some process is adding to it, and from now on this process is, too
};

core::Result<There> look(std::string const& path)
{
    There there;
    struct stat name = {};
    there.something = ::lstat(path.c_str(), &name) == 0;
    Descriptor file(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));  // opening a pipe would wait
    struct stat found = {};
    if (!file || ::fstat(file.get(), &found) != 0) return there;
    if (!S_ISREG(found.st_mode)) return core::fail(Errc::io, path + ": not a plain file");
    for (int tries = 0; found.st_nlink == 2 && tries < 50; ++tries) {  // another process may be giving it its name
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (::fstat(file.get(), &found) != 0) return there;
    }
    if (found.st_uid != ::geteuid() || found.st_nlink != 1 || !is_named(file, path)) return there;
    std::string begin(64, '\0');
    auto const got = ::pread(file.get(), begin.data(), begin.size(), 0);
    if (got > 0 && begin.find("\"tapioca\"") == std::string::npos)
        return core::fail(Errc::io, path + ": is not a report, and is left as it is");
    there.alive = !lock(file, LockedByte::life, F_WRLCK, false);
    if (there.alive) lock(file, LockedByte::life, F_RDLCK, true);
    there.file = std::move(file);
    return there;
}

/// Closes one, because with a report for every file, descriptors would run out.
void make_room(Reports& reports)
{
    constexpr auto most_open = 16;
    auto const open = [](auto const& report) { return static_cast<bool>(report.second.file); };
    if (std::count_if(reports.known.begin(), reports.known.end(), open) < most_open) return;
    for (auto& [path, report] : reports.known) report.file = Descriptor();
}

/// The report at `path`, if this process is adding to it.
Known* find(Reports& reports, std::string const& path)
{
    auto const at = reports.known.find(path);
    if (at == reports.known.end()) return nullptr;
    auto& known = at->second;
    struct stat found = {};
    if (::lstat(path.c_str(), &found) == 0 && is(found, known)) {
        if (known.file) return &known;
        make_room(reports);
        known.file = Descriptor(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
        if (known.file && ::fstat(known.file.get(), &found) == 0 && is(found, known)) {
            lock(known.file, LockedByte::life, F_RDLCK, false);
            return &known;
        }
    }
    reports.known.erase(at);
    return nullptr;
}

void remember(Reports& reports, std::string const& path, Known known)
{
    make_room(reports);
    reports.known.insert_or_assign(path, std::move(known));
}

}  // namespace

std::string report_place(std::string const& path)
{
    struct Places {
        std::mutex mutex;
        std::map<std::string, std::string> known;
    };
    static auto& places = *new Places;  // never destroyed, as above
    std::lock_guard const guard(places.mutex);
    auto const [at, is_new] = places.known.try_emplace(path);
    if (is_new) at->second = target::absolute(path);
    return at->second;
}

core::Status add_account(std::string const& path, std::string const& account)
{
    auto& reports = the_reports();
    std::lock_guard const guard(reports.mutex);
    if (reports.owner != ::getpid()) {  // a forked process shares its parent's descriptors and their locks
        reports.owner = ::getpid();
        reports.known.clear();
    }
    for (int attempt = 0; attempt < 100; ++attempt) {
        if (auto* const known = find(reports, path)) return append(known->file, path, account);
        auto there = look(path);
        if (!there) return tl::unexpected(there.error());
        if (there->alive) {
            struct stat found = {};
            if (!is_named(there->file, path) || ::fstat(there->file.get(), &found) != 0) continue;
            remember(reports, path, {std::move(there->file), found.st_dev, found.st_ino});
            continue;
        }
        auto made = create(path, account, there->something);
        if (!made && made.error().sys_errno == EEXIST) continue;  // another process was first
        if (!made) return tl::unexpected(made.error());
        remember(reports, path, std::move(*made));
        return {};
    }
    return core::fail(Errc::io, path + ": other processes keep replacing it");
}

}  // namespace tapioca::report
