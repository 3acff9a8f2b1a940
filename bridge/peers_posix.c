/* Accepting, with the limits that stand before any parsing. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bridge/listeners.h"

/* What the kernel keeps unsent for a slow client before we hear of it: a few frames, not minutes of stale ones. */
#define UNSENT_LOW_WATER 16384

int peers_init(struct peers *peers, int total, int per_address)
{
    *peers = (struct peers){.item = calloc((size_t)total, sizeof(struct peer)), .total = total, .per_address = per_address};
    return peers->item ? 0 : -1;
}

void peers_free(struct peers *peers)
{
    free(peers->item);
    peers->item = NULL;
}

static struct peer *free_place(struct peers *peers, const struct address_key *from, bool counted)
{
    struct peer *place = NULL;
    int same = 0;
    for (int i = 0; i < peers->total; i++) {
        struct peer *peer = &peers->item[i];
        if (!peer->used)
            place = peer;
        else if (counted && peer->counted && memcmp(&peer->from, from, sizeof *from) == 0)
            same++;
    }
    return counted && same >= peers->per_address ? NULL : place;
}

static void key_of(const struct sockaddr_storage *address, struct address_key *key)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    memset(key, 0, sizeof *key);
    if (address->ss_family == AF_INET) {
        memcpy(key->bytes, mapped, sizeof mapped);
        memcpy(key->bytes + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else if (address->ss_family == AF_INET6) {
        memcpy(key->bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
    }
}

/* The address that the connection came to, which is more than the listener's own where that is 0.0.0.0. */
static void local_of(int fd, const struct listener *listener, struct guard_local *local)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    *local = listener->local;
    if (local->local_socket || getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return;
    struct address_key key;
    key_of(&address, &key);
    address_key_print(&key, local->address, sizeof local->address);
}

static bool same_user(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static void refuse(int fd)
{
    static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\n"
                               "Content-Type: application/json; charset=utf-8\r\nContent-Length: 32\r\n\r\n"
                               "{\"error\":\"too many connections\"}";
    if (send(fd, busy, sizeof busy - 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        shutdown(fd, SHUT_WR);
    close(fd);
}

static void tune(int fd)
{
    int one = 1, low_water = UNSENT_LOW_WATER;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
#ifdef TCP_NOTSENT_LOWAT
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &low_water, sizeof low_water);
#else
    (void)low_water;
#endif
}

struct peer *peers_accept(struct peers *peers, const struct listener *listener, bool *again)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    struct address_key from;
    int fd = accept4(listener->fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    *again = fd >= 0 || errno == EINTR || errno == ECONNABORTED;
    if (fd < 0)
        return NULL;
    key_of(&address, &from);
    bool counted = !listener->local.local_socket;
    struct peer *peer = free_place(peers, &from, counted);
    if (!peer || (!counted && !same_user(fd))) {
        refuse(fd);
        return NULL;
    }
    if (counted)
        tune(fd);
    *peer = (struct peer){.used = true, .fd = fd, .from = from, .counted = counted};
    local_of(fd, listener, &peer->local);
    peers->used++;
    return peer;
}

void peers_release(struct peers *peers, struct peer *peer)
{
    if (!peer->used)
        return;
    peer->used = false;
    peers->used--;
}
