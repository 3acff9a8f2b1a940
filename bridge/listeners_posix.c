#include "bridge/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bridge/log.h"

#define SYSTEMD_FIRST 3

bool listeners_parse(const char *text, struct guard_local *out)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    *out = (struct guard_local){0};
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof host)
        return false;
    size_t length = (size_t)(colon - text);
    bool bracketed = text[0] == '[' && text[length - 1] == ']';
    memcpy(host, text + bracketed, length - 2 * (size_t)bracketed);
    host[length - 2 * (size_t)bracketed] = '\0';
    const char *digits = colon + 1;
    unsigned long port = strtoul(digits, NULL, 10);
    if (strspn(digits, "0123456789") != strlen(digits) || !*digits || strlen(digits) > 5 || port > 65535)
        return false;
    struct address_key key;
    if (strcasecmp(host, "localhost") == 0)
        strcpy(host, "127.0.0.1");
    if (bracketed != (strchr(host, ':') != NULL) || !address_key_parse(host, &key))
        return false;
    memcpy(out->address, host, sizeof host);
    out->port = (uint16_t)port;
    return true;
}

static socklen_t make_address(const struct guard_local *local, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    if (inet_pton(AF_INET, local->address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(local->port);
        return sizeof *v4;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(local->port);
    inet_pton(AF_INET6, local->address, &v6->sin6_addr);
    return sizeof *v6;
}

/* Which address a socket really has on this side. */
static bool name_of(int fd, struct guard_local *local)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    *local = (struct guard_local){0};
    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return false;
    if (address.ss_family == AF_UNIX) {
        local->local_socket = true;
        return true;
    }
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
    bool is_v4 = address.ss_family == AF_INET;
    if (!is_v4 && address.ss_family != AF_INET6)
        return false;
    local->port = ntohs(is_v4 ? v4->sin_port : v6->sin6_port);
    const void *bytes = is_v4 ? (const void *)&v4->sin_addr : (const void *)&v6->sin6_addr;
    return inet_ntop(address.ss_family, bytes, local->address, sizeof local->address) != NULL;
}

static bool is_loopback(const struct guard_local *local)
{
    struct address_key key;
    return local->local_socket || (address_key_parse(local->address, &key) && address_key_loopback(&key));
}

static void print_name(const struct guard_local *local, char *out, size_t size)
{
    snprintf(out, size, strchr(local->address, ':') ? "[%s]:%u" : "%s:%u", local->address, (unsigned)local->port);
}

static void add(struct listeners *listeners, int fd, const struct guard_local *local)
{
    listeners->item[listeners->count++] = (struct listener){.fd = fd, .local = *local};
}

/* 0, or an errno. */
static int open_tcp(struct listeners *listeners, const struct guard_local *wanted)
{
    struct sockaddr_storage address;
    struct guard_local bound;
    socklen_t length = make_address(wanted, &address);
    int one = 1, fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (address.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 128) != 0 || !name_of(fd, &bound)) {
        int error = errno;
        close(fd);
        return error;
    }
    struct address_key asked, got;
    if (!address_key_parse(wanted->address, &asked) || !address_key_parse(bound.address, &got) ||
        memcmp(&asked, &got, sizeof got) != 0) {
        close(fd);
        return EADDRNOTAVAIL;
    }
    add(listeners, fd, &bound);
    return 0;
}

static int say_failed(const struct guard_local *local, int error)
{
    char name[96];
    print_name(local, name, sizeof name);
    if (error == EADDRINUSE)
        log_line(LOG_LEVEL_ERROR, "%s is in use: another gputap-bridge or another program listens there (--listen HOST:PORT)",
                 name);
    else
        log_line(LOG_LEVEL_ERROR, "cannot listen on %s: %s", name, strerror(error));
    return 1;
}

static int refuse_open(const struct guard_local *local)
{
    char name[96];
    print_name(local, name, sizeof name);
    log_line(LOG_LEVEL_ERROR, "%s can be reached from other machines: that needs a token (--token-file FILE)", name);
    return 2;
}

static int open_named(struct listeners *listeners, const struct options *options, bool has_token)
{
    for (size_t i = 0; i < options->listen.count; i++) {
        struct guard_local local;
        if (!listeners_parse(options->listen.item[i], &local)) {
            log_line(LOG_LEVEL_ERROR, "--listen %s: not an address and a port, such as 127.0.0.1:8288 or [::1]:8288",
                     options->listen.item[i]);
            return 2;
        }
        if (!has_token && !is_loopback(&local))
            return refuse_open(&local);
    }
    for (size_t i = 0; i < options->listen.count; i++) {
        struct guard_local local;
        listeners_parse(options->listen.item[i], &local);
        int error = open_tcp(listeners, &local);
        if (error)
            return say_failed(&local, error);
    }
    return 0;
}

static int open_default(struct listeners *listeners)
{
    struct guard_local v4 = {.address = "127.0.0.1", .port = LISTENERS_PORT}, v6 = {.address = "::1", .port = LISTENERS_PORT};
    int error = open_tcp(listeners, &v4);
    if (error)
        return say_failed(&v4, error);
    error = open_tcp(listeners, &v6);
    if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL)
        log_line(LOG_LEVEL_WARNING, "not listening on [::1]:%d: this machine has no IPv6 loopback", LISTENERS_PORT);
    else if (error)
        return say_failed(&v6, error);
    return 0;
}

/* Sockets that systemd opened for us: 3, 4, ... as LISTEN_FDS counts them. */
static int take_systemd(struct listeners *listeners, bool has_token)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    long count = pid && fds && strtol(pid, NULL, 10) == (long)getpid() ? strtol(fds, NULL, 10) : 0;
    for (int fd = SYSTEMD_FIRST; fd < SYSTEMD_FIRST + count && listeners->count < LISTENERS_MOST; fd++) {
        struct guard_local local;
        int listening = 0;
        socklen_t length = sizeof listening;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || !listening || !name_of(fd, &local)) {
            log_line(LOG_LEVEL_ERROR, "descriptor %d of LISTEN_FDS is no listening socket", fd);
            return 1;
        }
        if (!has_token && !is_loopback(&local))
            return refuse_open(&local);
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        add(listeners, fd, &local);
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    return 0;
}

int listeners_open(struct listeners *listeners, const struct options *options, bool has_token)
{
    listeners->count = 0;
    int code = take_systemd(listeners, has_token);
    if (code == 0 && options->listen.count > 0)
        code = open_named(listeners, options, has_token);
    else if (code == 0 && listeners->count == 0)
        code = open_default(listeners);
    if (code != 0)
        listeners_close(listeners);
    return code;
}

void listeners_print(const struct listeners *listeners)
{
    for (int i = 0; i < listeners->count; i++) {
        char name[96];
        if (listeners->item[i].local.local_socket)
            continue;
        print_name(&listeners->item[i].local, name, sizeof name);
        printf("gputap-bridge ready: http://%s/\n", name);
    }
    fflush(stdout);
}

void listeners_close(struct listeners *listeners)
{
    for (int i = 0; i < listeners->count; i++)
        if (listeners->item[i].fd >= 0)
            close(listeners->item[i].fd);
    listeners->count = 0;
}
