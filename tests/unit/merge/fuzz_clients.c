/* Any bytes that a client can write: into its memory, as the broker reads it, and into the control socket. With libFuzzer (FUZZING
 * defined) its main is used; else this is a bounded run of random bytes, the seed of which it prints.
 *
 * Input: byte 0 even: the memory; runs of {u16 where, u8 count, count words' low bytes} over good memory. Odd: packets of
 * {u8 length, bytes}, put into a connected socket one by one; a length above 127 sends a good HELLO first. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/control.h"
#include "shm/control_protocol.h"
#include "tests/unit/check.h"
#include "tests/unit/merge/sessions_fixture.h"

#define MS UINT64_C(1000000)

static struct sessions_fixture f;
static struct control control;
static struct fake_client client;
static bool ready;

static void make_ready(void)
{
    sessions_start(&f, 2);
    control_init(&control, &f.sessions, 10 * MS);
    ready = true;
}

/* Time passes, so that slots rest and budgets refill within one run. */
static uint64_t later(void)
{
    static uint64_t now_ns;
    now_ns = now_ns ? now_ns + 50 * MS : clock_mono_ns();
    return now_ns;
}

static void into_memory(const uint8_t *data, size_t size)
{
    uint64_t now_ns = later() + 2000 * MS;
    for (int i = 0; i < LAYOUT_SESSION_SLOTS; i++)
        f.sessions.items[i].released_ns = 0;
    fake_attach(&f, &client, "fuzz");
    struct layout_span span = fake_span(32, "good", now_ns);
    fake_show(&client, 0, &span);
    fake_say(&client, EVENT_BEGIN, &span, now_ns);
    for (size_t i = 0; i + 3 <= size;) {
        size_t where = (size_t)(data[i] | data[i + 1] << 8) % CLIENT_END, count = data[i + 2];
        i += 3;
        for (; count > 0 && i < size; count--, i++, where++)
            ((uint8_t *)client.memory)[where % CLIENT_END] = data[i];
        sessions_merge(&f.sessions, client.slot, now_ns);
    }
    sessions_sum_up(&f.sessions, &f.devices, now_ns, 1000 * MS);
    sessions_publish(&f.sessions, now_ns);
    sessions_close(&f.sessions, client.slot, now_ns);
    sessions_sum_up(&f.sessions, &f.devices, now_ns + 60000 * MS, 1000 * MS);
    sessions_publish(&f.sessions, now_ns);
}

static void serve(uint64_t now_ns)
{
    static struct pollfd entries[CONTROL_ENTRIES];
    control_tend(&control, now_ns);
    int count = control_poll_entries(&control, entries, now_ns);
    if (poll(entries, (nfds_t)count, 0) > 0)
        control_handle(&control, entries, count, now_ns);
}

static void into_socket(const uint8_t *data, size_t size)
{
    int ends[2];
    struct control_hello hello = {
        .magic = CONTROL_MAGIC, .type = CONTROL_HELLO, .abi_major = LAYOUT_ABI_MAJOR, .flags = CONTROL_SESSION, .label = "fuzz"};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
        exit(1);
    for (int i = 0; i < LAYOUT_SESSION_SLOTS; i++)
        f.sessions.items[i].released_ns = 0;
    control.used = 1;
    control.clients[0] = (struct control_client){.state = CLIENT_SILENT,
                                                 .socket = ends[1],
                                                 .bell = -1,
                                                 .process = -1,
                                                 .slot = -1,
                                                 .pid = (uint32_t)getpid(),
                                                 .since_ns = later()};
    for (size_t i = 0; i < size; serve(later())) {
        size_t length = data[i] & 127;
        if (data[i++] > 127)
            (void)send(ends[0], &hello, sizeof hello, MSG_DONTWAIT | MSG_NOSIGNAL);
        length = length < size - i ? length : size - i;
        (void)send(ends[0], data + i, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        i += length;
    }
    serve(later());
    close(ends[0]);
    for (int i = 0; i < 8; i++)
        serve(later());
    if (control.clients[0].state != CLIENT_FREE || f.sessions.open_count != 0)
        abort(); /* a client that has hung up is still there */
    (void)control_wish(&control);
}

static void one_input(const uint8_t *data, size_t size)
{
    if (!ready)
        make_ready();
    if (size < 2)
        return;
    if (data[0] % 2 == 0)
        into_memory(data + 1, size - 1);
    else
        into_socket(data + 1, size - 1);
}

#ifdef FUZZING
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    one_input(data, size);
    return 0;
}
#else
static void any_bytes_of_a_client_are_survived(void)
{
    const char *rounds = getenv("FUZZ_ROUNDS"), *chosen = getenv("FUZZ_SEED");
    uint64_t seed = chosen ? strtoull(chosen, NULL, 0) : clock_real_ns();
    printf("seed %llu\n", (unsigned long long)seed);
    for (long round = rounds ? atol(rounds) : 2000; round > 0; round--) {
        uint8_t data[256];
        for (size_t i = 0; i < sizeof data; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            data[i] = (uint8_t)(seed >> 56);
        }
        one_input(data, 2 + data[255] % 200);
    }
    CU_ASSERT_EQUAL(f.sessions.open_count, 0);
    control_close(&control);
    sessions_end(&f);
}

TESTS({"any_bytes_of_a_client_are_survived", any_bytes_of_a_client_are_survived})
#endif
