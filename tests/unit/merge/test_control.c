/* The control socket's end of things that a client shares with it. */
#include <fcntl.h>
#include <sys/eventfd.h>
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

TESTS({"emptied_and_blocking_doorbell_holds_nobody_up", emptied_and_blocking_doorbell_holds_nobody_up})
