/* The annotator against a broker that is there, absent, stopped, killed and replaced. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gputap.h"
#include "tests/unit/annotate/inner_broker.h"
#include "tests/unit/check.h"

static struct inner_broker broker;

static gputap *open_detached(void)
{
    gputap *tap = NULL;
    CU_ASSERT_EQUAL_FATAL(gputap_open(&tap, "t", GPUTAP_OPEN_DETACHED), GPUTAP_OK);
    return tap;
}

static gputap_annotator info_of(gputap *tap)
{
    gputap_annotator info = GPUTAP_ANNOTATOR_INIT;
    CU_ASSERT_EQUAL(gputap_annotator_info(tap, &info), GPUTAP_OK);
    return info;
}

/* Until the broker has the session. */
static bool connected_within(gputap *tap, int ms)
{
    for (; ms > 0; ms -= 10) {
        if (gputap_poll(tap) == 1)
            return true;
        inner_sleep_ms(10);
    }
    return false;
}

/* Until a broker has granted it for the n-th time: the end of the one before is noticed at a call, but not at every call. */
static bool granted_within(gputap *tap, uint32_t times, int ms)
{
    for (; ms > 0 && info_of(tap).connects < times; ms -= 10)
        inner_sleep_ms(10);
    return connected_within(tap, ms);
}

static void calls_before_attach_and_bad_arguments_are_refused(void)
{
    uint64_t span = 7;
    inner_place(&broker);
    gputap *tap = open_detached();
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "j", "n", "x", 0, NULL, 0, &span), GPUTAP_EDETACHED);
    CU_ASSERT_EQUAL(span, 0);
    CU_ASSERT_EQUAL(gputap_span_step(tap, 1, 1, 1), GPUTAP_EDETACHED);
    CU_ASSERT_EQUAL(gputap_span_step(tap, 0, 1, 1), GPUTAP_OK); /* of a begin that failed */
    CU_ASSERT_EQUAL(gputap_span_end(tap, 0, NULL, 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_instant(tap, "", "", "x"), GPUTAP_EDETACHED);
    CU_ASSERT_EQUAL(gputap_gauge(tap, 0, 1, 1, 1), GPUTAP_EDETACHED);
    CU_ASSERT_EQUAL(gputap_poll(tap), GPUTAP_EDETACHED);
    CU_ASSERT_EQUAL(gputap_detach(tap), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_attach(tap, NULL), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_attach(tap, ""), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_attach(NULL, "x"), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_request_period(tap, -1), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_request_period(tap, 60001), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_attach(tap, "x"), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "j", "n", "x", 0, NULL, 0, NULL), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "j", "n", "x", 0, (int[]){0}, 1, &span), GPUTAP_ENODEV);
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "j", "n", "x", 0, NULL, 1, &span), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "j", "n", "x", 0, (int[]){0}, 65, &span), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_span_begin(tap, NULL, NULL, NULL, 0, NULL, 0, &span), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_step(tap, span, (double)NAN, 1), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_span_step(tap, span + 32, 1, 1), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_span_step(tap, 0, 1, 1), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_end(tap, 0, NULL, 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_end(tap, span, &(gputap_usage){0}, -1), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_span_end(tap, span, NULL, 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_end(tap, span, NULL, 0), GPUTAP_EINVAL);
    CU_ASSERT_EQUAL(gputap_gauge(tap, 0, 1, 1, 1), GPUTAP_ENODEV);
    gputap_close(tap);
    inner_remove(&broker);
}

static void without_a_broker_calls_succeed_and_what_is_over_counts_as_dropped(void)
{
    uint64_t span = 0, open = 0;
    inner_place(&broker);
    gputap *tap = open_detached();
    CU_ASSERT_EQUAL(gputap_attach(tap, "alone"), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_poll(tap), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(tap), "no broker"));
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "j", "n", "over", 0, NULL, 0, &span), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_step(tap, span, 1, 2), GPUTAP_OK);
    gputap_usage usage;
    CU_ASSERT_EQUAL(gputap_span_end(tap, span, &usage, 1), 0); /* nobody knows any device */
    CU_ASSERT_EQUAL(gputap_instant(tap, "", "", "point"), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "j", "n", "still open", 0, NULL, 0, &open), GPUTAP_OK);
    gputap_annotator info = info_of(tap);
    CU_ASSERT_EQUAL(info.dropped, 2);
    CU_ASSERT_EQUAL(info.open_spans, 1);
    CU_ASSERT_EQUAL(info.connected, 0);
    CU_ASSERT_EQUAL(info.slot, -1);

    inner_start(&broker);
    CU_ASSERT(connected_within(tap, 3000));
    struct layout_event event = inner_event(&broker, EVENT_BEGIN);
    CU_ASSERT_STRING_EQUAL(event.name, "still open");
    CU_ASSERT_EQUAL(event.span, open);
    gputap_close(tap);
    event = inner_event(&broker, EVENT_END);
    CU_ASSERT_EQUAL(event.flags, EVENT_ABANDONED);
    inner_remove(&broker);
}

