/* Liveness and exclusion by open-file-description locks: the kernel drops one when its holder's last descriptor closes, whatever
 * killed it, even while a zombie is left; a pid would be reused, and a heartbeat compared across clocks lies.
 *
 * Two files. `owner`, mode 0600, decides who may run: nobody else can open it, so nobody else can be in the way. `lock`, readable
 * by all, is what readers ask: it is made anew at every start under another name, locked, and only then given its mode and its
 * name. A reader's own read lock on it, however long it is kept, is on the file of a broker that it does not hinder. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/platform.h"
#include "shm/text.h"

static int error_of(int code)
{
    switch (code) {
    case EACCES:
    case EPERM:
    case EROFS: return REGION_EPERM;
    case ENOSPC:
    case EDQUOT: return REGION_ENOSPC;
    case ENOENT:
    case ENOTDIR: return REGION_ENOENT;
    default: return REGION_ESYSTEM;
    }
}

static int fail(const char *path, char *message, size_t size)
{
    int code = errno;
    text_format(message, size, "%s: %s", path, strerror(code));
    return error_of(code);
}

static bool path_of(char path[PLACE_PATH_MAX], const char *directory, const char *name)
{
    return snprintf(path, PLACE_PATH_MAX, "%s/%s", directory, name) < PLACE_PATH_MAX;
}

static int64_t read_pid(int fd)
{
    char text[32] = {0};
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    return got > 0 ? strtoll(text, NULL, 10) : 0;
}

static bool write_pid(int fd)
{
    char pid[32];
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    return ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)length, 0) == length;
}

static bool lock_whole(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

static bool in_place(const char *directory, const char *name, int fd)
{
    char path[PLACE_PATH_MAX];
    struct stat named, held;
    return fd >= 0 && path_of(path, directory, name) && lstat(path, &named) == 0 && fstat(fd, &held) == 0 &&
           named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

/* Makes `lock` anew: nobody can have a lock on it before us. */
static int publish_shared(const char *directory, unsigned mode, int64_t group, struct lock *lock, char *message, size_t size)
{
    char path[PLACE_PATH_MAX], temporary[PLACE_PATH_MAX];
    if (!path_of(path, directory, PLACE_LOCK) || !path_of(temporary, directory, "." PLACE_LOCK))
        return REGION_ESYSTEM;
    (void)unlink(temporary); /* ours to remove: the owner is locked */
    int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fail(temporary, message, size);
    bool ok = lock_whole(fd) && write_pid(fd) && (group < 0 || fchown(fd, (uid_t)-1, (gid_t)group) == 0) &&
              fchmod(fd, (mode_t)mode) == 0 && rename(temporary, path) == 0;
    if (!ok) {
        int result = fail(path, message, size);
        close(fd);
        (void)unlink(temporary);
        return result;
    }
    if (lock->shared >= 0)
        close(lock->shared);
    lock->shared = fd;
    return REGION_OK;
}

static int take_owner(const char *directory, struct lock *lock, int64_t *holder, char *message, size_t size)
{
    char path[PLACE_PATH_MAX];
    if (!path_of(path, directory, PLACE_OWNER))
        return REGION_ESYSTEM;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fail(path, message, size);
    if (!lock_whole(fd)) {
        bool busy = errno == EAGAIN || errno == EACCES;
        int result = fail(path, message, size);
        *holder = read_pid(fd);
        close(fd);
        return busy ? REGION_EBUSY : result;
    }
    if (fchmod(fd, 0600) != 0 || !write_pid(fd)) {
        int result = fail(path, message, size);
        close(fd);
        return result;
    }
    if (lock->owner >= 0)
        close(lock->owner);
    lock->owner = fd;
    return REGION_OK;
}

int lock_take(const char *directory, unsigned mode, int64_t group, struct lock *lock, int64_t *holder, char *message, size_t size)
{
    *holder = 0;
    if (!in_place(directory, PLACE_OWNER, lock->owner)) {
        int result = take_owner(directory, lock, holder, message, size);
        if (result != REGION_OK)
            return result;
    }
    return in_place(directory, PLACE_LOCK, lock->shared) ? REGION_OK : publish_shared(directory, mode, group, lock, message, size);
}

bool lock_in_place(const char *directory, const struct lock *lock)
{
    return in_place(directory, PLACE_OWNER, lock->owner) && in_place(directory, PLACE_LOCK, lock->shared);
}

void lock_release(struct lock *lock)
{
    if (lock->shared >= 0)
        close(lock->shared);
    if (lock->owner >= 0)
        close(lock->owner);
    *lock = (struct lock)LOCK_NONE;
}

int lock_held(const char *directory)
{
    char path[PLACE_PATH_MAX];
    if (!path_of(path, directory, PLACE_LOCK))
        return REGION_ESYSTEM;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return error_of(errno);
    struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int result = fcntl(file, F_OFD_GETLK, &whole);
    close(file);
    if (result != 0)
        return REGION_ESYSTEM;
    return whole.l_type != F_UNLCK;
}
