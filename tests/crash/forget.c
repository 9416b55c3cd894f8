/* Preloaded: keeps each plain file below FORGET_ROOT as it was at its last fsync or fdatasync, under its inode's number
 * in FORGET_KEPT. What crash_lose takes away after a kill is what differs from that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_below_root(int fd)
{
    char const* const root = getenv("FORGET_ROOT");
    char link[64];
    char path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t const bytes = readlink(link, path, sizeof path);
    return root && bytes > 0 && (size_t)bytes > strlen(root) && strncmp(path, root, strlen(root)) == 0;
}

/* Another descriptor: this one may not be for reading, and locks of the program's own stay as they are. */
static int copy(int fd, char const* to)
{
    char link[64];
    char buffer[1 << 16];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int const in = open(link, O_RDONLY | O_CLOEXEC);
    int const out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct stat info;
    int good = in >= 0 && out >= 0 && fstat(in, &info) == 0;
    ssize_t got = 0;
    while (good && (got = read(in, buffer, sizeof buffer)) > 0) good = write(out, buffer, (size_t)got) == got;
    struct timespec const times[2] = {info.st_atim, info.st_mtim};
    good = good && got == 0 && futimens(out, times) == 0;
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    return good;
}

/* One process at a time: of two copies the later one counts. */
static void keep(int fd)
{
    char const* const kept = getenv("FORGET_KEPT");
    struct stat info;
    if (!kept || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !is_below_root(fd)) return;
    char made[PATH_MAX];
    char name[PATH_MAX];
    int const lock = open(kept, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(made, sizeof made, "%s/new", kept);
    snprintf(name, sizeof name, "%s/%llu", kept, (unsigned long long)info.st_ino);
    if (lock < 0 || flock(lock, LOCK_EX) != 0 || !copy(fd, made) || rename(made, name) != 0) {
        perror("forget: a file could not be kept");
        abort();
    }
    close(lock);
}

/* The copy counts from when the call returns: it may have more, and never less, than was written before the call. */
int fsync(int fd)
{
    int (*const next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    int const result = next(fd);
    if (result == 0) keep(fd);
    return result;
}

int fdatasync(int fd)
{
    int (*const next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    int const result = next(fd);
    if (result == 0) keep(fd);
    return result;
}
