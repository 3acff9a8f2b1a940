/* SOCK_SEQPACKET with passed descriptors. In a forked child the descriptors are closed at once, else the broker would not see the
 * parent go. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/control_link.h"
#include "shm/client_memory.h"
#include "shm/platform.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct control_link *list; /* links with descriptors */

static void lock_list(void) { (void)pthread_mutex_lock(&list_mutex); }
static void unlock_list(void) { (void)pthread_mutex_unlock(&list_mutex); }

static void close_descriptors(struct control_link *link)
{
    if (link->socket >= 0)
        close(link->socket);
    if (link->bell >= 0)
        close(link->bell);
    link->socket = link->bell = -1;
}

static void in_child(void)
{
    for (struct control_link *link = list; link; link = link->next)
        close_descriptors(link);
    list = NULL;
    unlock_list();
}

static void watch_forks(void) { (void)pthread_atfork(lock_list, unlock_list, in_child); }

static void list_add(struct control_link *link)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    lock_list();
    link->next = list;
    list = link;
    unlock_list();
}

static void list_remove(struct control_link *link)
{
    lock_list();
    for (struct control_link **at = &list; *at; at = &(*at)->next)
        if (*at == link) {
            *at = link->next;
            break;
        }
    unlock_list();
}

void link_init(struct control_link *link) { *link = (struct control_link){.state = LINK_DOWN, .socket = -1, .bell = -1}; }

void link_close(struct control_link *link)
{
    if (link->state == LINK_DOWN)
        return;
    list_remove(link);
    close_descriptors(link);
    if (link->memory)
        sealed_unmap(link->memory, CLIENT_MEMORY_BYTES);
    link_init(link);
}

void link_forget(struct control_link *link) { link_init(link); }

bool link_ask(struct control_link *link, const char *directory, const struct control_hello *hello)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", directory, PLACE_CONTROL) >= (int)sizeof address.sun_path)
        return false;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        send(fd, hello, sizeof *hello, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof *hello) {
        close(fd);
        return false;
    }
    link->socket = fd;
    link->state = LINK_ASKED;
    list_add(link);
    return true;
}

/* Descriptors of a packet: two at most are kept, any others closed. */
static int take_descriptors(struct msghdr *packet, int fds[2])
{
    int count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(packet); part; part = CMSG_NXTHDR(packet, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t sent = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < sent; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            if (count < 2)
                fds[count++] = fd;
            else
                close(fd);
        }
    }
    return count;
}

static enum link_news gone(struct control_link *link)
{
    if (link->state == LINK_ASKED)
        link_close(link);
    return LINK_GONE;
}

static enum link_news take_grant(struct control_link *link, const struct control_grant *grant, const int fds[2], int count)
{
    void *memory = NULL;
    bool session = grant->generation != 0;
    bool fine = link->state == LINK_ASKED && count == (session ? 2 : 0) &&
                (!session || sealed_map(fds[0], CLIENT_MEMORY_BYTES, &memory) == REGION_OK);
    if (count > 0)
        close(fds[0]);
    if (!fine) {
        if (count > 1)
            close(fds[1]);
        return gone(link);
    }
    link->memory = memory;
    link->bell = session ? fds[1] : -1;
    link->state = LINK_UP;
    return LINK_GRANTED;
}

enum link_news link_listen(struct control_link *link, struct control_grant *grant, struct control_refuse *refuse, int wait_ms)
{
    union {
        struct control_grant grant;
        struct control_refuse refuse;
        char bytes[512];
    } packet;
    union {
        char bytes[CMSG_SPACE(8 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = packet.bytes, .iov_len = sizeof packet.bytes};
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct pollfd entry = {.fd = link->socket, .events = POLLIN};
    int fds[2] = {-1, -1};
    if (wait_ms > 0)
        (void)poll(&entry, 1, wait_ms);
    ssize_t got = recvmsg(link->socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? LINK_NOTHING : gone(link);
    int count = take_descriptors(&header, fds);
    if (got == (ssize_t)sizeof *grant && packet.grant.magic == CONTROL_MAGIC && packet.grant.type == CONTROL_GRANT) {
        *grant = packet.grant;
        return take_grant(link, grant, fds, count);
    }
    for (int i = 0; i < count; i++)
        close(fds[i]);
    if (got == (ssize_t)sizeof *refuse && packet.refuse.magic == CONTROL_MAGIC && packet.refuse.type == CONTROL_REFUSE) {
        *refuse = packet.refuse;
        link_close(link);
        return LINK_REFUSED;
    }
    return gone(link);
}

void link_ring(struct control_link *link)
{
    uint64_t one = 1;
    if (write(link->bell, &one, sizeof one) != (ssize_t)sizeof one)
        return; /* the counter is full: it rings already */
}

uint64_t link_unheard(struct control_link *link)
{
    uint64_t count = 0;
    return link->bell >= 0 && read(link->bell, &count, sizeof count) == (ssize_t)sizeof count ? count : 0;
}

void link_send_period(struct control_link *link, uint64_t period_ns)
{
    struct control_period wish = {.magic = CONTROL_MAGIC, .type = CONTROL_PERIOD, .period_ns = period_ns};
    (void)send(link->socket, &wish, sizeof wish, MSG_DONTWAIT | MSG_NOSIGNAL);
}
