#include "faults/inject.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "support/stand_in.hpp"

namespace tapioca::faults {

namespace {

constexpr int most_made = 64;

struct {
    std::atomic<std::int64_t> allocations = 0;
    char paths[most_made][256] = {};  ///< of what was made
} state;

/// Notes a new name in a directory, or one that is whole.
void note_made(int directory, char const* path)
{
    int const number = made++;
    if (number >= most_made) return;
    char where[200] = "";
    if (directory >= 0) {
        char link[32];
        std::snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        if (auto const length = ::readlink(link, where, sizeof where - 2); length > 0) where[length] = '/';
    }
    std::snprintf(state.paths[number], sizeof state.paths[number], "%s%s", where, path);
}

/// The C library's function of that name.
template <class F>
F* next(char const* name)
{
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

char const* name(Op op)
{
    constexpr char const* names[] = {"open", "close", "write", "read", "sync",   "room",
                                     "map",  "name",  "look",  "lock", "thread", "memory"};
    return names[static_cast<std::size_t>(op)];
}

std::string describe(Fault const& fault)
{
    std::string what = fault.error != 0 ? strerrorname_np(fault.error) : "";
    switch (fault.kind) {
    case Kind::error: break;
    case Kind::stays: what += " for good"; break;
    case Kind::half: what = "half done"; break;
    case Kind::halves: what = "half done, always"; break;
    case Kind::interrupts: what = "interrupted"; break;
    case Kind::nothing: what = "nothing done"; break;
    case Kind::stall: what = "stall"; break;
    case Kind::truncate: what = "cut short by others"; break;
    }
    return std::string(name(fault.op)) + " " + what;
}

std::vector<Fault> all_faults()
{
    std::vector<Fault> faults;
    auto const add = [&](Op op, std::initializer_list<int> errors, std::initializer_list<Kind> kinds = {}) {
        for (int const error : errors) faults.push_back({op, Kind::error, error, 0});
        for (auto const kind : kinds) faults.push_back({op, kind, kind == Kind::stays ? ENOSPC : 0, 0});
    };
    add(Op::open, {EMFILE, EACCES, ENOSPC, EIO, EINTR});
    add(Op::close, {EIO, ENOSPC, EDQUOT, EINTR});
    add(Op::write, {ENOSPC, EIO, EDQUOT, EINTR, EAGAIN}, {Kind::stays, Kind::half, Kind::nothing, Kind::stall});
    add(Op::read, {EIO, EINTR, EAGAIN}, {Kind::half, Kind::stall, Kind::truncate});
    add(Op::sync, {EIO, ENOSPC, EDQUOT, EINTR}, {Kind::stall});
    add(Op::room, {ENOSPC, EIO, EDQUOT, EINTR, EOPNOTSUPP}, {Kind::stays});
    add(Op::map, {ENOMEM});
    add(Op::name, {EIO, ENOSPC, EACCES});
    add(Op::look, {EIO});
    add(Op::lock, {EINTR, ENOLCK});
    add(Op::thread, {EAGAIN});
    add(Op::memory, {ENOMEM});
    return faults;
}

Belongings look()
{
    namespace fs = std::filesystem;
    Belongings have;
    have.allocations = state.allocations;
    auto const count = [](char const* directory) {
        return static_cast<int>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
    };
    have.descriptors = count("/proc/self/fd");
    have.threads = count("/proc/self/task");
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("rw-s") != std::string::npos && line.find("tapioca") != std::string::npos) ++have.shared_mappings;
    return have;
}

std::string left_over(std::string const& directory)
{
    int const count = std::min<int>(made, most_made);
    for (int i = 0; i < count; ++i) {
        std::string path = state.paths[i];
        if (!path.starts_with(directory) && ::access(path.c_str(), F_OK) == 0) return path;
    }
    return {};
}

std::string surplus(Belongings const& before, Belongings const& after)
{
    std::string text;
    auto const compare = [&](char const* what, std::int64_t then, std::int64_t now) {
        if (now > then) text += std::to_string(now - then) + " " + what + " more; ";
    };
    compare("descriptors", before.descriptors, after.descriptors);
    compare("threads", before.threads, after.threads);
    compare("shared mappings", before.shared_mappings, after.shared_mappings);
    compare("allocations", before.allocations, after.allocations);
    return text;
}

}  // namespace tapioca::faults

using namespace tapioca::faults;

EXPORTED int open(char const* path, int flags, ...)
{
    static auto* const real = next<int(char const*, int, ...)>("open");
    va_list list;
    va_start(list, flags);
    auto const mode = static_cast<mode_t>(va_arg(list, int));
    va_end(list);
    bool const ours = is_watched(CALLER);
    int const fd = done(ours && faulty(Op::open), [&] { return real(path, flags, mode); });
    if (ours && fd >= 0 && (flags & O_CREAT) && (flags & O_EXCL)) note_made(-1, path);
    return fd;
}

EXPORTED int openat(int directory, char const* path, int flags, ...)
{
    static auto* const real = next<int(int, char const*, int, ...)>("openat");
    va_list list;
    va_start(list, flags);
    auto const mode = static_cast<mode_t>(va_arg(list, int));
    va_end(list);
    bool const ours = is_watched(CALLER);
    int const fd = done(ours && faulty(Op::open), [&] { return real(directory, path, flags, mode); });
    if (ours && fd >= 0 && (flags & O_CREAT) && (flags & O_EXCL)) note_made(directory, path);
    return fd;
}

EXPORTED ssize_t write(int fd, void const* data, size_t bytes)
{
    static auto* const real = next<ssize_t(int, void const*, size_t)>("write");
    return moved(faulty(Op::write, CALLER), fd, bytes, [&](std::size_t n) { return real(fd, data, n); });
}

EXPORTED ssize_t read(int fd, void* data, size_t bytes)
{
    static auto* const real = next<ssize_t(int, void*, size_t)>("read");
    return moved(faulty(Op::read, CALLER), fd, bytes, [&](std::size_t n) { return real(fd, data, n); });
}

EXPORTED int fdatasync(int fd)
{
    static auto* const real = next<int(int)>("fdatasync");
    return done(faulty(Op::sync, CALLER), [&] { return real(fd); });
}

EXPORTED int msync(void* data, size_t bytes, int flags)
{
    static auto* const real = next<int(void*, size_t, int)>("msync");
    return done(faulty(Op::sync, CALLER), [&] { return real(data, bytes, flags); });
}

EXPORTED int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    static auto* const real = next<int(int, int, off_t, off_t)>("fallocate");
    return done(faulty(Op::room, CALLER), [&] { return real(fd, mode, offset, bytes); });
}

