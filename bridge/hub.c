#include "bridge/hub.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bridge/waiter.h"

#define CHECK_MS 1000
/* Without ticks the feed's state is looked at this often. */
#define LOOK_MS 200

int64_t hub_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int hub_start(struct hub *hub, const struct hub_config *config)
{
    *hub = (struct hub){.tap = config->tap, .state = "", .wake = config->wake, .wake_context = config->wake_context};
    hub->sample.host.device = GPUTAP_HOST;
    annotations_start(&hub->annotations, config->tap, config->show_all, config->uid);
    processes_start(&hub->processes, config->tap, config->show_all, config->uid);
    hub_update(hub);
    if (pthread_create(&hub->waiter, NULL, waiter_run, hub) != 0)
        return -1;
    hub->waiting = true;
    return 0;
}

void hub_stop(struct hub *hub)
{
    atomic_store(&hub->ended, true);
    if (hub->waiting)
        pthread_join(hub->waiter, NULL);
    hub->waiting = false;
    while (hub->classes) {
        struct hub_class *class = hub->classes;
        hub->classes = class->next;
        buffer_free(&class->frame);
        free(class);
    }
    free(hub->devices);
    free(hub->sample.rows);
    annotations_stop(&hub->annotations);
    processes_stop(&hub->processes);
    hub->devices = NULL;
    hub->sample.rows = NULL;
}

void hub_moment(struct hub *hub, struct document_moment *moment) { document_moment_read(hub->tap, hub->moment.status, moment); }

/* ---- the clients ---- */

void hub_add(struct hub *hub, struct session *session)
{
    session->previous = NULL;
    session->next = hub->sessions;
    if (hub->sessions)
        hub->sessions->previous = session;
    hub->sessions = session;
    hub->session_count++;
}

void hub_remove(struct hub *hub, struct session *session)
{
    hub_leave(hub, session);
    hub_listen(hub, session, false);
    hub_watch(hub, session, false);
    if (session->previous)
        session->previous->next = session->next;
    else
        hub->sessions = session->next;
    if (session->next)
        session->next->previous = session->previous;
    hub->session_count--;
}

bool hub_join(struct hub *hub, struct session *session)
{
    hub_leave(hub, session);
    struct hub_class *class = hub->classes;
    while (class && !(class->period == session->period && class->set == session->set &&
                      memcmp(&class->devices, &session->devices, sizeof class->devices) == 0))
        class = class->next;
    if (!class) {
        class = calloc(1, sizeof *class);
        if (!class)
            return false;
        class->period = session->period;
        class->set = session->set;
        class->devices = session->devices;
        class->due_ms = hub_now_ms();
        class->next = hub->classes;
        hub->classes = class;
    }
    class->members++;
    session->class = class;
    session->sent_number = class->number;
    return true;
}

void hub_leave(struct hub *hub, struct session *session)
{
    struct hub_class *class = session->class;
    session->class = NULL;
    if (!class || --class->members > 0)
        return;
    struct hub_class **at = &hub->classes;
    while (*at != class)
        at = &(*at)->next;
    *at = class->next;
    buffer_free(&class->frame);
    free(class);
}

void hub_listen(struct hub *hub, struct session *session, bool listens)
{
    if (session->listens == listens)
        return;
    annotations_listen(&hub->annotations, listens ? 1 : -1);
    session->listens = listens;
    session->sent_list = hub->annotations.number;
    atomic_store(&hub->prompt, hub->annotations.listeners > 0);
}

void hub_watch(struct hub *hub, struct session *session, bool watches)
{
    if (session->watches == watches)
        return;
    processes_listen(&hub->processes, watches ? 1 : -1);
    session->watches = watches;
    session->sent_processes = hub->processes.number;
}

static void tell_all(struct hub *hub, unsigned wants)
{
    for (struct session *session = hub->sessions; session; session = session->next) {
        if (wants & SESSION_HELLO)
            session->seq_known = false;
        session_want(session, wants);
    }
}

/* ---- the devices ---- */

static bool grow(struct hub *hub, int count)
{
    if (count <= hub->device_count)
        return true;
    struct hub_device *devices = realloc(hub->devices, (size_t)count * sizeof *devices);
    if (!devices)
        return false;
    memset(devices + hub->device_count, 0, (size_t)(count - hub->device_count) * sizeof *devices);
    hub->devices = devices;
    struct frames_row *rows = realloc(hub->sample.rows, (size_t)count * sizeof *rows);
    if (!rows)
        return false;
    hub->sample.rows = rows;
    hub->device_count = count;
    return true;
}

static void tell_device(struct hub *hub, int device)
{
    for (struct session *session = hub->sessions; session; session = session->next) {
        if (device >= PROTOCOL_DEVICES || !protocol_wants(&session->devices, device))
            continue;
        session->changed.bits[device / 64] |= UINT64_C(1) << (device % 64);
        session_want(session, SESSION_DEVICES);
    }
}

/* True if everything but state and generation is as it was. */
static bool same_facts(const gputap_device *a, const gputap_device *b)
{
    gputap_device copy = *a;
    copy.state = b->state;
    copy.generation = b->generation;
    return memcmp(&copy, b, sizeof copy) == 0;
}

/* Looks at every device; true if clients need a new hello. */
static bool refresh_devices(struct hub *hub)
{
    bool hello = false;
    int count = gputap_device_count(hub->tap);
    if (count < 0 || !grow(hub, count))
        return false;
    hub->sample.count = 0;
    for (int i = 0; i < count; i++) {
        struct hub_device *device = &hub->devices[i];
        gputap_device facts;
        memset(&facts, 0, sizeof facts);
        facts.size = sizeof facts;
        bool present = gputap_device_info(hub->tap, i, &facts) == GPUTAP_OK;
        if (present != device->present || (present && !same_facts(&facts, &device->facts)))
            hello = true;
        else if (present && (facts.state != device->facts.state || facts.generation != device->facts.generation))
            tell_device(hub, i);
        device->present = present;
        device->facts = facts;
        if (present)
            hub->sample.rows[hub->sample.count++].device = i;
    }
    return hello;
}