static void begin_is_published_within_milliseconds_of_the_call(void)
{
    uint64_t span = 0;
    inner_place(&broker);
    inner_start(&broker);
    gputap *tap = open_detached();
    CU_ASSERT_EQUAL(gputap_attach(tap, "x"), GPUTAP_OK);
    CU_ASSERT_EQUAL(info_of(tap).connected, 1); /* attach waits for the answer, if only shortly */
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "job", "3", "KSampler", 0, (int[]){1}, 1, &span), GPUTAP_OK);
    struct layout_event event = inner_event(&broker, EVENT_BEGIN); /* without any further call */
    CU_ASSERT_EQUAL(event.span, span);
    CU_ASSERT_EQUAL(event.devices, 2);
    CU_ASSERT_EQUAL(event.pid, (uint32_t)getpid());
    CU_ASSERT_EQUAL(event.uid, (uint32_t)getuid());
    CU_ASSERT_STRING_EQUAL(event.job, "job");
    CU_ASSERT_STRING_EQUAL(event.node, "3");
    gputap_session session = GPUTAP_SESSION_INIT;
    gputap_span spans[32];
    inner_sleep_ms(20);
    CU_ASSERT_EQUAL(gputap_session_info(tap, info_of(tap).slot, &session, spans, 32), 1);
    CU_ASSERT_EQUAL(session.mine, 1);
    CU_ASSERT_EQUAL(spans[0].id, span);
    CU_ASSERT_EQUAL(spans[0].devices[0], 1);
    gputap_close(tap);
    inner_remove(&broker);
}

static void tell_processes(uint32_t slot, uint32_t pid, uint32_t flags, uint64_t vram)
{
    union {
        struct layout_process_table table;
        uint64_t words[sizeof(struct layout_process_table) / 8];
    } raw;
    struct ring ring;
    memset(&raw, 0, sizeof raw);
    raw.table.updated_ns = clock_mono_ns();
    raw.table.count = 2;
    raw.table.rows[0] = (struct layout_process){.pid = pid + 1, .vram = 1};
    raw.table.rows[1] = (struct layout_process){.pid = pid, .flags = flags, .vram = vram};
    segment_entry(&broker.fixture.publisher.writer, REGION_PROCESS, slot, &ring);
    ring_publish(&ring, raw.words);
}

static void memory_tells_what_the_session_itself_holds(void)
{
    inner_place(&broker);
    inner_start(&broker);
    gputap *tap = open_detached();
    gputap_memory_info memory = GPUTAP_MEMORY_INIT;
    pthread_mutex_lock(&broker.mutex);
    sessions_sample(&broker.fixture, clock_mono_ns(), 50, 9000);
    pthread_mutex_unlock(&broker.mutex);
    CU_ASSERT_EQUAL(gputap_memory(tap, 1, &memory), GPUTAP_OK);
    CU_ASSERT(memory.vram_used == 9000 && memory.own == UINT64_MAX && memory.others == UINT64_MAX);
    CU_ASSERT_EQUAL(gputap_attach(tap, "x"), GPUTAP_OK);
    CU_ASSERT(connected_within(tap, 1000));
    CU_ASSERT_EQUAL(gputap_gauge(tap, 1, 1000, 4000, UINT64_MAX), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_instant(tap, "", "", "rings"), GPUTAP_OK);
    for (int i = 0; i < 100 && memory.own == UINT64_MAX; i++) {
        inner_sleep_ms(10);
        CU_ASSERT_EQUAL(gputap_memory(tap, 1, &memory), GPUTAP_OK);
    }
    CU_ASSERT(memory.own == 4000 && memory.others == 5000);
    tell_processes(1, (uint32_t)getpid(), 0, 6000); /* the driver counts more than the allocator knows */
    CU_ASSERT_EQUAL(gputap_memory(tap, 1, &memory), GPUTAP_OK);
    CU_ASSERT(memory.own == 6000 && memory.others == 3000);
    static const struct {
        uint32_t pid_off, flags;
        uint64_t vram;
    } unfit[] = {{0, PROCESS_PARTIAL, 6000}, {0, 0, UINT64_MAX}, {5, 0, 6000}};
    for (size_t i = 0; i < sizeof unfit / sizeof unfit[0]; i++) {
        tell_processes(1, (uint32_t)getpid() + unfit[i].pid_off, unfit[i].flags, unfit[i].vram);
        CU_ASSERT_EQUAL(gputap_memory(tap, 1, &memory), GPUTAP_OK);
        CU_ASSERT(memory.own == 4000 && memory.others == 5000);
    }
    CU_ASSERT_EQUAL(gputap_memory(tap, 0, &memory), GPUTAP_OK);
    CU_ASSERT(memory.own == UINT64_MAX && memory.others == UINT64_MAX);
    gputap_close(tap);
    inner_remove(&broker);
}

