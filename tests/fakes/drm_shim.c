/* The calls of the C library that libdrm, libsystemd and programs make on files, in front of the library's own. By system calls
 * where that is possible: sanitizers look at the names, too, and are not ready when the first of these calls are made.
 *
 * What is read through a FILE is not seen by read faults, and a descriptor that is inherited is a plain file. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "drm_shim.h"

_Static_assert(sizeof(struct stat) == sizeof(struct stat64) && sizeof(struct dirent) == sizeof(struct dirent64), "64-bit systems");
enum { SYSFS_TYPE = 0x62656572, DRM_MAJOR = 226 };

/* --- paths ------------------------------------------------------------------------------------------------------------------ */

struct place {
    bool mapped;
    char seen[SHIM_PATH]; /* as the program sees it */
    char real[SHIM_PATH * 2];
    const struct shim_gpu *gpu;
};

static bool begins(const char *path, const char *prefix, size_t length)
{
    return length > 0 && strncmp(path, prefix, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static void strip_root(char *path)
{
    if (begins(path, shim.root, shim.root_length))
        memmove(path, path + shim.root_length, strlen(path + shim.root_length) + 1);
}

static bool folder_of(int fd, char out[SHIM_PATH])
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, out, SHIM_PATH - 1);
    out[length > 0 ? length : 0] = '\0';
    strip_root(out);
    return length > 0 && (out[0] == '/' || out[0] == '\0');
}

/* True if the path is one of the root's. */
static bool find(int folder, const char *path, struct place *out)
{
    char base[SHIM_PATH] = "";
    out->mapped = false;
    if (!shim.ready || !path || (path[0] != '/' && (folder == AT_FDCWD || !folder_of(folder, base))))
        return false;
    const char *slash = path[0] == '/' || !path[0] || strcmp(base, "/") == 0 ? "" : "/";
    if ((size_t)snprintf(out->seen, sizeof out->seen, "%s%s%s", base, slash, path) >= sizeof out->seen)
        return false;
    strip_root(out->seen);
    for (int i = 0; i < shim.map_count && !out->mapped; i++)
        out->mapped = begins(out->seen, shim.maps[i], strlen(shim.maps[i]));
    if (!out->mapped)
        return false;
    (void)snprintf(out->real, sizeof out->real, "%s%s", shim.root, out->seen);
    out->gpu = shim_gpu_of(out->seen);
    return true;
}

/* 0 or an errno. */
static int gone(const struct place *place) { return shim_away(place->gpu) ? ENOENT : 0; }

static int failed(int error)
{
    errno = error;
    return -1;
}

static bool is_node(const char *seen) { return strncmp(seen, "/dev/dri/", 9) == 0 && shim_gpu_of(seen) != NULL; }

static unsigned node_minor(const char *seen) { return (unsigned)strtoul(seen + strcspn(seen, "0123456789"), NULL, 10); }

/* --- open and close --------------------------------------------------------------------------------------------------------- */

static int open_at(int folder, const char *path, int flags, unsigned mode)
{
    struct place place;
    if (!find(folder, path, &place)) {
        int fd = (int)syscall(SYS_openat, folder, path, flags, mode);
        if (shim.ready)
            shim_remember(fd, "");
        return fd;
    }
    if (!(flags & O_PATH))
        shim_log("open", place.seen, "");
    int error = gone(&place);
    if (!error)
        error = shim_fault_of(SHIM_OPEN, place.seen, "");
    if (error)
        return failed(error);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, place.real, flags, mode);
    shim_remember(fd, place.seen);
    return fd;
}

#define OPEN(name)                                                                                                                 \
    int name(const char *path, int flags, ...)                                                                                     \
    {                                                                                                                              \
        va_list rest;                                                                                                              \
        va_start(rest, flags);                                                                                                     \
        unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, unsigned) : 0;                                                \
        va_end(rest);                                                                                                              \
        return open_at(AT_FDCWD, path, flags, mode);                                                                               \
    }
#define OPENAT(name)                                                                                                               \
    int name(int folder, const char *path, int flags, ...)                                                                         \
    {                                                                                                                              \
        va_list rest;                                                                                                              \
        va_start(rest, flags);                                                                                                     \
        unsigned mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, unsigned) : 0;                                                \
        va_end(rest);                                                                                                              \
        return open_at(folder, path, flags, mode);                                                                                 \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
