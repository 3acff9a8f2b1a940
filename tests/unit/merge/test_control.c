/* The control socket's end of things that a client shares with it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/control.h"
#include "tests/unit/check.h"
#include "tests/unit/merge/sessions_fixture.h"

static struct sessions_fixture f;
static struct control control;
static struct fake_client client;

/* As if the client had emptied the bell, and made its description blocking, after poll said that it rings. */
static void emptied_and_blocking_doorbell_holds_nobody_up(void)
{
    sessions_start(&f, 1);
    control_init(&control, &f.sessions, 10000000);
    fake_attach(&f, &client, "x");
    int bell = eventfd(0, EFD_CLOEXEC);
    CU_ASSERT_FATAL(bell >= 0);
    control.used = 1;
    control.clients[0] =
        (struct control_client){.state = CLIENT_GRANTED, .socket = -1, .bell = bell, .process = -1, .slot = client.slot};
    struct layout_span span = fake_span(32, "n", clock_mono_ns());
    fake_say(&client, EVENT_BEGIN, &span, clock_mono_ns());
    control.owner[0] = 0;
    struct pollfd entry = {.fd = bell, .events = POLLIN, .revents = POLLIN};
    alarm(5); /* ends the test where the broker would wait for ever */
    control_handle(&control, &entry, 1, clock_mono_ns());
    CU_ASSERT_EQUAL(f.sessions.span_count, 0); /* nothing rang */
    uint64_t one = 1;
    CU_ASSERT_EQUAL(write(bell, &one, sizeof one), sizeof one);
    control_handle(&control, &entry, 1, clock_mono_ns());
    alarm(0);
    CU_ASSERT_EQUAL(f.sessions.span_count, 1);
    CU_ASSERT_EQUAL(fcntl(bell, F_GETFL) & O_NONBLOCK, 0); /* the bell is the client's, too: it stays as it is */
    close(bell);
    sessions_end(&f);
}

/* A TCP socket with unsent data that lingers for a minute: whoever drops the last reference waits for it. */
static int lingering_socket(int *peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    static const char bytes[65536];
    struct linger linger = {1, 60};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
    CU_ASSERT_FATAL(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    CU_ASSERT_FATAL(connect(fd, (struct sockaddr *)&address, length) == 0);
    *peer = accept(listener, NULL, NULL);
    CU_ASSERT_FATAL(*peer >= 0 && setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    close(listener);
    return fd;
}

static void send_along(int socket, const void *bytes, size_t size, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } space = {{0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space.bytes, .msg_controllen = sizeof space.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&packet);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    CU_ASSERT_EQUAL_FATAL(sendmsg(socket, &packet, 0), (ssize_t)size);
}

/* `first` packets of nonsense before the one that carries the socket: then it is the closing that would drop it. */
static void lingering_descriptor(int first)
{
    int ends[2], peer, passed = lingering_socket(&peer), status;
    sessions_start(&f, 1);
    control_init(&control, &f.sessions, 10000000);
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0); /* that refuses nothing */
    for (int i = 0; i < first; i++)
        CU_ASSERT_EQUAL(send(ends[0], "nonsense", 8, 0), 8);
    send_along(ends[0], "loaded", 6, passed);
    close(passed); /* the packet has the last reference */
    control.used = 1;
    control.clients[0] = (struct control_client){
        .state = CLIENT_SILENT, .socket = ends[1], .bell = -1, .process = -1, .slot = -1, .since_ns = clock_mono_ns()};
    control.owner[0] = 0;
    struct pollfd entry = {.fd = ends[1], .events = POLLIN, .revents = POLLIN};
    uint64_t start = clock_mono_ns();
    alarm(20);
    control_handle(&control, &entry, 1, clock_mono_ns());
    CU_ASSERT(clock_mono_ns() - start < UINT64_C(2000000000));
    CU_ASSERT_EQUAL(control.clients[0].state, CLIENT_FREE);
    CU_ASSERT_EQUAL(control.refused, 1);
    CU_ASSERT(waitpid(-1, &status, 0) > 0); /* whoever took it along is gone at once, too */
    alarm(0);
    CU_ASSERT(clock_mono_ns() - start < UINT64_C(5000000000));
    close(ends[0]);
    close(peer);
    sessions_end(&f);
}

static void descriptor_that_would_block_whoever_drops_it_holds_nobody_up(void) { lingering_descriptor(0); }
static void nor_does_one_that_is_still_unread_when_its_client_is_dropped(void) { lingering_descriptor(1); }

TESTS({"emptied_and_blocking_doorbell_holds_nobody_up", emptied_and_blocking_doorbell_holds_nobody_up},
      {"descriptor_that_would_block_whoever_drops_it_holds_nobody_up",
       descriptor_that_would_block_whoever_drops_it_holds_nobody_up},
      {"nor_does_one_that_is_still_unread_when_its_client_is_dropped",
       nor_does_one_that_is_still_unread_when_its_client_is_dropped})
