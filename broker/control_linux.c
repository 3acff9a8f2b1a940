#include "broker/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/guest_socket.h"
#include "broker/log.h"
#include "shm/control_protocol.h"
#include "shm/text.h"

#define MS UINT64_C(1000000)

static const uint64_t hear_every_ns = MS;
static const uint64_t hello_within_ns = 1000 * MS;
static const uint64_t accept_again_ns = 100 * MS;
static const double connects_a_second = 100, connects_burst = 200;

/* --- the socket ------------------------------------------------------------------------------------------------------- */

void control_init(struct control *control, struct sessions *sessions, uint64_t min_period_ns)
{
    memset(control, 0, sizeof *control);
    control->sessions = sessions;
    control->min_period_ns = min_period_ns;
    control->listener = -1;
}

static bool in_place(const struct control *control)
{
    struct stat status;
    return control->listener >= 0 && lstat(control->path, &status) == 0 && (uint64_t)status.st_ino == control->inode;
}

static int open_listener(struct control *control, const struct sockaddr_un *address, int64_t group)
{
    struct stat status;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    guest_refuse_descriptors(fd);
    (void)unlink(control->path); /* a dead broker's: the lock is ours */
    bool fine = bind(fd, (const struct sockaddr *)address, sizeof *address) == 0 &&
                (group < 0 || lchown(control->path, (uid_t)-1, (gid_t)group) == 0) &&
                chmod(control->path, group < 0 ? 0666 : 0660) == 0 && listen(fd, 128) == 0 && lstat(control->path, &status) == 0;
    if (!fine) {
        int code = -errno;
        close(fd);
        return code;
    }
    control->inode = (uint64_t)status.st_ino;
    return fd;
}

static void tell_once(struct control *control, int error)
{
    if (error && error != control->told)
        log_line("%s: %s, so nobody can annotate for now", control->path, strerror(error));
    control->told = error;
}

void control_listen(struct control *control, const char *directory, int64_t group)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (in_place(control))
        return;
    if (control->listener >= 0)
        guest_close_listener(control->listener);
    control->listener = -1;
    if (snprintf(control->path, sizeof control->path, "%s/%s", directory, PLACE_CONTROL) >= (int)sizeof address.sun_path) {
        tell_once(control, ENAMETOOLONG);
        return;
    }
    memcpy(address.sun_path, control->path, strlen(control->path) + 1);
    int fd = open_listener(control, &address, group);
    tell_once(control, fd < 0 ? -fd : 0);
    control->listener = fd < 0 ? -1 : fd;
}

/* --- clients ---------------------------------------------------------------------------------------------------------- */

static void drop_client(struct control *control, struct control_client *client, uint64_t now_ns)
{
    if (client->slot >= 0)
        sessions_close(control->sessions, client->slot, now_ns);
    if (client->memory)
        sealed_unmap(client->memory, CLIENT_MEMORY_BYTES);
    guest_close(client->socket);
    if (client->bell >= 0)
        close(client->bell);
    if (client->process >= 0)
        close(client->process);
    *client = (struct control_client){.state = CLIENT_FREE, .socket = -1, .bell = -1, .process = -1, .slot = -1};
    control->used--;
}

void control_close(struct control *control)
{
    for (int i = 0; i < CONTROL_MAX_CLIENTS; i++)
        if (control->clients[i].state != CLIENT_FREE)
            drop_client(control, &control->clients[i], clock_mono_ns());
    if (in_place(control))
        (void)unlink(control->path);
    if (control->listener >= 0)
        guest_close_listener(control->listener);
    control->listener = -1;
}

static struct control_rate *rate_of(struct control *control, uint32_t uid, uint64_t now_ns)
{
    struct control_rate *oldest = &control->rates[0];
    for (size_t i = 0; i < sizeof control->rates / sizeof control->rates[0]; i++) {
        struct control_rate *rate = &control->rates[i];
        if (rate->used && rate->uid == uid)
            return rate;
        if (!rate->used || (oldest->used && rate->budget_ns < oldest->budget_ns))
            oldest = rate;
    }
    *oldest = (struct control_rate){.used = true, .uid = uid, .budget = connects_burst, .budget_ns = now_ns};
    return oldest;
}

