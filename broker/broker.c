/* The broker's loop: a timer starts a tick, workers answer, the merged numbers are published at the last answer or at the
 * deadline, whichever comes first. Nothing here waits for a worker, a client or a disk. */
#include "broker/broker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/control.h"
#include "broker/events.h"
#include "broker/log.h"
#include "broker/pool.h"
#include "broker/process_tables.h"
#include "broker/publish.h"
#include "broker/sessions.h"
#include "shm/text.h"

#define MS UINT64_C(1000000)

static const uint64_t first_listing_ns = 5000 * MS; /* a vendor's library that needs longer joins later */
static const uint64_t deadline_limit_ns = 250 * MS;
static const uint64_t stale_floor_ns = 2000 * MS;
static const uint64_t late_ns = 100 * MS;
static const uint64_t span_period_ns = 100 * MS; /* while a span is open */
static const uint64_t edge_gap_ns = 25 * MS;     /* between a tick and the one that a span's begin or end asks for */
static const uint64_t sum_up_gap_ns = 10 * MS;   /* between two helpings of ended spans, where there are many */

struct broker {
    const struct options *options;
    struct pool pool;
    struct devices devices;
    struct publisher publisher;
    struct process_tables processes;
    struct sessions sessions;
    struct control control;
    struct layout_host host;
    struct sample host_sample;
    struct layout_provider providers[LAYOUT_MAX_PROVIDERS];
    struct layout_stats stats;
    uint64_t tick;
    bool collecting;  /* a tick is out and not published yet */
    uint64_t tick_ns; /* when it went out */
    uint64_t sum_up_ns;
    uint64_t deadline_ns;
    uint64_t housekeeping_ns;
    bool table_full_told;
    bool told_ready;
    struct lock lock;
    bool displaced; /* another broker took the place */
    char directory[PLACE_PATH_MAX];
};

/* --- what workers say --------------------------------------------------------------------------------------------------- */

static void on_status(void *context, int provider, uint32_t state, const char *message)
{
    struct broker *broker = context;
    struct layout_provider *out = &broker->providers[provider];
    text_copy(out->name, sizeof out->name, providers[provider]->name, strlen(providers[provider]->name));
    out->state = state;
    text_copy(out->message, sizeof out->message, message, strlen(message));
}

static void on_device(void *context, int provider, const struct layout_device *facts)
{
    struct broker *broker = context;
    struct device *device = devices_find(&broker->devices, facts->id);
    if (!device)
        device = devices_add(&broker->devices, facts->id);
    if (device) {
        devices_take_facts(device, provider, facts);
    } else if (!broker->table_full_told) {
        log_line("no room for device %s: raise --max-devices", facts->id);
        broker->table_full_told = true;
    }
}

static void on_listed(void *context, int provider, const char *only, const char (*ids)[48], int count, bool beyond)
{
    struct broker *broker = context;
    devices_take_list(&broker->devices, provider, only, ids, count);
    uint32_t present = 0;
    for (uint32_t i = 0; i < broker->devices.count; i++)
        present += broker->devices.items[i].sources[provider].present;
    broker->providers[provider].devices = present;
    if (beyond)
        log_line("%s: %d devices are read, those beyond are left out", providers[provider]->name, PROVIDER_MAX_DEVICES);
}

static void on_host(void *context, const struct layout_host *facts) { ((struct broker *)context)->host = *facts; }

static void on_sample(void *context, int provider, const char *id, int gone, const struct sample *sample)
{
    struct broker *broker = context;
    struct device *device = devices_find(&broker->devices, id);
    if (device)
        devices_take_sample(device, provider, gone, sample);
}

static void on_processes(void *context, int provider, const char *id, const struct layout_process_table *table)
{
    struct broker *broker = context;
    const struct device *device = devices_find(&broker->devices, id);
    if (device)
        process_tables_take(&broker->processes, &broker->devices, device, provider, table);
}

static void on_host_sample(void *context, const struct sample *sample) { ((struct broker *)context)->host_sample = *sample; }

static void on_hung(void *context, int provider, const char *id)
{
    struct broker *broker = context;
    struct device *device = devices_find(&broker->devices, id);
    broker->providers[provider].hung++;
    if (device)
        devices_take_hung(device, provider);
}

/* --- publishing --------------------------------------------------------------------------------------------------------- */

static uint64_t stale_after(const struct broker *broker)
{
    uint64_t periods = 3 * broker->pool.period_ns;
    return periods > stale_floor_ns ? periods : stale_floor_ns;
}

