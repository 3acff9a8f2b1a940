#include "broker/guest_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/log.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* include/uapi/asm-generic/socket.h */
#endif

enum { MOST_PACKETS = 1024, MOST_DESCRIPTORS = 4096 };

void guest_refuse_descriptors(int fd)
{
    const int no = 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no);
}

/* Looks at the next packet, and at whether descriptors hang on it: where there is no place for them, peeking says so and takes
 * none.
 */
static ssize_t peek(int fd, bool *loaded)
{
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t got = recvmsg(fd, &packet, MSG_PEEK | MSG_DONTWAIT);
    *loaded = got >= 0 && (packet.msg_flags & MSG_CTRUNC);
    return got;
}

ssize_t guest_receive(int fd, void *out, size_t size, bool *loaded)
{
    ssize_t got = peek(fd, loaded);
    return *loaded ? -1 : got < 0 ? got : recv(fd, out, size, MSG_DONTWAIT);
}

/* In the child: keeps nothing else of ours, least of all the lock. */
static void hold_until_told(int fd, int told)
{
    char byte;
    for (int other = 0; other < MOST_DESCRIPTORS; other++)
        if (other != fd && other != told)
            (void)close(other);
    while (read(told, &byte, 1) > 0)
        ;
    _exit(0);
}

static void bury(int fd)
{
    int ends[2];
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child == 0)
        hold_until_told(fd, ends[0]);
    if (child < 0) {
        log_line("a client sent descriptors, and no process can be made to drop them: its socket is kept");
        return;
    }
    (void)close(fd); /* not the last reference, so nothing is dropped here */
    (void)close(ends[0]);
    (void)close(ends[1]);
}

void guest_close(int fd)
{
    char rest[256];
    bool loaded = false;
    ssize_t got = 1;
    (void)shutdown(fd, SHUT_RDWR); /* nothing comes any more */
    for (int i = 0; got > 0 && i < MOST_PACKETS && !loaded; i++)
        got = guest_receive(fd, rest, sizeof rest, &loaded);
    if (loaded || got > 0)
        bury(fd);
    else
        (void)close(fd);
}

void guest_close_listener(int fd)
{
    int guest;
    (void)shutdown(fd, SHUT_RDWR);
    while ((guest = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        guest_close(guest);
    (void)close(fd);
}