static bool within_rate(struct control *control, uint32_t uid, uint64_t now_ns)
{
    struct control_rate *rate = rate_of(control, uid, now_ns);
    rate->budget += (double)(now_ns - rate->budget_ns) / 1e9 * connects_a_second;
    rate->budget = rate->budget < connects_burst ? rate->budget : connects_burst;
    rate->budget_ns = now_ns;
    if (rate->budget < 1)
        return false;
    rate->budget -= 1;
    return true;
}

static void say_refusal(struct control *control, int fd, enum control_refusal code, uint32_t retry_ms, const char *text)
{
    struct control_refuse refuse = {.magic = CONTROL_MAGIC, .type = CONTROL_REFUSE, .code = (uint32_t)code, .retry_ms = retry_ms};
    text_copy(refuse.text, sizeof refuse.text, text, strlen(text));
    (void)send(fd, &refuse, sizeof refuse, MSG_DONTWAIT | MSG_NOSIGNAL);
    control->refused++;
}

static int connections_of(const struct control *control, uint32_t uid)
{
    int count = 0;
    for (int i = 0; i < CONTROL_MAX_CLIENTS; i++)
        count += control->clients[i].state != CLIENT_FREE && control->clients[i].uid == uid;
    return count;
}

static void accept_client(struct control *control, uint64_t now_ns)
{
    struct ucred who;
    socklen_t length = sizeof who;
    int fd = accept4(control->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), free_place = -1;
    if (fd < 0) { /* out of descriptors: the connection stays where it is, and would wake us again at once */
        control->deaf_until = now_ns + accept_again_ns;
        return;
    }
    for (int i = 0; i < CONTROL_MAX_CLIENTS && free_place < 0; i++)
        if (control->clients[i].state == CLIENT_FREE)
            free_place = i;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) {
        guest_close(fd);
    } else if (!within_rate(control, who.uid, now_ns)) {
        say_refusal(control, fd, REFUSE_RATE, 1000, "this user connects too often");
        guest_close(fd);
    } else if (free_place < 0 || connections_of(control, who.uid) >= CONTROL_MAX_A_USER) {
        say_refusal(control, fd, free_place < 0 ? REFUSE_FULL : REFUSE_QUOTA, 2000, "too many clients are connected");
        guest_close(fd);
    } else {
        control->used++;
        control->clients[free_place] = (struct control_client){.state = CLIENT_SILENT,
                                                               .socket = fd,
                                                               .bell = -1,
                                                               .process = -1,
                                                               .slot = -1,
                                                               .pid = (uint32_t)who.pid,
                                                               .uid = who.uid,
                                                               .since_ns = now_ns};
    }
}

static void name_of_process(uint32_t pid, char out[16])
{
    char path[64], text[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%lu/comm", (unsigned long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    while (got > 0 && text[got - 1] == '\n')
        got--;
    text_copy(out, 16, text, got > 0 ? (size_t)got : 0);
}

static bool send_grant(const struct control *control, const struct control_client *client, int memory_file)
{
    const struct layout_header *header = control->sessions->publisher->writer.header;
    struct control_grant grant = {.magic = CONTROL_MAGIC,
                                  .type = CONTROL_GRANT,
                                  .slot = client->slot < 0 ? 0 : (uint32_t)client->slot,
                                  .mono_ns = clock_mono_ns(),
                                  .real_ns = clock_real_ns(),
                                  .time_namespace = header->time_namespace,
                                  .min_period_ns = control->min_period_ns};
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } space = {{0}};
    struct iovec part = {.iov_base = &grant, .iov_len = sizeof grant};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    memcpy(grant.epoch, header->epoch, sizeof grant.epoch);
    memcpy(grant.boot_id, header->boot_id, sizeof grant.boot_id);
    if (client->slot >= 0) {
        const int fds[2] = {memory_file, client->bell};
        grant.generation = control->sessions->items[client->slot].mirror.generation;
        packet.msg_control = space.bytes;
        packet.msg_controllen = sizeof space.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&packet);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof fds);
        memcpy(CMSG_DATA(rights), fds, sizeof fds);
    }
    return sendmsg(client->socket, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof grant;
}

