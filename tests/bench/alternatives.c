#include "tests/bench/alternatives.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int datagrams[2] = {-1, -1};
static int listener = -1, connection = -1;

int json_line(char *out, size_t size, int number)
{
    return snprintf(
        out, size,
        "{\"type\":\"begin\",\"mono_ns\":%llu,\"job\":\"%s\",\"node\":\"%d\",\"name\":\"%s\",\"value\":%.3f,\"max\":%.3f,"
        "\"device\":%d}\n",
        123456789012345ULL + (unsigned long long)number, "8f3c-prompt", number % 64, "KSampler", number * 0.25, 20.0, 0);
}

static void *swallow(void *unused)
{
    char packet[512];
    while (recv(datagrams[1], packet, sizeof packet, 0) > 0) {
    }
    return unused;
}

bool datagram_open(void)
{
    pthread_t thread;
    return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, datagrams) == 0 && pthread_create(&thread, NULL, swallow, NULL) == 0;
}

void datagram_send(const char *text, size_t length) { (void)send(datagrams[0], text, length, 0); }

static void *serve(void *unused)
{
    static char answer[1024];
    char request[1024], body[640];
    size_t used = 0;
    used += (size_t)snprintf(body, sizeof body, "{\"t\":1700000000000,\"gpu\":[{");
    for (int i = 0; i < 20; i++)
        used += (size_t)snprintf(body + used, sizeof body - used, "\"metric_%d\":%d.5%s", i, i * 1000, i < 19 ? "," : "}]}\n");
    int total = snprintf(answer, sizeof answer,
                         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", used, body);
    int client = accept(listener, NULL, NULL), yes = 1;
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    while (recv(client, request, sizeof request, 0) > 0 && send(client, answer, (size_t)total, MSG_NOSIGNAL) == total) {
    }
    close(client);
    return unused;
}

bool http_open(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    pthread_t thread;
    int yes = 1;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return listener >= 0 && connection >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
           listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&address, &length) == 0 &&
           pthread_create(&thread, NULL, serve, NULL) == 0 &&
           connect(connection, (struct sockaddr *)&address, sizeof address) == 0 &&
           setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0;
}

bool http_get(void)
{
    static const char request[] = "GET /api/v1/snapshot HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n";
    char answer[1024];
    return send(connection, request, sizeof request - 1, MSG_NOSIGNAL) == (ssize_t)sizeof request - 1 &&
           recv(connection, answer, sizeof answer, 0) > 0;
}
