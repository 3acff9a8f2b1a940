/* What the bridge adds to sending: N clients at 10 Hz, against a bare loop of send() of as many bytes at the same ticks, in one
 * run. bridge_bench [N [SECONDS]]      200 clients, 3 s Prints two ratios: CPU a message, and from the tick to the last client's
 * receive. Never fails for being slow. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gputap.h"

#define TICKS 4096

struct client {
    int fd;
    bool upgraded;
    size_t have;
    unsigned char buffer[65536];
};

/* Of the tick at index seq % TICKS. */
struct tick {
    uint64_t seq;
    int64_t woken_ns, last_ns;
    int got;
};

static struct tick ticks[TICKS];
static atomic_llong woken[TICKS];
static atomic_bool ended;
static gputap *tap;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    kill(0, SIGTERM);
    exit(1);
}

/* ---- the processes ---- */

static pid_t start(const char *folder, const char *program, char *const args[], int out)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, program);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    execv(path, args);
    perror(path);
    _exit(127);
}

static void end(pid_t pid)
{
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
}

/* Nanoseconds on a CPU, of all threads. */
static int64_t cpu_ns(pid_t pid)
{
    char path[PATH_MAX];
    int64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        long long ns;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, entry->d_name);
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%lld", &ns) == 1)
            sum += ns;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

static int listen_any(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0)
        die("listen");
    getsockname(fd, (struct sockaddr *)&address, &length);
    *port = ntohs(address.sin_port);
    return fd;
}