EXPORTED int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    static auto* const real = next<int(int, off_t, off_t)>("posix_fallocate");
    bool const is_faulty = faulty(Op::room, CALLER);
    if (is_faulty && armed_fault().kind != Kind::stall) return armed_fault().error;
    return real(fd, offset, bytes);
}

EXPORTED int ftruncate(int fd, off_t bytes) noexcept
{
    static auto* const real = next<int(int, off_t)>("ftruncate");
    return done(faulty(Op::room, CALLER), [&] { return real(fd, bytes); });
}

EXPORTED void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept
{
    static auto* const real = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
    if (!faulty(Op::map, CALLER)) return real(at, bytes, protection, flags, fd, offset);
    errno = armed_fault().error;
    return MAP_FAILED;
}

EXPORTED int unlink(char const* path) noexcept
{
    static auto* const real = next<int(char const*)>("unlink");
    return done(faulty(Op::name, CALLER), [&] { return real(path); });
}

EXPORTED int unlinkat(int directory, char const* path, int flags) noexcept
{
    static auto* const real = next<int(int, char const*, int)>("unlinkat");
    return done(faulty(Op::name, CALLER), [&] { return real(directory, path, flags); });
}

EXPORTED int linkat(int from_directory, char const* from, int directory, char const* to, int flags) noexcept
{
    static auto* const real = next<int(int, char const*, int, char const*, int)>("linkat");
    return done(faulty(Op::name, CALLER), [&] { return real(from_directory, from, directory, to, flags); });
}

EXPORTED int rename(char const* from, char const* to) noexcept
{
    static auto* const real = next<int(char const*, char const*)>("rename");
    return done(faulty(Op::name, CALLER), [&] { return real(from, to); });
}

EXPORTED int link(char const* from, char const* to) noexcept
{
    static auto* const real = next<int(char const*, char const*)>("link");
    return done(faulty(Op::name, CALLER), [&] { return real(from, to); });
}

EXPORTED int rmdir(char const* path) noexcept
{
    static auto* const real = next<int(char const*)>("rmdir");
    return done(faulty(Op::name, CALLER), [&] { return real(path); });
}

EXPORTED int mkdirat(int directory, char const* path, mode_t mode) noexcept
{
    static auto* const real = next<int(int, char const*, mode_t)>("mkdirat");
    bool const ours = is_watched(CALLER);
    int const result = done(ours && faulty(Op::name), [&] { return real(directory, path, mode); });
    if (ours && result == 0) note_made(directory, path);
    return result;
}