/* What programs call that were built with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
int __open_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_at(AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char *path, int flags) { return open_at(folder, path, flags, 0); }
int __openat64_2(int folder, const char *path, int flags) { return open_at(folder, path, flags, 0); }

int close(int fd)
{
    if (shim.ready)
        shim_remember(fd, "");
    return (int)syscall(SYS_close, fd);
}

static FILE *open_stream(const char *path, const char *mode, const char *name)
{
    struct place place;
    if (!find(AT_FDCWD, path, &place)) {
        FILE *(*next)(const char *, const char *);
        *(void **)&next = dlsym(RTLD_NEXT, name);
        return next(path, mode);
    }
    int fd = open_at(AT_FDCWD, path, mode[0] == 'r' ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CLOEXEC, 0);
    return fd < 0 ? NULL : fdopen(fd, mode);
}

FILE *fopen(const char *path, const char *mode) { return open_stream(path, mode, "fopen"); }
FILE *fopen64(const char *path, const char *mode) { return open_stream(path, mode, "fopen64"); }

int fclose(FILE *file)
{
    int (*next)(FILE *);
    *(void **)&next = dlsym(RTLD_NEXT, "fclose");
    if (shim.ready)
        shim_remember(fileno(file), "");
    return next(file);
}

static int duplicated(int from, int to)
{
    if (shim.ready && to >= 0)
        shim_remember(to, shim_path_of(from));
    return to;
}

int dup(int fd) { return duplicated(fd, (int)syscall(SYS_dup, fd)); }

static int control_file(int fd, int command, long argument)
{
    int result = (int)syscall(SYS_fcntl, fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(fd, result) : result;
}

#define FCNTL(name)                                                                                                                \
    int name(int fd, int command, ...)                                                                                             \
    {                                                                                                                              \
        va_list rest;                                                                                                              \
        va_start(rest, command);                                                                                                   \
        long argument = va_arg(rest, long);                                                                                        \
        va_end(rest);                                                                                                              \
        return control_file(fd, command, argument);                                                                                \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

/* --- reading ---------------------------------------------------------------------------------------------------------------- */

static int read_error(int fd)
{
    const char *seen = shim_path_of(fd);
    if (!seen[0])
        return 0;
    int error = shim_fault_of(SHIM_READ, seen, "");
    return shim_away(shim_gpu_of(seen)) ? ENODEV : error;
}

ssize_t read(int fd, void *out, size_t size)
{
    int error = read_error(fd);
    return error ? failed(error) : syscall(SYS_read, fd, out, size);
}

ssize_t pread(int fd, void *out, size_t size, off_t offset)
{
    int error = read_error(fd);
    return error ? failed(error) : syscall(SYS_pread64, fd, out, size, offset);
}

ssize_t pread64(int fd, void *out, size_t size, off64_t offset) { return pread(fd, out, size, offset); }

int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    const char *seen = shim_path_of(fd);
    if (!is_node(seen))
        return (int)syscall(SYS_ioctl, fd, request, argument);
    const struct shim_gpu *gpu = shim_gpu_of(seen);
    char name[24];
    shim_request_name(gpu, request, argument, name);
    shim_log("ioctl", seen, name);
    int error = shim_fault_of(SHIM_IOCTL, seen, name);
    if (!error)
        error = shim_away(gpu) ? ENODEV : shim_answer(gpu, request, argument);
    return error ? failed(error) : 0;
}

/* --- what a path is --------------------------------------------------------------------------------------------------------- */

static int stat_at(int folder, const char *path, struct stat *out, int flags)
{
    struct place place;
    bool own = flags & AT_EMPTY_PATH && path && !path[0]; /* the descriptor's own */
    if (own ? !shim_path_of(folder)[0] : !find(folder, path, &place))
        return (int)syscall(SYS_newfstatat, folder, path, out, flags);
    const char *seen = own ? shim_path_of(folder) : place.seen;
    if (!own && gone(&place))
        return failed(ENOENT);
    int result =
        (int)(own ? syscall(SYS_newfstatat, folder, path, out, flags) : syscall(SYS_newfstatat, AT_FDCWD, place.real, out, flags));
    if (result == 0 && is_node(seen)) {
        out->st_mode = S_IFCHR | 0666;
        out->st_rdev = makedev(DRM_MAJOR, node_minor(seen));
    }
    return result;
}

