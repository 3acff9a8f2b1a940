#include "bridge/instance_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void instance_socket_init(struct instance_socket *out) { *out = (struct instance_socket){.fd = -1, .lock = -1}; }

static bool fail(struct instance_socket *out, const char *what, const char *detail)
{
    snprintf(out->why, sizeof out->why, "%s%s%.200s", what, *detail ? ": " : "", detail);
    if (out->fd >= 0)
        close(out->fd);
    if (out->lock >= 0)
        close(out->lock);
    out->fd = out->lock = -1;
    return false;
}

static bool folder_is_ours(struct instance_socket *out, const char *folder)
{
    struct stat status;
    if (lstat(folder, &status) != 0) /* before the first broker that is no news */
        return errno == ENOENT ? fail(out, "", "") : fail(out, folder, strerror(errno));
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid())
        return fail(out, folder, "the folder belongs to another user, so only that user's bridge can make it");
    return true;
}

/* The lock says whether the bridge that made the socket lives; the kernel frees it with the process. */
static bool take_lock(struct instance_socket *out, const char *folder)
{
    char path[600];
    snprintf(path, sizeof path, "%s/bridge.lock", folder);
    out->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out->lock < 0)
        return fail(out, path, strerror(errno));
    if (flock(out->lock, LOCK_EX | LOCK_NB) != 0)
        return fail(out, out->path, errno == EWOULDBLOCK ? "another gputap-bridge serves it" : strerror(errno));
    return true;
}

static bool bind_socket(struct instance_socket *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (strlen(out->path) >= sizeof address.sun_path)
        return fail(out, out->path, "the path is too long for a socket");
    memcpy(address.sun_path, out->path, strlen(out->path) + 1);
    if (lstat(out->path, &status) == 0 && !S_ISSOCK(status.st_mode))
        return fail(out, out->path, "something that is no socket is there");
    unlink(out->path);
    out->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (out->fd < 0)
        return fail(out, "socket", strerror(errno));
    /* The mode is right from the first moment, so there is no time in which others could connect. */
    mode_t before = umask(0177);
    int bound = bind(out->fd, (struct sockaddr *)&address, sizeof address);
    int error = errno;
    umask(before);
    if (bound != 0)
        return fail(out, out->path, strerror(error));
    if (listen(out->fd, 64) != 0 || lstat(out->path, &status) != 0)
        return fail(out, out->path, strerror(errno));
    out->inode = (uint64_t)status.st_ino;
    return true;
}

bool instance_socket_open(struct instance_socket *out, const char *folder)
{
    out->why[0] = '\0';
    if (snprintf(out->path, sizeof out->path, "%s/bridge.sock", folder) >= (int)sizeof out->path)
        return fail(out, folder, "the path is too long");
    return folder_is_ours(out, folder) && take_lock(out, folder) && bind_socket(out);
}

static bool still_there(const struct instance_socket *out)
{
    struct stat status;
    return lstat(out->path, &status) == 0 && (uint64_t)status.st_ino == out->inode;
}

bool instance_socket_intact(const struct instance_socket *out, const char *folder)
{
    size_t length = strlen(folder);
    return out->fd >= 0 && strncmp(out->path, folder, length) == 0 && strcmp(out->path + length, "/bridge.sock") == 0 &&
           still_there(out);
}

void instance_socket_close(struct instance_socket *out, bool keep_fd)
{
    if (out->fd < 0)
        return;
    if (still_there(out))
        unlink(out->path);
    if (!keep_fd)
        close(out->fd);
    close(out->lock);
    out->fd = out->lock = -1;
}