/* A session for the client; refuses it and returns false where that cannot be. */
static bool give_session(struct control *control, struct control_client *client, const struct control_hello *hello,
                         int *memory_file, uint64_t now_ns)
{
    struct layout_session who = {.pid = client->pid, .uid = client->uid};
    int slot = sessions_free_slot(control->sessions, now_ns);
    if (sessions_of_user(control->sessions, client->uid, now_ns) >= CONTROL_SESSIONS_A_USER) {
        say_refusal(control, client->socket, REFUSE_QUOTA, 1000, "this user has too many sessions");
        return false;
    }
    if (slot < 0) {
        say_refusal(control, client->socket, REFUSE_FULL, 1000, "all slots for sessions are taken");
        return false;
    }
    client->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (client->bell < 0 || sealed_create(CLIENT_MEMORY_BYTES, &client->memory, memory_file) != REGION_OK) {
        say_refusal(control, client->socket, REFUSE_MEMORY, 2000, "no memory for a session");
        return false;
    }
    text_copy(who.label, sizeof who.label, hello->label, sizeof hello->label);
    name_of_process(client->pid, who.comm);
    sessions_open(control->sessions, slot, &who, client->memory, now_ns);
    client->slot = slot;
#ifdef SYS_pidfd_open
    client->process = (int)syscall(SYS_pidfd_open, (pid_t)client->pid, 0);
    if (client->process >= 0)
        (void)fcntl(client->process, F_SETFD, FD_CLOEXEC);
#endif
    return true;
}

static void take_hello(struct control *control, struct control_client *client, const struct control_hello *hello, uint64_t now_ns)
{
    int memory_file = -1;
    bool fine = true;
    if (hello->abi_major != LAYOUT_ABI_MAJOR) {
        say_refusal(control, client->socket, REFUSE_VERSION, 60000, "library and broker are of different versions");
        fine = false;
    }
    if (fine && (hello->flags & CONTROL_SESSION))
        fine = give_session(control, client, hello, &memory_file, now_ns);
    client->wish_ns = hello->period_ns;
    fine = fine && send_grant(control, client, memory_file);
    if (memory_file >= 0)
        close(memory_file);
    client->state = CLIENT_GRANTED;
    if (!fine)
        drop_client(control, client, now_ns);
}

static void hear_socket(struct control *control, struct control_client *client, uint64_t now_ns)
{
    union {
        struct control_hello hello;
        struct control_period period;
        char bytes[256];
    } packet;
    bool loaded;
    ssize_t got = guest_receive(client->socket, packet.bytes, sizeof packet.bytes, &loaded);
    if (got < 0 && !loaded && (errno == EAGAIN || errno == EINTR))
        return;
    bool marked = got >= 8 && packet.hello.magic == CONTROL_MAGIC;
    if (marked && client->state == CLIENT_SILENT && packet.hello.type == CONTROL_HELLO && got == (ssize_t)sizeof packet.hello) {
        take_hello(control, client, &packet.hello, now_ns);
    } else if (marked && client->state == CLIENT_GRANTED && packet.period.type == CONTROL_PERIOD &&
               got == (ssize_t)sizeof packet.period) {
        client->wish_ns = packet.period.period_ns;
    } else {
        control->refused += got > 0 || loaded; /* garbage; else it has hung up */
        drop_client(control, client, now_ns);
    }
}

/* The client shares the doorbell's file description: it may have made it blocking, and emptied it since poll. So the read itself
 * says that it must not wait; an eventfd knows that since Linux 5.8, and before it is asked as late as can be. */