/* Why a host metric is unknown before any sample: there will be none where no provider of the host runs. */
static uint8_t reason_before_samples(const struct broker *broker)
{
    for (int i = 0; i < provider_count; i++)
        if (providers[i]->host && broker->providers[i].state != PROVIDER_ABSENT && broker->providers[i].state != PROVIDER_OFF)
            return REASON_NOT_SAMPLED;
    return REASON_NOT_SUPPORTED;
}

static void merge_host(struct broker *broker, uint64_t now_ns, struct merged *merged)
{
    int count;
    const struct metric_info *table = metrics_table(true, &count);
    const struct sample *sample = &broker->host_sample;
    bool stale = sample->mono_ns == 0 || (now_ns > sample->mono_ns && now_ns - sample->mono_ns > stale_after(broker));
    uint8_t early = reason_before_samples(broker);
    memset(merged, 0, sizeof *merged);
    merged->mono_ns = sample->mono_ns;
    merged->cost_ns = sample->cost_ns;
    for (int metric = 0; metric < count; metric++) {
        double number = metrics_as_double(&table[metric], sample->values[metric]);
        bool finite = number - number == 0;
        bool known = !stale && finite && metrics_valid(sample->valid, metric);
        uint8_t why = sample->mono_ns == 0 ? early : stale ? REASON_STALE : sample->reasons[metric];
        broker->host.reasons[metric] = known ? REASON_NONE : why != REASON_NONE && why < REASON_COUNT ? why : REASON_ERROR;
        if (!known)
            continue;
        merged->values[metric] = sample->values[metric];
        metrics_set_valid(merged->valid, metric);
    }
}

static void publish_stats_now(struct broker *broker, uint64_t now_ns)
{
    broker->stats.broker_cpu_ns = events_cpu_ns();
    broker->stats.workers_cpu_ns = pool_cpu_ns(&broker->pool);
    broker->stats.workers_alive = broker->pool.alive;
    broker->stats.worker_restarts = broker->pool.restarts;
    broker->stats.workers_killed = broker->pool.killed;
    broker->stats.workers_abandoned = pool_abandoned(&broker->pool, now_ns);
    broker->stats.bad_messages = broker->pool.bad_messages;
    broker->stats.recreated = broker->publisher.recreated;
    broker->stats.sessions_open = broker->sessions.open_count;
    broker->stats.sessions_total = broker->sessions.total;
    broker->stats.sessions_refused = broker->control.refused;
    broker->stats.events = broker->sessions.published;
    broker->stats.events_lost = broker->sessions.lost;
    broker->stats.records_rejected = broker->sessions.rejected;
    publish_stats(&broker->publisher, &broker->stats);
    for (int i = 0; i < provider_count; i++)
        publish_provider(&broker->publisher, i, &broker->providers[i]);
}

/* Once there is something to read: whoever waited for this line finds every device. */
static void tell_ready(struct broker *broker)
{
    printf("gputapd ready: %s, %u device%s\n", broker->directory, broker->devices.count, broker->devices.count == 1 ? "" : "s");
    fflush(stdout);
    broker->told_ready = true;
}

static void sum_up(struct broker *broker)
{
    uint64_t now_ns = clock_mono_ns();
    sessions_sum_up(&broker->sessions, &broker->devices, now_ns, stale_after(broker));
    broker->sum_up_ns = now_ns;
}

static void publish_tick(struct broker *broker)
{
    uint64_t now_ns = clock_mono_ns();
    uint64_t stale_ns = stale_after(broker);
    struct merged merged;
    for (uint32_t i = 0; i < broker->devices.count; i++) {
        struct device *device = &broker->devices.items[i];
        bool changed = devices_merge(&broker->devices, device, now_ns, stale_ns, &merged);
        broker->publisher.devices[i].at_work = sessions_busy(&broker->sessions, i);
        publish_device(&broker->publisher, i, device, &merged, broker->tick, now_ns, stale_ns, changed);
    }
    process_tables_publish(&broker->processes, &broker->devices, &broker->publisher, now_ns, stale_ns);
    merge_host(broker, now_ns, &merged);
    publish_host(&broker->publisher, &broker->host, &merged, broker->tick, now_ns);
    sessions_merge_all(&broker->sessions, clock_mono_ns());
    sum_up(broker);
    sessions_publish(&broker->sessions, clock_mono_ns());
    publish_announce(&broker->publisher, broker->tick, broker->devices.count);
    broker->collecting = false;
    broker->stats.ticks = broker->tick;
    broker->stats.publish_ns = clock_mono_ns() - now_ns;
    if (!broker->told_ready)
        tell_ready(broker);
}