EXPORTED int fstat(int fd, struct stat* info) noexcept
{
    static auto* const real = next<int(int, struct stat*)>("fstat");
    return done(faulty(Op::look, CALLER), [&] { return real(fd, info); });
}

EXPORTED int stat(char const* path, struct stat* info) noexcept
{
    static auto* const real = next<int(char const*, struct stat*)>("stat");
    return done(faulty(Op::look, CALLER), [&] { return real(path, info); });
}

EXPORTED int lstat(char const* path, struct stat* info) noexcept
{
    static auto* const real = next<int(char const*, struct stat*)>("lstat");
    return done(faulty(Op::look, CALLER), [&] { return real(path, info); });
}

EXPORTED int fstatat(int directory, char const* path, struct stat* info, int flags) noexcept
{
    static auto* const real = next<int(int, char const*, struct stat*, int)>("fstatat");
    return done(faulty(Op::look, CALLER), [&] { return real(directory, path, info, flags); });
}

EXPORTED int fstatfs(int fd, struct statfs* info) noexcept
{
    static auto* const real = next<int(int, struct statfs*)>("fstatfs");
    return done(faulty(Op::look, CALLER), [&] { return real(fd, info); });
}

EXPORTED int statvfs(char const* path, struct statvfs* info) noexcept
{
    static auto* const real = next<int(char const*, struct statvfs*)>("statvfs");
    return done(faulty(Op::look, CALLER), [&] { return real(path, info); });
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // a struct of that name is hidden, as the C library does
EXPORTED int flock(int fd, int operation) noexcept
{
    static auto* const real = next<int(int, int)>("flock");
    return done(faulty(Op::lock, CALLER), [&] { return real(fd, operation); });
}
#pragma GCC diagnostic pop

EXPORTED int pthread_create(pthread_t* thread, pthread_attr_t const* attributes, void* (*body)(void*),
                            void* argument) noexcept
{
    static auto* const real = next<int(pthread_t*, pthread_attr_t const*, void* (*)(void*), void*)>("pthread_create");
    // The C++ library calls it: no caller of ours to be seen.
    if (faulty(Op::thread)) return armed_fault().error;
    return real(thread, attributes, body, argument);
}

namespace {

void* allocate(std::size_t bytes, std::size_t alignment = 0) noexcept
{
    if (faulty(Op::memory)) return nullptr;
    void* const memory = alignment > 0 ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                                       : std::malloc(bytes == 0 ? 1 : bytes);
    if (memory) ++state.allocations;
    return memory;
}

void release(void* memory) noexcept
{
    if (!memory) return;
    --state.allocations;
    std::free(memory);
}

void* or_throw(void* memory)
{
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

#define SEEN [[gnu::visibility("default")]]
SEEN void* operator new(std::size_t bytes)
{
    return or_throw(allocate(bytes));
}
SEEN void* operator new[](std::size_t bytes)
{
    return or_throw(allocate(bytes));
}
SEEN void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept
{
    return allocate(bytes);
}
SEEN void* operator new[](std::size_t bytes, std::nothrow_t const&) noexcept
{
    return allocate(bytes);
}
SEEN void* operator new(std::size_t bytes, std::align_val_t to)
{
    return or_throw(allocate(bytes, std::size_t(to)));
}
SEEN void* operator new[](std::size_t bytes, std::align_val_t to)
{
    return or_throw(allocate(bytes, std::size_t(to)));
}
SEEN void operator delete(void* memory) noexcept
{
    release(memory);
}
SEEN void operator delete[](void* memory) noexcept
{
    release(memory);
}
SEEN void operator delete(void* memory, std::size_t) noexcept
{
    release(memory);
}
SEEN void operator delete[](void* memory, std::size_t) noexcept
{
    release(memory);
}
SEEN void operator delete(void* memory, std::align_val_t) noexcept
{
    release(memory);
}
SEEN void operator delete[](void* memory, std::align_val_t) noexcept
{
    release(memory);
}
SEEN void operator delete(void* memory, std::size_t, std::align_val_t) noexcept
{
    release(memory);
}
SEEN void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept
{
    release(memory);
}
SEEN void operator delete(void* memory, std::nothrow_t const&) noexcept
{
    release(memory);
}
SEEN void operator delete[](void* memory, std::nothrow_t const&) noexcept
{
    release(memory);
}