int stat(const char *path, struct stat *out) { return stat_at(AT_FDCWD, path, out, 0); }
int lstat(const char *path, struct stat *out) { return stat_at(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW); }
int fstat(int fd, struct stat *out) { return stat_at(fd, "", out, AT_EMPTY_PATH); }
int fstatat(int folder, const char *path, struct stat *out, int flags) { return stat_at(folder, path, out, flags); }
int stat64(const char *path, struct stat64 *out) { return stat(path, (struct stat *)out); }
int lstat64(const char *path, struct stat64 *out) { return lstat(path, (struct stat *)out); }
int fstat64(int fd, struct stat64 *out) { return fstat(fd, (struct stat *)out); }
int fstatat64(int folder, const char *path, struct stat64 *out, int flags)
{
    return fstatat(folder, path, (struct stat *)out, flags);
}

int statx(int folder, const char *path, int flags, unsigned mask, struct statx *out)
{
    struct place place;
    if (!path[0] || !find(folder, path, &place))
        return (int)syscall(SYS_statx, folder, path, flags, mask, out);
    return gone(&place) ? failed(ENOENT) : (int)syscall(SYS_statx, AT_FDCWD, place.real, flags, mask, out);
}

/* libsystemd takes only what lies on a sysfs for a device. */
static int system_of(const char *seen, int result, struct statfs *out)
{
    if (result == 0 && begins(seen, "/sys", 4))
        out->f_type = SYSFS_TYPE;
    return result;
}

int statfs(const char *path, struct statfs *out)
{
    struct place place;
    if (!find(AT_FDCWD, path, &place))
        return (int)syscall(SYS_statfs, path, out);
    return gone(&place) ? failed(ENOENT) : system_of(place.seen, (int)syscall(SYS_statfs, place.real, out), out);
}

int fstatfs(int fd, struct statfs *out) { return system_of(shim_path_of(fd), (int)syscall(SYS_fstatfs, fd, out), out); }
int statfs64(const char *path, struct statfs64 *out) { return statfs(path, (struct statfs *)out); }
int fstatfs64(int fd, struct statfs64 *out) { return fstatfs(fd, (struct statfs *)out); }

int faccessat(int folder, const char *path, int mode, int flags)
{
    struct place place;
    (void)flags;
    if (!find(folder, path, &place))
        return (int)syscall(SYS_faccessat, folder, path, mode);
    return gone(&place) ? failed(ENOENT) : (int)syscall(SYS_faccessat, AT_FDCWD, place.real, mode);
}

int access(const char *path, int mode) { return faccessat(AT_FDCWD, path, mode, 0); }

/* --- links and folders ------------------------------------------------------------------------------------------------------ */

ssize_t readlinkat(int folder, const char *path, char *out, size_t size)
{
    struct place place;
    if (!find(folder, path, &place))
        return syscall(SYS_readlinkat, folder, path, out, size);
    return gone(&place) ? failed(ENOENT) : syscall(SYS_readlinkat, AT_FDCWD, place.real, out, size);
}

ssize_t readlink(const char *path, char *out, size_t size) { return readlinkat(AT_FDCWD, path, out, size); }
ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room);
ssize_t __readlinkat_chk(int folder, const char *path, char *out, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room)
{
    return readlink(path, out, size < room ? size : room);
}
ssize_t __readlinkat_chk(int folder, const char *path, char *out, size_t size, size_t room)
{
    return readlinkat(folder, path, out, size < room ? size : room);
}

/* The kernel's own answer to where an open file lies. */
char *realpath(const char *path, char *out)
{
    char found[SHIM_PATH];
    int fd = open_at(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    bool good = folder_of(fd, found);
    (void)close(fd);
    if (!good || (!out && !(out = malloc(PATH_MAX))))
        return errno = ENOENT, NULL;
    return strcpy(out, found);
}

char *__realpath_chk(const char *path, char *out, size_t room);
char *__realpath_chk(const char *path, char *out, size_t room)
{
    (void)room;
    return realpath(path, out);
}

DIR *opendir(const char *path)
{
    int fd = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !folder)
        (void)close(fd);
    return folder;
}

int closedir(DIR *folder)
{
    int (*next)(DIR *);
    *(void **)&next = dlsym(RTLD_NEXT, "closedir");
    if (shim.ready)
        shim_remember(dirfd(folder), "");
    return next(folder);
}

struct dirent64 *readdir64(DIR *folder)
{
    static struct dirent64 *(*next)(DIR *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "readdir64");
    bool listed = shim_path_of(dirfd(folder))[0];
    for (;;) {
        struct dirent64 *entry = next(folder);
        if (!entry || !listed || !shim_away(shim_gpu_of(entry->d_name)))
            return entry;
    }
}

struct dirent *readdir(DIR *folder) { return (struct dirent *)readdir64(folder); }
