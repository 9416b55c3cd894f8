// See faults.hpp.
#include "support/faults.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include <link.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "support/stand_in.hpp"

namespace tapioca::faults {

namespace {

struct Range {
    std::uintptr_t begin, end;
};

struct {
    std::atomic<bool> armed = false;
    std::atomic<int> inside = 0;
    Fault fault;
    bool one_file = false;  ///< only calls on this file, and all of them
    dev_t device = 0;
    ino_t inode = 0;
    std::atomic<int> calls[static_cast<std::size_t>(Op::ops)] = {};
    std::atomic<int> fired = 0;
    double stall_s = 0.05;
    Range code[8] = {};  ///< of the executable and of the library under test
    int codes = 0;
} state;

int add_code(dl_phdr_info* info, std::size_t /*size*/, void* first)
{
    auto& is_first = *static_cast<bool*>(first);
    bool const ours = is_first || std::strstr(info->dlpi_name, "tapioca");
    is_first = false;
    if (!ours) return 0;
    for (int i = 0; i < info->dlpi_phnum && state.codes < 8; ++i) {
        auto const& part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
        auto const begin = static_cast<std::uintptr_t>(info->dlpi_addr + part.p_vaddr);
        state.code[state.codes++] = {begin, begin + part.p_memsz};
    }
    return 0;
}

bool is_ours(void const* caller)
{
    auto const at = reinterpret_cast<std::uintptr_t>(caller);
    return std::any_of(state.code, state.code + state.codes,
                       [&](Range const& r) { return r.begin <= at && at < r.end; });
}

void begin(Fault const& fault, bool one_file)
{
    state.fault = fault;
    state.one_file = one_file;
    for (auto& calls : state.calls) calls = 0;
    state.fired = 0;
    state.armed = true;
}

/// Counts the call. Returns whether the fault occurs in it.
bool due(Op op)
{
    int const number = ++state.calls[static_cast<std::size_t>(op)];
    auto const& fault = state.fault;
    if (fault.at == 0 || fault.op != op || number < fault.at) return false;
    bool const always = fault.kind == Kind::stays || fault.kind == Kind::halves;
    bool const every_other = fault.kind == Kind::interrupts && (number - fault.at) % 2 == 0;
    if (number > fault.at && !always && !every_other) return false;
    ++state.fired;
    return true;
}

/// Counts a call on an open file. Returns whether it is to be faulty.
bool faulty(Op op, int fd, void const* caller)
{
    if (!state.armed) return false;
    if (!state.one_file) return faulty(op, caller);
    struct stat info = {};
    if (state.fault.op != op || ::fstat(fd, &info) != 0) return false;
    return info.st_dev == state.device && info.st_ino == state.inode && due(op);
}

/// A vector call moves all its bytes, or half of its first vector.
template <class Move>
ssize_t moved_vectors(bool is_faulty, int fd, iovec const* vectors, int count, Move move)
{
    auto const most = static_cast<std::size_t>(-1);
    return moved(is_faulty, fd, most, [&](std::size_t bytes) {
        if (bytes == most) return move(vectors, count);
        iovec const half{vectors[0].iov_base, vectors[0].iov_len > 1 ? vectors[0].iov_len / 2 : vectors[0].iov_len};
        return move(&half, 1);
    });
}

}  // namespace

bool is_watched(void const* caller)
{
    return state.armed && !state.one_file && state.inside > 0 && is_ours(caller);
}

bool faulty(Op op, void const* caller)
{
    return is_watched(caller) && due(op);
}

bool faulty(Op op)
{
    return state.armed && !state.one_file && state.inside > 0 && due(op);
}

Fault const& armed_fault()
{
    return state.fault;
}

void stall()
{
    std::this_thread::sleep_for(std::chrono::duration<double>(state.stall_s));
}

void cut(int fd)
{
    struct stat info = {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
    auto const path = "/proc/self/fd/" + std::to_string(fd);
    if (::truncate(path.c_str(), info.st_size / 2) != 0) return;
}

void arm(Fault const& fault)
{
    made = 0;
    if (state.codes == 0) {
        bool first = true;
        ::dl_iterate_phdr(add_code, &first);
    }
    begin(fault, false);
}

int disarm()
{
    state.armed = false;
    return state.fired;
}

int calls(Op op)
{
    return state.calls[static_cast<std::size_t>(op)];
}

Inside::Inside()
{
    ++state.inside;
}

Inside::~Inside()
{
    --state.inside;
}

void set_stall(double seconds)
{
    state.stall_s = seconds;
}

Armed::Armed(std::string const& path, Op op, Kind kind, int at, int error)
{
    struct stat info = {};
    if (::stat(path.c_str(), &info) != 0) return;
    state.device = info.st_dev;
    state.inode = info.st_ino;
    begin({op, kind, error, at}, true);
}

Armed::~Armed()
{
    state.armed = false;
}

int Armed::fired() const
{
    return state.fired;
}

}  // namespace tapioca::faults

using namespace tapioca::faults;

EXPORTED int close(int fd)
{
    bool const is_faulty = faulty(Op::close, fd, CALLER);
    auto const result = static_cast<int>(::syscall(SYS_close, fd));  // the descriptor is closed in any case
    return done(is_faulty, [&] { return result; });
}

EXPORTED ssize_t pwrite(int fd, void const* data, size_t bytes, off_t offset)
{
    return moved(faulty(Op::write, fd, CALLER), fd, bytes,
                 [&](std::size_t n) { return ::syscall(SYS_pwrite64, fd, data, n, offset); });
}

EXPORTED ssize_t pread(int fd, void* data, size_t bytes, off_t offset)
{
    return moved(faulty(Op::read, fd, CALLER), fd, bytes,
                 [&](std::size_t n) { return ::syscall(SYS_pread64, fd, data, n, offset); });
}

EXPORTED ssize_t pwritev(int fd, iovec const* vectors, int count, off_t offset)
{
    return moved_vectors(faulty(Op::write, fd, CALLER), fd, vectors, count,
                         [&](iovec const* v, int n) { return ::syscall(SYS_pwritev, fd, v, n, offset, 0); });
}

EXPORTED ssize_t preadv(int fd, iovec const* vectors, int count, off_t offset)
{
    return moved_vectors(faulty(Op::read, fd, CALLER), fd, vectors, count,
                         [&](iovec const* v, int n) { return ::syscall(SYS_preadv, fd, v, n, offset, 0); });
}

EXPORTED int fsync(int fd)
{
    return done(faulty(Op::sync, fd, CALLER), [&] { return static_cast<int>(::syscall(SYS_fsync, fd)); });
}
