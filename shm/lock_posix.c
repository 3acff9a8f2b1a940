/* Liveness by an open-file-description lock: the kernel drops it when the broker's last descriptor closes, whatever killed it,
 * even while a zombie is left; a pid would be reused, and a heartbeat compared across clocks lies. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/platform.h"
#include "shm/text.h"

static int64_t read_pid(int fd)
{
    char text[32] = {0};
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    return got > 0 ? strtoll(text, NULL, 10) : 0;
}

int lock_take(const char *directory, const char *name, unsigned mode, int64_t group, int *fd, int64_t *holder, char *message,
              size_t message_size)
{
    char path[PLACE_PATH_MAX];
    *fd = -1;
    *holder = 0;
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return REGION_ESYSTEM;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, (mode_t)mode);
    if (file < 0) {
        text_format(message, message_size, "%s: %s", path, strerror(errno));
        return errno == EACCES || errno == EPERM || errno == EROFS ? REGION_EPERM : REGION_ESYSTEM;
    }
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(file, F_OFD_SETLK, &whole) != 0) {
        int code = errno;
        *holder = read_pid(file);
        close(file);
        text_format(message, message_size, "%s: %s", path, strerror(code));
        return code == EAGAIN || code == EACCES ? REGION_EBUSY : REGION_ESYSTEM;
    }
    char pid[32];
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    bool ok = fchmod(file, (mode_t)mode) == 0 && (group < 0 || fchown(file, (uid_t)-1, (gid_t)group) == 0) &&
              ftruncate(file, 0) == 0 && pwrite(file, pid, (size_t)length, 0) == length;
    if (!ok) {
        text_format(message, message_size, "%s: %s", path, strerror(errno));
        close(file);
        return errno == ENOSPC ? REGION_ENOSPC : REGION_ESYSTEM;
    }
    *fd = file;
    return REGION_OK;
}

int lock_held(const char *directory, const char *name)
{
    char path[PLACE_PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return REGION_ESYSTEM;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return errno == ENOENT || errno == ENOTDIR ? REGION_ENOENT
               : errno == EACCES || errno == EPERM ? REGION_EPERM
                                                   : REGION_ESYSTEM;
    struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int result = fcntl(file, F_OFD_GETLK, &whole);
    close(file);
    if (result != 0)
        return REGION_ESYSTEM;
    return whole.l_type != F_UNLCK;
}
