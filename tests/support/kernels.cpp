// If TEST_KERNELS is set, makes every pretended node look like a separate kernel: the executable's open() takes
// precedence over the C library's, and returns another boot id for each.
#include <mpi.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

/// The MPI library also asks while it starts.
bool is_pretended(char const* path)
{
    int started = 0;
    if (std::strcmp(path, "/proc/sys/kernel/random/boot_id") != 0 || !std::getenv("TEST_KERNELS")) return false;
    MPI_Initialized(&started);
    return started != 0;
}

int kernel_of_this_rank()
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank / std::atoi(std::getenv("TEST_KERNELS"));
}

int open_boot_id()
{
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
    char text[64];
    int const length = std::snprintf(text, sizeof text, "kernel %d\n", kernel_of_this_rank());
    bool const written = ::write(ends[1], text, static_cast<std::size_t>(length)) == length;
    ::close(ends[1]);
    if (written) return ends[0];
    ::close(ends[0]);
    return -1;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int open(char const* path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    auto const mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (is_pretended(path)) return open_boot_id();
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
