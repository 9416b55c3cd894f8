// See faults.hpp.
#include "support/faults.hpp"

#include <atomic>
#include <cerrno>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace tapioca::test {

namespace {

struct {
    std::atomic<bool> armed = false;
    dev_t device = 0;
    ino_t inode = 0;
    Call call = Call::write;
    Fault fault = Fault::error;
    int at = 0;
    int error = 0;
    std::atomic<int> calls = 0;
    std::atomic<int> fired = 0;
} state;

/// What this call shall do instead. False: nothing special.
bool faulty(int fd, Call call)
{
    if (!state.armed || state.call != call) return false;
    struct stat info = {};
    if (::fstat(fd, &info) != 0 || info.st_dev != state.device || info.st_ino != state.inode) return false;
    int const number = ++state.calls;
    if (number < state.at) return false;
    bool const once = state.fault == Fault::error || state.fault == Fault::zero;
    if (once && number > state.at) return false;
    if (state.fault == Fault::interrupt && (number - state.at) % 2 == 1) return false;
    ++state.fired;
    return true;
}

/// Runs `move(bytes)` unless the call is faulty. `bytes` is what it would move.
template <class Move>
ssize_t moved(int fd, Call call, std::size_t bytes, Move move)
{
    if (!faulty(fd, call)) return move(bytes);
    switch (state.fault) {
    case Fault::zero: return 0;
    case Fault::half: return move(bytes > 1 ? bytes / 2 : bytes);
    case Fault::interrupt: errno = EINTR; return -1;
    case Fault::error: break;
    }
    errno = state.error;
    return -1;
}

/// A vector call moves all, or half of its first vector.
template <class Move>
ssize_t moved_vectors(int fd, Call call, iovec const* vectors, int count, Move move)
{
    auto const most = static_cast<std::size_t>(-1);
    return moved(fd, call, most, [&](std::size_t bytes) {
        if (bytes == most) return move(vectors, count);
        iovec const half{vectors[0].iov_base, vectors[0].iov_len > 1 ? vectors[0].iov_len / 2 : vectors[0].iov_len};
        return move(&half, 1);
    });
}

}  // namespace

Armed::Armed(std::string const& path, Call call, Fault fault, int at, int error)
{
    struct stat info = {};
    if (::stat(path.c_str(), &info) != 0) return;
    state.device = info.st_dev;
    state.inode = info.st_ino;
    state.call = call;
    state.fault = fault;
    state.at = at;
    state.error = error;
    state.calls = 0;
    state.fired = 0;
    state.armed = true;
}

Armed::~Armed()
{
    state.armed = false;
}

int Armed::fired() const
{
    return state.fired;
}

}  // namespace tapioca::test

using tapioca::test::Call;

#define EXPORTED extern "C" [[gnu::visibility("default")]]

EXPORTED ssize_t pwrite(int fd, void const* data, size_t bytes, off_t offset)
{
    return tapioca::test::moved(fd, Call::write, bytes,
                                [&](std::size_t n) { return ::syscall(SYS_pwrite64, fd, data, n, offset); });
}

EXPORTED ssize_t pread(int fd, void* data, size_t bytes, off_t offset)
{
    return tapioca::test::moved(fd, Call::read, bytes,
                                [&](std::size_t n) { return ::syscall(SYS_pread64, fd, data, n, offset); });
}

EXPORTED ssize_t pwritev(int fd, iovec const* vectors, int count, off_t offset)
{
    return tapioca::test::moved_vectors(fd, Call::write, vectors, count, [&](iovec const* v, int n) {
        return ::syscall(SYS_pwritev, fd, v, n, offset, 0);
    });
}

EXPORTED ssize_t preadv(int fd, iovec const* vectors, int count, off_t offset)
{
    return tapioca::test::moved_vectors(fd, Call::read, vectors, count, [&](iovec const* v, int n) {
        return ::syscall(SYS_preadv, fd, v, n, offset, 0);
    });
}

EXPORTED int fsync(int fd)
{
    if (tapioca::test::faulty(fd, Call::sync)) {
        errno = tapioca::test::state.error;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_fsync, fd));
}

EXPORTED int close(int fd)
{
    bool const faulty = tapioca::test::faulty(fd, Call::close);
    auto const result = static_cast<int>(::syscall(SYS_close, fd));
    if (!faulty) return result;
    errno = tapioca::test::state.error;
    return -1;
}
