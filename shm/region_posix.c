#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/platform.h"
#include "shm/text.h"

#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

/* 1024 devices take 1.4 GB. */
static const size_t largest_segment = SIZE_MAX / 2 < (size_t)4 << 30 ? SIZE_MAX / 2 : (size_t)4 << 30;

static int error_of(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR: return REGION_ENOENT;
    case EACCES:
    case EPERM:
    case EROFS: return REGION_EPERM;
    case ENOSPC:
    case EDQUOT: return REGION_ENOSPC;
    case ELOOP: return REGION_EUNTRUSTED;
    default: return REGION_ESYSTEM;
    }
}

static int path_join(char *out, const char *directory, const char *name)
{
    int length = snprintf(out, PLACE_PATH_MAX, "%s/%s", directory, name);
    return length > 0 && length < PLACE_PATH_MAX ? 0 : -1;
}

/* Every page is written, not only promised: on a full tmpfs a promised page is a SIGBUS later, in the writer or in a reader. */
static int fill_with_zeros(int fd, size_t bytes)
{
    static const char zeros[65536];
    for (size_t done = 0; done < bytes;) {
        size_t step = bytes - done < sizeof zeros ? bytes - done : sizeof zeros;
        ssize_t wrote = pwrite(fd, zeros, step, (off_t)done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? errno : ENOSPC;
        done += (size_t)wrote;
    }
    return 0;
}

static int create_failed(struct region *region, const char *path, size_t bytes, int code, char *message, size_t message_size)
{
    if (code == ENOSPC || code == EDQUOT)
        text_format(message, message_size,
                    "%s: no space left: %zu bytes (%.1f MiB) are needed; enlarge that file system "
                    "(in a container: --shm-size) or lower --max-devices",
                    path, bytes, (double)bytes / 1048576.0);
    else
        text_format(message, message_size, "%s: %s", path, strerror(code));
    if (region->file >= 0) {
        close(region->file);
        unlink(path);
    }
    region->file = -1;
    return error_of(code);
}

/* The name before publishing is kept nowhere: it follows from the inode's random suffix, which the epoch of the process gives. */
static void temporary_name(char *out, size_t size, const char *name, uint64_t suffix)
{
    snprintf(out, size, ".%s.%016llx", name, (unsigned long long)suffix);
}

static uint64_t process_suffix(void)
{
    static uint64_t suffix;
    if (suffix == 0)
        platform_random(&suffix, sizeof suffix);
    return suffix;
}

int region_create(struct region *region, const char *directory, const char *name, size_t bytes, unsigned mode, int64_t group,
                  char *message, size_t message_size)
{
    char temporary[128], path[PLACE_PATH_MAX];
    memset(region, 0, sizeof *region);
    region->file = -1;
    temporary_name(temporary, sizeof temporary, name, process_suffix());
    if (path_join(path, directory, temporary) != 0)
        return create_failed(region, directory, bytes, ENAMETOOLONG, message, message_size);
    (void)unlink(path);
    region->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (region->file < 0)
        return create_failed(region, path, bytes, errno, message, message_size);
    int code = fill_with_zeros(region->file, bytes);
    if (code == 0 && fchmod(region->file, (mode_t)mode) != 0)
        code = errno;
    if (code == 0 && group >= 0 && fchown(region->file, (uid_t)-1, (gid_t)group) != 0)
        code = errno;
    if (code != 0)
        return create_failed(region, path, bytes, code, message, message_size);
    region->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, region->file, 0);
    if (region->memory == MAP_FAILED) {
        code = errno;
        region->memory = NULL;
        return create_failed(region, path, bytes, code, message, message_size);
    }
    struct stat info;
    if (fstat(region->file, &info) != 0)
        abort();
    region->bytes = bytes;
    region->identity = (struct region_identity){(uint64_t)info.st_dev, (uint64_t)info.st_ino};
    return REGION_OK;
}

int region_publish(struct region *region, const char *directory, const char *name, char *message, size_t message_size)
{
    char temporary[128], from[PLACE_PATH_MAX], to[PLACE_PATH_MAX];
    temporary_name(temporary, sizeof temporary, name, process_suffix());
    if (path_join(from, directory, temporary) != 0 || path_join(to, directory, name) != 0)
        return REGION_ESYSTEM;
    if (rename(from, to) != 0) {
        int code = errno;
        text_format(message, message_size, "%s: %s", to, strerror(code));
        unlink(from);
        return error_of(code);
    }
    (void)region;
    return REGION_OK;
}

bool region_in_place(const struct region *region, const char *directory, const char *name)
{
    struct region_identity now;
    return region_lookup(directory, name, &now, NULL) == REGION_OK && now.device == region->identity.device &&
           now.inode == region->identity.inode;
}