static void begin_tick(struct broker *broker, uint64_t expirations)
{
    if (broker->collecting) { /* the period is shorter than the answers take */
        broker->stats.late_samples++;
        publish_tick(broker);
    }
    broker->stats.missed_ticks += expirations - 1;
    broker->tick++;
    uint64_t period = broker->pool.period_ns;
    broker->pool.at_work = broker->sessions.span_count > 0;
    broker->sessions.edge = false;
    broker->tick_ns = clock_mono_ns();
    broker->deadline_ns = broker->tick_ns + (period / 2 < deadline_limit_ns ? period / 2 : deadline_limit_ns);
    pool_tick(&broker->pool, broker->tick, period);
    broker->collecting = true;
}

/* --- annotations --------------------------------------------------------------------------------------------------------- */

/* The fastest that anybody asks for, within what the options allow. */
static uint64_t wanted_period(const struct broker *broker)
{
    uint64_t period = broker->options->period_ns, least = broker->options->min_period_ns;
    uint64_t wish = control_wish(&broker->control);
    if (broker->sessions.span_count > 0 && (wish == 0 || wish > span_period_ns))
        wish = span_period_ns;
    if (wish > 0 && wish < least)
        wish = least;
    return wish > 0 && wish < period ? wish : period;
}

static void follow_period(struct broker *broker, struct events *events)
{
    uint64_t period = wanted_period(broker);
    if (period == broker->pool.period_ns)
        return;
    segment_set_period(&broker->publisher.writer, period); /* before readers could take a slower beat for a stopped one */
    broker->publisher.config.period_ns = period;
    broker->pool.period_ns = period;
    /* Counted from the last tick: who changes his mind faster than the period must not hold up all ticks. */
    uint64_t since_ns = clock_mono_ns() - broker->tick_ns;
    events_start_timer(events, period, since_ns < period ? period - since_ns : 0);
}

static void tend_clients(struct broker *broker, struct events *events)
{
    uint64_t now_ns = clock_mono_ns();
    control_tend(&broker->control, now_ns);
    follow_period(broker, events);
    /* A sample at a span's begin and end makes its numbers exact, whatever the period is. */
    if (broker->sessions.edge && !broker->collecting && now_ns - broker->tick_ns >= edge_gap_ns)
        begin_tick(broker, 1);
    if (broker->sessions.backlog && now_ns - broker->sum_up_ns >= sum_up_gap_ns)
        sum_up(broker);
    if (sessions_publish(&broker->sessions, now_ns))
        segment_wake(&broker->publisher.writer);
}

/* --- once a second ------------------------------------------------------------------------------------------------------- */

static int take_place(struct broker *broker, char *message, size_t size)
{
    int64_t holder;
    unsigned mode = broker->options->group >= 0 ? 0640 : 0644;
    int result =
        place_create(broker->options->instance, broker->options->group, broker->directory, sizeof broker->directory, message, size);
    if (result != REGION_OK)
        return result;
    result = lock_take(broker->directory, mode, broker->options->group, &broker->lock, &holder, message, size);
    if (result == REGION_EBUSY)
        text_format(message, size, "instance \"%s\" is already running, pid %" PRId64 " (%s)", broker->options->instance, holder,
                    broker->directory);
    return result;
}

/* Somebody removed or renamed our files: they are made anew, and again in a second if that fails. False only when another broker
 * has taken the place since. */
static bool keep_files(struct broker *broker)
{
    char message[1280];
    bool lock_there = lock_in_place(broker->directory, &broker->lock);
    if (lock_there && segment_in_place(&broker->publisher.writer, broker->directory))
        return true;
    log_line("%s is no longer there: creating it again", lock_there ? PLACE_SEGMENT : PLACE_LOCK);
    int result = take_place(broker, message, sizeof message);
    if (result == REGION_OK)
        result = publisher_recreate(&broker->publisher, message, sizeof message);
    if (result != REGION_OK)
        log_line("%s%s", message, result == REGION_EBUSY ? "" : "; trying again in a second");
    else
        sessions_bind(&broker->sessions, &broker->publisher);
    broker->displaced = result == REGION_EBUSY;
    return !broker->displaced;
}

static bool housekeeping(struct broker *broker, uint64_t now_ns)
{
    if (now_ns < broker->housekeeping_ns)
        return true;
    broker->housekeeping_ns = now_ns + 1000 * MS;
    publish_stats_now(broker, now_ns);
    if (!keep_files(broker))
        return false;
    control_listen(&broker->control, broker->directory, broker->options->group);
    return true;
}

/* --- the loop -------------------------------------------------------------------------------------------------------------- */

