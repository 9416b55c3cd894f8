/* slowfs DIRECTORY MOUNTPOINT MB/S: the directory, written at that rate at most by all writers together (FUSE). For
 * measuring what a slow target costs an application. Ends when it is unmounted. */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static char const* root;
static double bytes_per_second;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double busy_until;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Waits as long as a device would be busy with so many bytes. */
static void take_time(size_t bytes)
{
    pthread_mutex_lock(&lock);
    double const start = busy_until > now() ? busy_until : now();
    busy_until = start + (double)bytes / bytes_per_second;
    double const end = busy_until;
    pthread_mutex_unlock(&lock);
    for (double left = end - now(); left > 0; left = end - now()) {
        struct timespec const nap = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        nanosleep(&nap, NULL);
    }
}

static char const* under_root(char const* path, char* buffer, size_t size)
{
    snprintf(buffer, size, "%s%s", root, path);
    return buffer;
}

static int answer(int result)
{
    return result < 0 ? -errno : result;
}

static int slow_getattr(char const* path, struct stat* found, struct fuse_file_info* info)
{
    char full[4096];
    (void)info;
    return answer(lstat(under_root(path, full, sizeof full), found));
}

static int slow_open(char const* path, struct fuse_file_info* info)
{
    char full[4096];
    int const fd = open(under_root(path, full, sizeof full), info->flags & ~O_DIRECT);
    if (fd < 0) return -errno;
    info->fh = (uint64_t)fd;
    return 0;
}

static int slow_create(char const* path, mode_t mode, struct fuse_file_info* info)
{
    char full[4096];
    int const fd = open(under_root(path, full, sizeof full), info->flags & ~O_DIRECT, mode);
    if (fd < 0) return -errno;
    info->fh = (uint64_t)fd;
    return 0;
}

static int slow_read(char const* path, char* data, size_t size, off_t offset, struct fuse_file_info* info)
{
    (void)path;
    return answer((int)pread((int)info->fh, data, size, offset));
}

static int slow_write(char const* path, char const* data, size_t size, off_t offset, struct fuse_file_info* info)
{
    (void)path;
    take_time(size);
    return answer((int)pwrite((int)info->fh, data, size, offset));
}

static int slow_truncate(char const* path, off_t size, struct fuse_file_info* info)
{
    char full[4096];
    (void)info;
    return answer(truncate(under_root(path, full, sizeof full), size));
}

static int slow_unlink(char const* path)
{
    char full[4096];
    return answer(unlink(under_root(path, full, sizeof full)));
}

static int slow_rename(char const* from, char const* to, unsigned flags)
{
    char full_from[4096];
    char full_to[4096];
    if (flags != 0) return -EINVAL;
    return answer(rename(under_root(from, full_from, sizeof full_from), under_root(to, full_to, sizeof full_to)));
}

static int slow_link(char const* from, char const* to)
{
    char full_from[4096];
    char full_to[4096];
    return answer(link(under_root(from, full_from, sizeof full_from), under_root(to, full_to, sizeof full_to)));
}

static int slow_mkdir(char const* path, mode_t mode)
{
    char full[4096];
    return answer(mkdir(under_root(path, full, sizeof full), mode));
}

static int slow_rmdir(char const* path)
{
    char full[4096];
    return answer(rmdir(under_root(path, full, sizeof full)));
}

static int slow_chmod(char const* path, mode_t mode, struct fuse_file_info* info)
{
    char full[4096];
    (void)info;
    return answer(chmod(under_root(path, full, sizeof full), mode));
}

static int slow_readdir(char const* path, void* buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info* info,
                        enum fuse_readdir_flags flags)
{
    char full[4096];
    DIR* const directory = opendir(under_root(path, full, sizeof full));
    (void)offset;
    (void)info;
    (void)flags;
    if (!directory) return -errno;
    for (struct dirent* entry = readdir(directory); entry; entry = readdir(directory))
        fill(buffer, entry->d_name, NULL, 0, 0);
    closedir(directory);
    return 0;
}

static int slow_statfs(char const* path, struct statvfs* found)
{
    char full[4096];
    return answer(statvfs(under_root(path, full, sizeof full), found));
}

static int slow_fsync(char const* path, int data_only, struct fuse_file_info* info)
{
    (void)path;
    (void)data_only;
    return answer(fsync((int)info->fh));
}

static int slow_release(char const* path, struct fuse_file_info* info)
{
    (void)path;
    return answer(close((int)info->fh));
}

static struct fuse_operations const operations = {
    .getattr = slow_getattr,
    .open = slow_open,
    .create = slow_create,
    .read = slow_read,
    .write = slow_write,
    .truncate = slow_truncate,
    .unlink = slow_unlink,
    .rename = slow_rename,
    .link = slow_link,
    .mkdir = slow_mkdir,
    .rmdir = slow_rmdir,
    .chmod = slow_chmod,
    .readdir = slow_readdir,
    .statfs = slow_statfs,
    .fsync = slow_fsync,
    .release = slow_release,
};

int main(int argc, char** argv)
{
    bytes_per_second = argc == 4 ? atof(argv[3]) * 1e6 : 0;
    if (bytes_per_second <= 0) {
        fprintf(stderr, "usage: %s DIRECTORY MOUNTPOINT MB/S\n", argv[0]);
        return 2;
    }
    root = realpath(argv[1], NULL);
    if (!root) {
        perror(argv[1]);
        return 1;
    }
    char* arguments[] = {argv[0], "-f", argv[2], NULL};
    return fuse_main(3, arguments, &operations, NULL);
}