/* ---- the tick ---- */

static void read_row(struct hub *hub, struct frames_row *row)
{
    row->snapshot = (gputap_snapshot)GPUTAP_SNAPSHOT_INIT;
    int result = row->device == GPUTAP_HOST ? gputap_host_latest(hub->tap, &row->snapshot)
                                            : gputap_latest(hub->tap, row->device, &row->snapshot);
    row->known = result == GPUTAP_OK;
}

static void read_sample(struct hub *hub)
{
    hub->sample.seq = hub->moment.seq;
    hub->sample.t_ms = hub->moment.t_ms;
    read_row(hub, &hub->sample.host);
    for (int i = 0; i < hub->sample.count; i++)
        read_row(hub, &hub->sample.rows[i]);
}

/* Once a second, since a metric at the edge of its range may come and go at every tick. */
static void tell_lost_metrics(struct hub *hub)
{
    for (int i = 0; i < hub->sample.count; i++) {
        const struct frames_row *row = &hub->sample.rows[i];
        struct hub_device *device = &hub->devices[row->device];
        if (!row->known)
            continue;
        if (memcmp(device->valid, row->snapshot.valid, sizeof device->valid) != 0)
            tell_device(hub, row->device);
        memcpy(device->valid, row->snapshot.valid, sizeof device->valid);
    }
}

static void publish(struct hub *hub, struct hub_class *class, bool every_tick)
{
    bool jumped = every_tick && class->seq != 0 && hub->sample.seq > class->seq + 1;
    class->broker_gap = jumped ? class->seq + 1 : 0;
    frames_write(&class->frame, &hub->sample, class->set, &class->devices);
    if (class->frame.failed)
        return;
    class->seq = hub->sample.seq;
    class->number++;
}

/* A frame is due when its period is over but for half a tick; the next is counted from when it should have been, so the mean rate
 * is right whatever the broker's period. */
static void publish_due(struct hub *hub, int64_t now_ms)
{
    int64_t tick_ms = (int64_t)(gputap_period(hub->tap) / 1000000);
    for (struct hub_class *class = hub->classes; class; class = class->next) {
        int64_t since = now_ms - class->due_ms;
        if (since < class->period - tick_ms / 2)
            continue;
        class->due_ms = since < class->period + tick_ms ? class->due_ms + class->period : now_ms;
        publish(hub, class, class->period <= tick_ms);
    }
    for (struct session *session = hub->sessions; session; session = session->next)
        if (session->class && session->class->number != session->sent_number)
            session_poke(session);
}

static void look(struct hub *hub, int64_t now_ms)
{
    struct document_moment moment;
    document_moment_read(hub->tap, gputap_status(hub->tap), &moment);
    const struct document_moment *old = &hub->moment;
    bool epoch = moment.attached != old->attached || memcmp(moment.epoch, old->epoch, sizeof moment.epoch) != 0;
    bool tick = moment.attached && (epoch || moment.seq != old->seq);
    bool check = now_ms - hub->checked_ms >= CHECK_MS;
    bool hello = epoch || ((moment.status ^ old->status) & GPUTAP_STATUS_SIMULATED);
    const char *state = document_state_text(&moment);
    hub->moment = moment;
    if (epoch || check || moment.status & (GPUTAP_STATUS_CHANGED | GPUTAP_STATUS_RESTARTED))
        hello |= refresh_devices(hub);
    if (epoch)
        for (struct hub_class *class = hub->classes; class; class = class->next)
            class->seq = 0;
    if (hello)
        tell_all(hub, SESSION_HELLO | SESSION_SNAP);
    else if (strcmp(state, hub->state) != 0)
        tell_all(hub, SESSION_STATE);
    hub->state = state;
    if (tick) {
        read_sample(hub);
        if (check)
            tell_lost_metrics(hub);
        publish_due(hub, now_ms);
    }
    if (!check)
        return;
    hub->checked_ms = now_ms;
    for (struct session *session = hub->sessions; session; session = session->next)
        session_check(session, now_ms);
}

/* The broker samples as fast as the fastest client wants it, never under the 100 ms that the protocol knows; slower again when
 * that one has gone. */
static void ask_for_period(struct hub *hub)
{
    int fastest = 0;
    for (const struct hub_class *class = hub->classes; class; class = class->next)
        if (fastest == 0 || class->period < fastest)
            fastest = class->period;
    if (fastest != hub->asked_period && gputap_request_period(hub->tap, fastest) == GPUTAP_OK)
        hub->asked_period = fastest;
    (void)gputap_poll(hub->tap); /* the wish is told to the next broker, too */
}

void hub_update(struct hub *hub)
{
    int64_t now_ms = hub_now_ms();
    ask_for_period(hub);
    /* What a session says between two ticks is no reason to read all samples. */
    if (gputap_tick(hub->tap) != hub->moment.seq || now_ms - hub->looked_ms >= LOOK_MS) {
        hub->looked_ms = now_ms;
        look(hub, now_ms);
    }
    bool news = annotations_update(&hub->annotations, now_ms);
    atomic_store(&hub->hurry, hub->annotations.backlog);
    for (struct session *session = hub->sessions; news && session; session = session->next)
        if (session->listens)
            session_poke(session);
    news = processes_update(&hub->processes, now_ms);
    for (struct session *session = hub->sessions; news && session; session = session->next)
        if (session->watches)
            session_poke(session);
}