static void texts_are_cut_at_whole_characters(void)
{
    uint64_t span = 0;
    char name[200] = "";
    for (int i = 0; i < 30; i++)
        strcat(name, "\xe6\xa8\xa1"); /* three bytes each; 63 bytes hold 21 */
    inner_place(&broker);
    inner_start(&broker);
    gputap *tap = open_detached();
    CU_ASSERT_EQUAL(gputap_attach(tap, name), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "a\nb\x1b", "bad\xff", name, 0, NULL, 0, &span), GPUTAP_OK);
    struct layout_event event = inner_event(&broker, EVENT_BEGIN);
    CU_ASSERT_EQUAL(strlen(event.name), 63);
    CU_ASSERT_EQUAL(strncmp(event.name, name, 63), 0);
    CU_ASSERT_STRING_EQUAL(event.job, "ab");
    CU_ASSERT_STRING_EQUAL(event.node, "bad");
    gputap_close(tap);
    inner_remove(&broker);
}

static void span_beyond_the_room_is_dropped_and_counted(void)
{
    uint64_t spans[GPUTAP_MAX_SPANS], more = 7;
    inner_place(&broker);
    inner_start(&broker);
    gputap *tap = open_detached();
    gputap_attach(tap, "x");
    for (int i = 0; i < GPUTAP_MAX_SPANS; i++)
        CU_ASSERT_EQUAL(gputap_span_begin(tap, "", "", "x", 0, NULL, 0, &spans[i]), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "", "", "x", 0, NULL, 0, &more), GPUTAP_EFULL);
    CU_ASSERT_EQUAL(more, 0);
    CU_ASSERT_EQUAL(info_of(tap).dropped, 1);
    CU_ASSERT_EQUAL(gputap_span_end(tap, spans[5], NULL, 0), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_span_begin(tap, "", "", "x", 0, NULL, 0, &more), GPUTAP_OK);
    CU_ASSERT_NOT_EQUAL(more, spans[5]); /* an id is never used twice */
    CU_ASSERT(more > spans[31]);
    gputap_close(tap);
    inner_remove(&broker);
}

static void open_spans_are_told_to_the_next_broker(void)
{
    uint64_t first = 0, second = 0, third = 0;
    inner_place(&broker);
    inner_start(&broker);
    gputap *tap = open_detached();
    gputap_attach(tap, "x");
    gputap_span_begin(tap, "", "", "first", 0, NULL, 0, &first);
    gputap_span_begin(tap, "", "", "second", first, NULL, 0, &second);
    gputap_span_end(tap, first, NULL, 0);
    gputap_span_begin(tap, "", "", "third", 0, NULL, 0, &third); /* in the first one's place, with a higher id */
    gputap_span_step(tap, third, 4, 9);
    gputap_gauge(tap, 1, 10, 20, 30);
    inner_event(&broker, EVENT_END);
    inner_stop(&broker, true);
    gputap_span_step(tap, third, 5, 9);
    inner_start(&broker);
    CU_ASSERT(granted_within(tap, 2, 3000));
    struct layout_event event = inner_event(&broker, EVENT_BEGIN);
    CU_ASSERT_EQUAL(event.span, second);
    CU_ASSERT_EQUAL(event.parent, first);
    event = inner_event(&broker, EVENT_BEGIN);
    CU_ASSERT_EQUAL(event.span, third);
    CU_ASSERT_EQUAL(event.value, 5);
    inner_sleep_ms(20);
    gputap_annotator info = info_of(tap);
    CU_ASSERT_EQUAL(info.connects, 2);
    gputap_session session = GPUTAP_SESSION_INIT;
    CU_ASSERT_EQUAL(gputap_session_info(tap, info.slot, &session, NULL, 0), 0);
    CU_ASSERT_EQUAL(session.span_count, 2);
    CU_ASSERT_EQUAL(session.gauge_count, 1);
    CU_ASSERT_EQUAL(session.gauges[0].device, 1);
    CU_ASSERT_EQUAL(session.gauges[0].reserved, 20);
    CU_ASSERT_EQUAL(session.rejected, 0);
    gputap_close(tap);
    inner_remove(&broker);
}

