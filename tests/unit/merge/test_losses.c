/* A client that goes on while the broker concludes from its memory what is open, after a loss. Pages that are protected until they
 * are read make the moment certain. */
#include <signal.h>
#include <sys/mman.h>

#include "tests/unit/check.h"
#include "tests/unit/merge/sessions_fixture.h"

enum { PAGE = 4096, EARLY_PLACE = 0, LATE_PLACE = 30, EARLY_PAGE = 1, LATE_PAGE = 5 };

static struct sessions_fixture f;
static _Alignas(4096) struct fake_client client;
static int step;

static void protect(int page, int rights) { (void)mprotect((char *)client.memory + page * PAGE, PAGE, rights); }

static void begin(uint64_t id, int place)
{
    struct layout_span span = fake_span(id, "x", clock_mono_ns());
    fake_show(&client, place, &span);
    fake_say(&client, EVENT_BEGIN, &span, span.start_ns);
}

/* First the broker looks for changed progress, at every place; then it concludes. There, when it has read the early place and comes
 * to the late one, the client begins a span in each. */
static void on_read(int number)
{
    (void)number;
    protect(EARLY_PAGE, PROT_READ | PROT_WRITE);
    protect(LATE_PAGE, PROT_READ | PROT_WRITE);
    switch (step++) {
    case 0: protect(EARLY_PAGE, PROT_NONE); break;
    case 1: protect(LATE_PAGE, PROT_NONE); break;
    default:
        begin(100, EARLY_PLACE);
        begin(101, LATE_PLACE);
        break;
    }
}

static void spans_begun_while_it_concludes_are_known_at_the_next_bell(void)
{
    struct layout_session mirror;
    struct sigaction handler = {.sa_handler = on_read}, before;
    sessions_start(&f, 1);
    fake_attach(&f, &client, "x");
    struct layout_span point = fake_span(0, "instant", clock_mono_ns());
    for (int i = 0; i < 200; i++)
        fake_say(&client, EVENT_INSTANT, &point, clock_mono_ns());
    CU_ASSERT_EQUAL_FATAL(sigaction(SIGSEGV, &handler, &before), 0);
    protect(LATE_PAGE, PROT_NONE);
    sessions_merge(&f.sessions, client.slot, clock_mono_ns());
    CU_ASSERT_EQUAL(sigaction(SIGSEGV, &before, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(step, 3);
    sessions_merge(&f.sessions, client.slot, clock_mono_ns());
    sessions_mirror(&f, client.slot, &mirror);
    CU_ASSERT_EQUAL(mirror.span_count, 2);
    CU_ASSERT_EQUAL(mirror.spans[0].id, 100);
    CU_ASSERT_EQUAL(mirror.spans[1].id, 101);
    CU_ASSERT_EQUAL(mirror.rejected, 0);
    sessions_end(&f);
}

TESTS({"spans_begun_while_it_concludes_are_known_at_the_next_bell", spans_begun_while_it_concludes_are_known_at_the_next_bell})
