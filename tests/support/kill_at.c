/* Preloaded: ends the process with SIGKILL at the KILL_AT-th call that changes or syncs a file, before it is made;
 * with KILL_RANK only the process of that rank. A process that ends by itself adds a line with their number to the file
 * KILL_COUNT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int calls;

__attribute__((destructor)) static void tell(void)
{
    char const* const path = getenv("KILL_COUNT");
    FILE* const file = path && calls > 0 ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%d\n", calls);
    fclose(file);
}

/* Of the ranks, the one that shall die. */
static int is_meant(void)
{
    char const* const meant = getenv("KILL_RANK");
    char const* rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    return !meant || (rank && strcmp(meant, rank) == 0);
}

static void count(void)
{
    char const* const at = getenv("KILL_AT");
    int const number = atomic_fetch_add(&calls, 1) + 1;
    if (at && number == atoi(at) && is_meant()) kill(getpid(), SIGKILL);
}

/* Only plain files count: MPI writes to sockets and pipes. */
static void count_file(int fd)
{
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 0) count();
}

/* Only what is ours: MPI removes files of its own. */
static int is_ours(char const* path)
{
    static char const* const marks[] = {".tapioca", "/tapioca-", ".subfiles", ".joining", ".splitting"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; ++i)
        if (strstr(path, marks[i])) return 1;
    return 0;
}

static void count_path(char const* path)
{
    if (is_ours(path)) count();
}

ssize_t pwrite(int fd, void const* data, size_t bytes, off_t offset)
{
    count_file(fd);
    ssize_t (*const next)(int, void const*, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
    return next(fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, void const* data, size_t bytes, off_t offset)
{
    return pwrite(fd, data, bytes, offset);
}

ssize_t pwritev(int fd, struct iovec const* vectors, int number, off_t offset)
{
    count_file(fd);
    ssize_t (*const next)(int, struct iovec const*, int, off_t) = dlsym(RTLD_NEXT, "pwritev");
    return next(fd, vectors, number, offset);
}

ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t bytes, unsigned flags)
{
    count_file(to);
    ssize_t (*const next)(int, off64_t*, int, off64_t*, size_t, unsigned) = dlsym(RTLD_NEXT, "copy_file_range");
    return next(from, from_at, to, to_at, bytes, flags);
}

int fsync(int fd)
{
    count_file(fd);
    int (*const next)(int) = dlsym(RTLD_NEXT, "fsync");
    return next(fd);
}

int fdatasync(int fd)
{
    count_file(fd);
    int (*const next)(int) = dlsym(RTLD_NEXT, "fdatasync");
    return next(fd);
}

int ftruncate(int fd, off_t size)
{
    count_file(fd);
    int (*const next)(int, off_t) = dlsym(RTLD_NEXT, "ftruncate");
    return next(fd, size);
}

int posix_fallocate(int fd, off_t begin, off_t bytes)
{
    count_file(fd);
    int (*const next)(int, off_t, off_t) = dlsym(RTLD_NEXT, "posix_fallocate");
    return next(fd, begin, bytes);
}

int rename(char const* from, char const* to)
{
    if (is_ours(from) || is_ours(to)) count();
    int (*const next)(char const*, char const*) = dlsym(RTLD_NEXT, "rename");
    return next(from, to);
}

int mkdir(char const* path, mode_t mode)
{
    count_path(path);
    int (*const next)(char const*, mode_t) = dlsym(RTLD_NEXT, "mkdir");
    return next(path, mode);
}

int link(char const* from, char const* to)
{
    count_path(to);
    int (*const next)(char const*, char const*) = dlsym(RTLD_NEXT, "link");
    return next(from, to);
}

int unlink(char const* path)
{
    count_path(path);
    int (*const next)(char const*) = dlsym(RTLD_NEXT, "unlink");
    return next(path);
}

int renameat(int from_directory, char const* from, int to_directory, char const* to)
{
    count();
    int (*const next)(int, char const*, int, char const*) = dlsym(RTLD_NEXT, "renameat");
    return next(from_directory, from, to_directory, to);
}

int linkat(int from_directory, char const* from, int to_directory, char const* to, int flags)
{
    count_path(to);
    int (*const next)(int, char const*, int, char const*, int) = dlsym(RTLD_NEXT, "linkat");
    return next(from_directory, from, to_directory, to, flags);
}

int unlinkat(int directory, char const* path, int flags)
{
    count();
    int (*const next)(int, char const*, int) = dlsym(RTLD_NEXT, "unlinkat");
    return next(directory, path, flags);
}

int rmdir(char const* path)
{
    count_path(path);
    int (*const next)(char const*) = dlsym(RTLD_NEXT, "rmdir");
    return next(path);
}