static void stopped_broker_holds_nobody_up_and_hears_of_it_later(void)
{
    uint64_t span = 0, longest = 0;
    inner_place(&broker);
    inner_start(&broker);
    gputap *tap = open_detached(), *late = open_detached();
    gputap_attach(tap, "x");
    inner_pause(&broker, true);
    for (int i = 0; i < 2000; i++) {
        uint64_t start = clock_mono_ns();
        gputap_span_begin(tap, "", "", "x", 0, NULL, 0, &span);
        gputap_span_step(tap, span, 1, 2);
        gputap_span_end(tap, span, NULL, 0);
        uint64_t took = clock_mono_ns() - start;
        longest = took > longest ? took : longest;
    }
    printf("longest call %.1f us ", (double)longest / 1000);
    CU_ASSERT(longest < 100000000); /* as long as this machine may take a thread off its processor */
    uint64_t start = clock_mono_ns();
    gputap_attach(late, "late"); /* connects to a socket that nobody accepts on */
    CU_ASSERT(clock_mono_ns() - start < 100000000);
    gputap_span_begin(tap, "", "", "last", 0, NULL, 0, &span);
    inner_pause(&broker, false);
    struct layout_event event = {0};
    do
        event = inner_event(&broker, EVENT_BEGIN);
    while (event.type && event.span != span);
    CU_ASSERT_STRING_EQUAL(event.name, "last");
    CU_ASSERT(connected_within(late, 2000));
    gputap_session session = GPUTAP_SESSION_INIT;
    inner_sleep_ms(20);
    gputap_session_info(tap, info_of(tap).slot, &session, NULL, 0);
    CU_ASSERT_EQUAL(session.lost, 4001 - CLIENT_EVENT_DEPTH / 2);
    CU_ASSERT_EQUAL(session.span_count, 1);
    gputap_close(tap);
    gputap_close(late);
    inner_remove(&broker);
}

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 200; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void child_is_disabled_and_lets_the_parent_be(void)
{
    uint64_t span = 0;
    inner_place(&broker);
    inner_start(&broker);
    gputap *tap = open_detached();
    gputap_attach(tap, "parent");
    gputap_span_begin(tap, "", "", "x", 0, NULL, 0, &span);
    int before = count_descriptors();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        uint64_t other = 0;
        bool right = gputap_span_begin(tap, "", "", "y", 0, NULL, 0, &other) == GPUTAP_EFORKED && other == 0;
        right =
            right && gputap_span_step(tap, span, 1, 1) == GPUTAP_EFORKED && gputap_span_end(tap, span, NULL, 0) == GPUTAP_EFORKED;
        right = right && gputap_poll(tap) == GPUTAP_EFORKED && gputap_detach(tap) == GPUTAP_EFORKED;
        right = right && count_descriptors() == before - 2; /* socket and bell are closed */
        right = right && gputap_attach(tap, "child") == GPUTAP_OK && connected_within(tap, 3000);
        right = right && gputap_span_begin(tap, "", "", "of the child", 0, NULL, 0, &other) == GPUTAP_OK;
        gputap_close(tap);
        _exit(right ? 0 : 1);
    }
    int status = 1;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(gputap_poll(tap), 1);
    CU_ASSERT_EQUAL(gputap_span_step(tap, span, 1, 1), GPUTAP_OK);
    inner_event(&broker, EVENT_BEGIN);
    struct layout_event event = inner_event(&broker, EVENT_BEGIN);
    CU_ASSERT_STRING_EQUAL(event.name, "of the child");
    gputap_close(tap);
    inner_remove(&broker);
}