/* The floor: at each tick one send() a client, of a frame as long as the bridge's. */
static void serve_plainly(int listener, int count, size_t length)
{
    int *clients = calloc((size_t)count, sizeof *clients), one = 1;
    char *frame = malloc(length + 4);
    if (!clients || !frame)
        _exit(1);
    for (int i = 0; i < count; i++) {
        clients[i] = accept(listener, NULL, NULL);
        setsockopt(clients[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    uint64_t tick = gputap_tick(tap);
    memset(frame, ' ', length + 4);
    frame[0] = (char)0x81;
    frame[1] = 126;
    frame[2] = (char)(length >> 8);
    frame[3] = (char)length;
    for (;;) {
        if (gputap_wait(tap, &tick, 1000) != GPUTAP_OK)
            continue;
        int written = snprintf(frame + 4, length, "{\"type\":\"s\",\"seq\":%llu,", (unsigned long long)tick);
        frame[4 + written] = ' ';
        for (int i = 0; i < count; i++)
            if (send(clients[i], frame, length + 4, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
                _exit(0);
    }
}

/* ---- the clients ---- */

static int connect_to(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect");
    return fd;
}

static void send_masked(int fd, const char *text)
{
    unsigned char frame[256] = {0x81, (unsigned char)(0x80 | strlen(text)), 0, 0, 0, 0};
    memcpy(frame + 6, text, strlen(text));
    if (send(fd, frame, 6 + strlen(text), MSG_NOSIGNAL) < 0)
        die("send");
}

static void upgrade(int fd, int port)
{
    char text[512];
    int length = snprintf(
        text, sizeof text,
        "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: gputap.v1\r\n\r\n",
        port);
    if (send(fd, text, (size_t)length, MSG_NOSIGNAL) < 0)
        die("send");
    /* The key's mask is zero, so the text is its own masked form. */
    send_masked(fd, "{\"type\":\"sub\",\"period\":100,\"set\":\"capsule\"}");
}

static void note(const unsigned char *payload, size_t length, int64_t now, size_t *frame_length)
{
    static const char begin[] = "{\"type\":\"s\",\"seq\":";
    if (length < sizeof begin + 20 || memcmp(payload, begin, sizeof begin - 1) != 0)
        return;
    uint64_t seq = strtoull((const char *)payload + sizeof begin - 1, NULL, 10);
    struct tick *tick = &ticks[seq % TICKS];
    if (tick->seq != seq)
        *tick = (struct tick){.seq = seq};
    tick->got++;
    tick->last_ns = now;
    *frame_length = length;
}

/* Whole frames out of what has come; false when the connection broke. */
static bool receive(struct client *client, size_t *frame_length)
{
    ssize_t got = recv(client->fd, client->buffer + client->have, sizeof client->buffer - 1 - client->have, MSG_DONTWAIT);
    if (got <= 0)
        return got < 0 && errno == EAGAIN;
    int64_t now = now_ns();
    client->have += (size_t)got;
    unsigned char *at = client->buffer, *end_at = client->buffer + client->have;
    *end_at = '\0';
    if (!client->upgraded) {
        char *head_end = strstr((char *)at, "\r\n\r\n");
        if (!head_end)
            return true;
        client->upgraded = true;
        at = (unsigned char *)head_end + 4;
    }
    while (end_at - at >= 4) {
        size_t length = at[1] & 127u, header = 2;
        if (length == 126) {
            length = (size_t)at[2] << 8 | at[3];
            header = 4;
        }
        if ((size_t)(end_at - at) < header + length)
            break;
        note(at + header, length, now, frame_length);
        at += header + length;
    }
    client->have = (size_t)(end_at - at);
    memmove(client->buffer, at, client->have);
    return client->have < sizeof client->buffer - 1;
}

static void *watch_ticks(void *unused)
{
    uint64_t tick = gputap_tick(tap);
    while (!atomic_load(&ended))
        if (gputap_wait(tap, &tick, 200) == GPUTAP_OK)
            atomic_store(&woken[tick % TICKS], now_ns());
    return unused;
}

struct result {
    double us_a_message, last_p50_ms, last_p99_ms;
    size_t frame_length;
    long messages;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct result measure(pid_t server, int port, int count, int seconds, bool websocket)
{
    struct result result = {0};
    struct client *clients = calloc((size_t)count, sizeof *clients);
    int poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!clients || poll_fd < 0)
        die("clients");
    for (int i = 0; i < count; i++) {
        clients[i].fd = connect_to(port);
        clients[i].upgraded = !websocket;
        if (websocket)
            upgrade(clients[i].fd, port);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, clients[i].fd, &event);
    }
    int64_t begin = now_ns() + 1000000000, finish = begin + (int64_t)seconds * 1000000000, cpu = 0;
    bool measuring = false;
    struct epoll_event events[256];
    while (now_ns() < finish) {
        if (!measuring && now_ns() >= begin) {
            measuring = true;
            memset(ticks, 0, sizeof ticks);
            cpu = cpu_ns(server);
        }
        int ready = epoll_wait(poll_fd, events, 256, 20);
        for (int i = 0; i < ready; i++)
            if (!receive(events[i].data.ptr, &result.frame_length))
                epoll_ctl(poll_fd, EPOLL_CTL_DEL, ((struct client *)events[i].data.ptr)->fd, NULL);
    }
    cpu = cpu_ns(server) - cpu;
    double late[TICKS];
    size_t whole = 0;
    for (int i = 0; i < TICKS; i++) {
        result.messages += ticks[i].got;
        int64_t from = atomic_load(&woken[i]);
        if (ticks[i].got == count && from && ticks[i].last_ns > from)
            late[whole++] = (double)(ticks[i].last_ns - from) / 1e6;
    }
    qsort(late, whole, sizeof late[0], by_value);
    if (whole > 0) {
        result.last_p50_ms = late[whole / 2];
        result.last_p99_ms = late[whole * 99 / 100];
    }
    result.us_a_message = result.messages ? (double)cpu / 1e3 / (double)result.messages : 0;
    for (int i = 0; i < count; i++)
        close(clients[i].fd);
    close(poll_fd);
    free(clients);
    return result;
}

/* ---- all of it ---- */

static int bridge_port(int out)
{
    char text[512];
    size_t length = 0;
    while (length < sizeof text - 1) {
        ssize_t got = read(out, text + length, sizeof text - 1 - length);
        if (got <= 0)
            return -1;
        length += (size_t)got;
        text[length] = '\0';
        char *colon = strstr(text, "http://127.0.0.1:");
        if (colon && strchr(colon, '\n'))
            return atoi(colon + 17);
    }
    return -1;
}

static void print(const char *name, const struct result *result)
{
    printf("%-14s %8.2f us CPU a message, last receive p50 %6.2f ms, p99 %6.2f ms (%ld messages of %zu bytes)\n", name,
           result->us_a_message, result->last_p50_ms, result->last_p99_ms, result->messages, result->frame_length);
}

static void wait_for_samples(void)
{
    gputap_snapshot snapshot = GPUTAP_SNAPSHOT_INIT;
    for (int i = 0; i < 100 && gputap_latest(tap, 0, &snapshot) != GPUTAP_OK; i++)
        usleep(50000);
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 200, seconds = argc > 2 ? atoi(argv[2]) : 3;
    char folder[PATH_MAX], base[] = "/tmp/gputap-bench-XXXXXX", limit[32], cleanup[64];
    const char *given = getenv("GPUTAP_BIN"), *slash = strrchr(argv[0], '/');
    snprintf(folder, sizeof folder, "%.*s/..", slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".");
    if (count < 1 || count > 5000 || seconds < 1 || seconds > 60 || !mkdtemp(base))
        return 2;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    setenv("GPUTAP_DIR", base, 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int out[2];
    if (pipe(out) != 0)
        die("pipe");
    snprintf(limit, sizeof limit, "%d:%d", count + 16, count + 16);
    const char *programs = given ? given : folder;
    char *broker_args[] = {"gputapd", "--instance", "bench", "--period", "100", "--simulate", "mi300x:8", NULL};
    char *bridge_args[] = {"gputap-bridge", "--instance", "bench", "--listen", "127.0.0.1:0", "--max-connections", limit, NULL};
    int silence = open("/dev/null", O_WRONLY);
    pid_t broker = start(programs, "gputapd", broker_args, silence);
    if (gputap_open(&tap, "bench", GPUTAP_OPEN_DETACHED) != GPUTAP_OK)
        die("gputap_open");
    wait_for_samples();
    pid_t bridge = start(programs, "gputap-bridge", bridge_args, out[1]);
    close(out[1]);
    int port = bridge_port(out[0]);
    if (port < 0)
        die("gputap-bridge");
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch_ticks, NULL) != 0)
        die("thread");
    struct result ours = measure(bridge, port, count, seconds, true);
    end(bridge);
    int listener = listen_any(&port);
    pid_t plain = fork();
    if (plain == 0)
        serve_plainly(listener, count, ours.frame_length);
    struct result floor_result = measure(plain, port, count, seconds, false);
    kill(plain, SIGKILL);
    waitpid(plain, NULL, 0);
    atomic_store(&ended, true);
    pthread_join(watcher, NULL);
    end(broker);
    gputap_close(tap);
    snprintf(cleanup, sizeof cleanup, "rm -rf %s", base);
    if (system(cleanup) != 0)
        fprintf(stderr, "left behind: %s\n", base);
    printf("bridge, %d clients, 10 Hz, %d s\n", count, seconds);
    print("gputap-bridge", &ours);
    print("plain send()", &floor_result);
    if (floor_result.us_a_message > 0 && floor_result.last_p99_ms > 0)
        printf("bridge CPU a message / send() of the same bytes: %.2f\npublish to last receive, p99 / the same for send(): %.2f\n",
               ours.us_a_message / floor_result.us_a_message, ours.last_p99_ms / floor_result.last_p99_ms);
    return 0;
}