static void hear_bell(struct control *control, struct control_client *client, uint64_t now_ns)
{
    uint64_t count;
    struct iovec part = {.iov_base = &count, .iov_len = sizeof count};
    ssize_t got = preadv2(client->bell, &part, 1, -1, RWF_NOWAIT);
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        (void)fcntl(client->bell, F_SETFL, O_NONBLOCK);
        got = read(client->bell, &count, sizeof count);
    }
    if (got == (ssize_t)sizeof count)
        sessions_merge(control->sessions, client->slot, now_ns);
}

/* --- the loop --------------------------------------------------------------------------------------------------------- */

int control_poll_entries(struct control *control, struct pollfd *entries, uint64_t now_ns)
{
    int count = 0;
    if (control->listener >= 0 && now_ns >= control->deaf_until) {
        control->owner[count] = -1;
        entries[count++] = (struct pollfd){.fd = control->listener, .events = POLLIN};
    }
    for (int i = 0; control->used > 0 && i < CONTROL_MAX_CLIENTS; i++) {
        const struct control_client *client = &control->clients[i];
        const int fds[] = {client->socket, client->bell, client->process};
        if (client->state == CLIENT_FREE || now_ns < client->deaf_until)
            continue;
        for (int j = 0; j < 3; j++)
            if (fds[j] >= 0) {
                control->owner[count] = i;
                entries[count++] = (struct pollfd){.fd = fds[j], .events = POLLIN};
            }
    }
    return count;
}

void control_handle(struct control *control, const struct pollfd *entries, int count, uint64_t now_ns)
{
    for (int i = 0; i < count; i++) {
        if (!entries[i].revents)
            continue;
        if (control->owner[i] < 0) {
            accept_client(control, now_ns);
            continue;
        }
        struct control_client *client = &control->clients[control->owner[i]];
        if (client->state == CLIENT_FREE)
            continue; /* dropped a moment ago */
        client->deaf_until = now_ns + hear_every_ns;
        if (entries[i].fd == client->bell)
            hear_bell(control, client, now_ns);
        else if (entries[i].fd == client->socket)
            hear_socket(control, client, now_ns);
        else if (entries[i].fd == client->process)
            drop_client(control, client, now_ns); /* a child of it may still hold the socket */
    }
}

uint64_t control_next_wake(const struct control *control)
{
    uint64_t next = control->deaf_until > 0 ? control->deaf_until : UINT64_MAX;
    for (int i = 0; control->used > 0 && i < CONTROL_MAX_CLIENTS; i++) {
        const struct control_client *client = &control->clients[i];
        if (client->state == CLIENT_FREE)
            continue;
        if (client->deaf_until > 0 && client->deaf_until < next)
            next = client->deaf_until;
        if (client->state == CLIENT_SILENT && client->since_ns + hello_within_ns < next)
            next = client->since_ns + hello_within_ns;
    }
    return next;
}

void control_tend(struct control *control, uint64_t now_ns)
{
    if (now_ns >= control->deaf_until)
        control->deaf_until = 0;
    for (int i = 0; control->used > 0 && i < CONTROL_MAX_CLIENTS; i++) {
        struct control_client *client = &control->clients[i];
        if (client->deaf_until > 0 && now_ns >= client->deaf_until)
            client->deaf_until = 0;
        if (client->state == CLIENT_SILENT && now_ns - client->since_ns > hello_within_ns)
            drop_client(control, client, now_ns);
    }
}

uint64_t control_wish(const struct control *control)
{
    uint64_t wish = 0;
    for (int i = 0; control->used > 0 && i < CONTROL_MAX_CLIENTS; i++) {
        uint64_t own = control->clients[i].state == CLIENT_GRANTED ? control->clients[i].wish_ns : 0;
        if (own > 0 && (wish == 0 || own < wish))
            wish = own;
    }
    return wish;
}