void region_sweep(const char *directory, const char *name)
{
    char prefix[64];
    int length = snprintf(prefix, sizeof prefix, ".%s.", name);
    DIR *folder = opendir(directory);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, prefix, (size_t)length) == 0)
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

void region_destroy(struct region *region)
{
    if (region->memory)
        munmap(region->memory, region->bytes);
    if (region->file >= 0)
        close(region->file);
    region->memory = NULL;
    region->file = -1;
}

static int open_checked(const char *path, int flags, bool trust_any_owner, struct stat *info, char *message, size_t message_size)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        int code = errno;
        text_format(message, message_size, "%s: %s", path, strerror(code));
        return error_of(code);
    }
    if (fstat(fd, info) != 0)
        abort();
    bool owner_ok = trust_any_owner || info->st_uid == 0 || info->st_uid == geteuid();
    if (!S_ISREG(info->st_mode) || !owner_ok || (info->st_mode & S_IWOTH)) {
        text_format(message, message_size, "%s: not a regular file of root or of this user, or writable by everybody", path);
        close(fd);
        return REGION_EUNTRUSTED;
    }
    return fd;
}

int region_open(struct region *region, const char *directory, const char *name, bool trust_any_owner, void *over, size_t over_bytes,
                char *message, size_t message_size)
{
    char path[PLACE_PATH_MAX];
    struct stat info;
    memset(region, 0, sizeof *region);
    region->file = -1;
    if (path_join(path, directory, name) != 0)
        return REGION_ESYSTEM;
    int fd = open_checked(path, O_RDONLY, trust_any_owner, &info, message, message_size);
    if (fd < 0)
        return fd;
    size_t bytes = info.st_size > 0 ? (size_t)info.st_size : 0;
    if (bytes == 0 || bytes > largest_segment || (over && bytes > over_bytes)) {
        close(fd);
        text_format(message, message_size, "%s: %s", path, bytes ? "larger than any segment, or than expected" : "empty");
        region->bytes = bytes;
        return REGION_ESYSTEM;
    }
    int flags = MAP_SHARED | (over ? MAP_FIXED : 0);
    void *memory = mmap(over, bytes, PROT_READ, flags, fd, 0);
    int code = errno;
    close(fd);
    if (memory == MAP_FAILED) {
        text_format(message, message_size, "%s: %s", path, strerror(code));
        return error_of(code);
    }
    region->memory = memory;
    region->bytes = bytes;
    region->identity = (struct region_identity){(uint64_t)info.st_dev, (uint64_t)info.st_ino};
    return REGION_OK;
}

int region_open_owned(struct region *region, const char *directory, const char *name)
{
    char path[PLACE_PATH_MAX];
    struct stat info;
    memset(region, 0, sizeof *region);
    region->file = -1;
    if (path_join(path, directory, name) != 0)
        return REGION_ESYSTEM;
    int fd = open_checked(path, O_RDWR, false, &info, NULL, 0);
    if (fd < 0)
        return fd;
    size_t bytes = info.st_size > 0 ? (size_t)info.st_size : 0;
    void *memory = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (memory == MAP_FAILED)
        return REGION_ESYSTEM;
    region->memory = memory;
    region->bytes = bytes;
    region->identity = (struct region_identity){(uint64_t)info.st_dev, (uint64_t)info.st_ino};
    return REGION_OK;
}

int region_lookup(const char *directory, const char *name, struct region_identity *identity, uint64_t *modified_ns)
{
    char path[PLACE_PATH_MAX];
    struct stat info;
    if (path_join(path, directory, name) != 0)
        return REGION_ESYSTEM;
    if (lstat(path, &info) != 0)
        return error_of(errno);
    if (!S_ISREG(info.st_mode))
        return REGION_EUNTRUSTED;
    *identity = (struct region_identity){(uint64_t)info.st_dev, (uint64_t)info.st_ino};
    if (modified_ns)
        *modified_ns = (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec;
    return REGION_OK;
}

bool region_retire(void *memory, size_t bytes)
{
    void *at = mmap(memory, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (at != memory)
        abort();
    return true;
}

void region_populate(const void *memory, size_t bytes)
{
#ifdef MADV_POPULATE_READ
    (void)madvise((void *)(uintptr_t)memory, bytes, MADV_POPULATE_READ);
#else
    (void)madvise((void *)(uintptr_t)memory, bytes, MADV_WILLNEED);
#endif
}

void region_unmap(void *memory, size_t bytes)
{
    if (memory && munmap(memory, bytes) != 0)
        abort();
}