static void slot_is_free_although_a_child_of_the_client_lives(void)
{
    inner_place(&broker);
    inner_start(&broker);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) { /* attaches, leaves a child of its own behind, and dies */
        gputap *tap = open_detached();
        gputap_attach(tap, "gone");
        if (fork() == 0) {
            inner_sleep_ms(3000);
            _exit(0);
        }
        kill(getpid(), SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    struct layout_event event = inner_event(&broker, EVENT_DETACH);
    CU_ASSERT_STRING_EQUAL(event.name, "gone");
    inner_remove(&broker);
}

static void label_changes_by_attaching_again(void)
{
    uint64_t span = 0;
    inner_place(&broker);
    inner_start(&broker);
    gputap *tap = open_detached();
    gputap_attach(tap, "one");
    gputap_span_begin(tap, "", "", "x", 0, NULL, 0, &span);
    CU_ASSERT_EQUAL(gputap_attach(tap, "two"), GPUTAP_OK);
    CU_ASSERT_EQUAL(inner_event(&broker, EVENT_END).flags, EVENT_ABANDONED);
    CU_ASSERT_EQUAL(gputap_span_end(tap, span, NULL, 0), GPUTAP_EINVAL);
    CU_ASSERT(connected_within(tap, 2000));
    inner_sleep_ms(20);
    gputap_session session = GPUTAP_SESSION_INIT;
    CU_ASSERT_EQUAL(gputap_session_info(tap, info_of(tap).slot, &session, NULL, 0), 0);
    CU_ASSERT_STRING_EQUAL(session.label, "two");
    gputap_close(tap);
    inner_remove(&broker);
}

static void wish_for_a_period_needs_no_session(void)
{
    inner_place(&broker);
    inner_start(&broker);
    gputap *tap = open_detached();
    CU_ASSERT_EQUAL(gputap_request_period(tap, 50), GPUTAP_OK);
    CU_ASSERT(connected_within(tap, 2000));
    inner_sleep_ms(20);
    pthread_mutex_lock(&broker.mutex);
    CU_ASSERT_EQUAL(control_wish(&broker.control), 50000000);
    CU_ASSERT_EQUAL(broker.fixture.sessions.open_count, 0);
    pthread_mutex_unlock(&broker.mutex);
    CU_ASSERT_EQUAL(gputap_attach(tap, "and a session"), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_request_period(tap, 200), GPUTAP_OK);
    CU_ASSERT(connected_within(tap, 2000));
    inner_sleep_ms(20);
    pthread_mutex_lock(&broker.mutex);
    CU_ASSERT_EQUAL(control_wish(&broker.control), 200000000);
    CU_ASSERT_EQUAL(broker.fixture.sessions.open_count, 1);
    pthread_mutex_unlock(&broker.mutex);
    gputap_close(tap);
    inner_sleep_ms(50);
    pthread_mutex_lock(&broker.mutex);
    CU_ASSERT_EQUAL(control_wish(&broker.control), 0);
    pthread_mutex_unlock(&broker.mutex);
    inner_remove(&broker);
}

static void sessions_beyond_the_quota_are_refused_with_a_reason(void)
{
    gputap *taps[CONTROL_SESSIONS_A_USER + 1];
    inner_place(&broker);
    inner_start(&broker);
    for (int i = 0; i <= CONTROL_SESSIONS_A_USER; i++) {
        taps[i] = open_detached();
        CU_ASSERT_EQUAL(gputap_attach(taps[i], "x"), GPUTAP_OK);
        CU_ASSERT_EQUAL(connected_within(taps[i], 300), i < CONTROL_SESSIONS_A_USER);
    }
    uint64_t span = 0;
    CU_ASSERT_EQUAL(gputap_span_begin(taps[CONTROL_SESSIONS_A_USER], "", "", "x", 0, NULL, 0, &span), GPUTAP_OK);
    CU_ASSERT_EQUAL(gputap_poll(taps[CONTROL_SESSIONS_A_USER]), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(gputap_message(taps[CONTROL_SESSIONS_A_USER]), "too many sessions"));
    gputap_close(taps[0]);
    CU_ASSERT(connected_within(taps[CONTROL_SESSIONS_A_USER], 4000)); /* as soon as there is room */
    for (int i = 1; i <= CONTROL_SESSIONS_A_USER; i++)
        gputap_close(taps[i]);
    inner_remove(&broker);
}

/* --- threads ---------------------------------------------------------------------------------------------------------- */

enum { THREADS = 4 };

static gputap *common;
static shm_word32 enough;

static void *work(void *context)
{
    int number = (int)(intptr_t)context;
    for (int i = 0; !word32_get(&enough); i++) {
        uint64_t outer = 0, inner = 0;
        gputap_span_begin(common, "job", "1", "outer", 0, (int[]){number % 2}, 1, &outer);
        gputap_span_begin(common, "job", "2", "inner", outer, NULL, 0, &inner);
        gputap_span_step(common, inner, i, 0);
        gputap_gauge(common, number % 2, (uint64_t)i, (uint64_t)i, 0);
        gputap_usage usage[2];
        if (gputap_span_end(common, inner, usage, 2) < 0 || gputap_span_end(common, outer, NULL, 0) < 0)
            return context;
        if (i % 64 == 0)
            gputap_instant(common, "job", "", "mark");
    }
    return NULL;
}

/* The broker that runs now has the session. */
static bool has_session(void)
{
    uint32_t count = 0;
    for (int wait = 0; wait < 300 && count == 0; wait++) {
        gputap_poll(common);
        inner_sleep_ms(10);
        pthread_mutex_lock(&broker.mutex);
        count = broker.fixture.sessions.open_count;
        pthread_mutex_unlock(&broker.mutex);
    }
    return count == 1;
}

static void threads_share_a_session_while_brokers_come_and_go(void)
{
    pthread_t threads[THREADS];
    inner_place(&broker);
    inner_start(&broker);
    common = open_detached();
    gputap_attach(common, "threads");
    word32_set(&enough, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < 4; i++) {
        inner_sleep_ms(300);
        inner_stop(&broker, i % 2 == 0);
        inner_start(&broker);
    }
    CU_ASSERT(has_session());
    inner_sleep_ms(100);
    word32_set(&enough, 1);
    for (int i = 0; i < THREADS; i++) {
        void *failed = &broker;
        pthread_join(threads[i], &failed);
        CU_ASSERT_PTR_NULL(failed);
    }
    inner_sleep_ms(50);
    gputap_annotator info = info_of(common);
    CU_ASSERT_EQUAL(info.open_spans, 0);
    CU_ASSERT(info.connects >= 2);
    pthread_mutex_lock(&broker.mutex);
    CU_ASSERT_EQUAL(broker.fixture.sessions.span_count, 0);
    CU_ASSERT_EQUAL(broker.fixture.sessions.rejected, 0);
    pthread_mutex_unlock(&broker.mutex);
    gputap_close(common);
    inner_remove(&broker);
}

TESTS({"calls_before_attach_and_bad_arguments_are_refused", calls_before_attach_and_bad_arguments_are_refused},
      {"without_a_broker_calls_succeed_and_what_is_over_counts_as_dropped",
       without_a_broker_calls_succeed_and_what_is_over_counts_as_dropped},
      {"begin_is_published_within_milliseconds_of_the_call", begin_is_published_within_milliseconds_of_the_call},
      {"memory_tells_what_the_session_itself_holds", memory_tells_what_the_session_itself_holds},
      {"texts_are_cut_at_whole_characters", texts_are_cut_at_whole_characters},
      {"span_beyond_the_room_is_dropped_and_counted", span_beyond_the_room_is_dropped_and_counted},
      {"open_spans_are_told_to_the_next_broker", open_spans_are_told_to_the_next_broker},
      {"stopped_broker_holds_nobody_up_and_hears_of_it_later", stopped_broker_holds_nobody_up_and_hears_of_it_later},
      {"child_is_disabled_and_lets_the_parent_be", child_is_disabled_and_lets_the_parent_be},
      {"slot_is_free_although_a_child_of_the_client_lives", slot_is_free_although_a_child_of_the_client_lives},
      {"label_changes_by_attaching_again", label_changes_by_attaching_again},
      {"wish_for_a_period_needs_no_session", wish_for_a_period_needs_no_session},
      {"sessions_beyond_the_quota_are_refused_with_a_reason", sessions_beyond_the_quota_are_refused_with_a_reason},
      {"threads_share_a_session_while_brokers_come_and_go", threads_share_a_session_while_brokers_come_and_go})