static uint64_t next_wake(const struct broker *broker, uint64_t now_ns)
{
    uint64_t next = pool_next_watch(&broker->pool, now_ns);
    if (broker->collecting && broker->deadline_ns < next)
        next = broker->deadline_ns;
    if (broker->sessions.edge && !broker->collecting && broker->tick_ns + edge_gap_ns < next)
        next = broker->tick_ns + edge_gap_ns;
    if (broker->sessions.backlog && broker->sum_up_ns + sum_up_gap_ns < next)
        next = broker->sum_up_ns + sum_up_gap_ns;
    uint64_t control = control_next_wake(&broker->control);
    return control < next ? control : next;
}

/* One turn: waits, then handles what came. False to end. */
static bool turn(struct broker *broker, struct events *events)
{
    uint64_t before = clock_mono_ns();
    uint64_t until = next_wake(broker, before);
    int ready = events_wait(events, &broker->pool, &broker->control, until > before ? until - before : 0);
    uint64_t now = clock_mono_ns();
    if (now > until + late_ns)
        pool_forgive(&broker->pool, now - until);
    if (events->stop)
        return false; /* what ends now was told to, as we were */
    for (int i = 0; i < ready; i++)
        pool_receive(&broker->pool, events->ready[i]);
    pool_receive_busy(&broker->pool); /* also at the deadline: not all of them wake us */
    if (events->child_ended)
        pool_reap(&broker->pool);
    pool_watch(&broker->pool, clock_mono_ns());
    control_handle(&broker->control, events->control, events->control_count, clock_mono_ns());
    return true;
}

static void find_devices(struct broker *broker, struct events *events)
{
    uint64_t end = clock_mono_ns() + first_listing_ns;
    pool_watch(&broker->pool, clock_mono_ns());
    while (!pool_all_listed(&broker->pool) && clock_mono_ns() < end)
        if (!turn(broker, events))
            return;
    devices_sort(&broker->devices);
}

static int open_segment(struct broker *broker)
{
    char message[1280];
    uint32_t found = broker->devices.count;
    uint32_t capacity = broker->options->max_devices ? (uint32_t)broker->options->max_devices : found + 8 > 16 ? found + 8 : 16;
    if (found > capacity) {
        log_line("%u devices found, room for %u: raise --max-devices", found, capacity);
        broker->devices.count = capacity;
    }
    broker->devices.capacity = capacity;
    if (publisher_open(&broker->publisher, broker->options, broker->directory, capacity, message, sizeof message) == REGION_OK) {
        sessions_bind(&broker->sessions, &broker->publisher);
        control_listen(&broker->control, broker->directory, broker->options->group);
        return 0;
    }
    log_line("%s", message);
    return 1;
}

static void serve(struct broker *broker, struct events *events)
{
    events_start_timer(events, broker->pool.period_ns, broker->pool.period_ns);
    begin_tick(broker, 1);
    while (turn(broker, events)) {
        uint64_t now = clock_mono_ns();
        if (broker->collecting && (pool_quiet(&broker->pool) || now >= broker->deadline_ns)) {
            broker->stats.late_samples += !pool_quiet(&broker->pool);
            publish_tick(broker);
        }
        if (events->expirations > 0)
            begin_tick(broker, events->expirations);
        tend_clients(broker, events);
        if (!housekeeping(broker, now))
            break;
    }
}

int broker_run(const struct options *options)
{
    static struct broker broker;
    char message[1280];
    broker.options = options;
    broker.lock = (struct lock)LOCK_NONE;
    if (take_place(&broker, message, sizeof message) != REGION_OK) {
        log_line("%s", message);
        return 1;
    }
    struct events events;
    events_open(&events);
    devices_init(&broker.devices, LAYOUT_MAX_DEVICES);
    control_init(&broker.control, &broker.sessions, options->min_period_ns);
    const struct pool_events calls = {&broker,   on_status,    on_device,      on_listed, on_host,
                                      on_sample, on_processes, on_host_sample, on_hung};
    pool_init(&broker.pool, options, &calls);
    find_devices(&broker, &events);
    int code = events.stop ? 0 : open_segment(&broker);
    if (code == 0 && !events.stop) {
        serve(&broker, &events);
        code = broker.displaced;
    }
    control_close(&broker.control);
    if (broker.publisher.open) {
        sessions_publish(&broker.sessions, clock_mono_ns());
        segment_mark(&broker.publisher.writer, SEGMENT_CLOSING);
    }
    pool_stop(&broker.pool);
    publisher_close(&broker.publisher);
    process_tables_free(&broker.processes);
    devices_free(&broker.devices);
    lock_release(&broker.lock);
    return code;
}
