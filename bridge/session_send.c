/* The messages to a client, one a call. */
#include "bridge/session.h"

#include <libwebsockets.h>
#include <string.h>

#include "bridge/bridge.h"

_Static_assert(BUFFER_HEADROOM >= LWS_PRE, "libwebsockets writes its header in front of the text");

/* What may still be sent to a client that paused: answers to what it asked for itself. */
#define WHILE_PAUSED (SESSION_HISTORY | SESSION_ERR)

unsigned session_wants_now(const struct session *session)
{
    return session->paused ? session->wants & WHILE_PAUSED : session->wants;
}

static int send_buffer(struct session *session, const struct buffer *buffer)
{
    if (buffer->failed)
        return -1;
    return lws_write(session->wsi, buffer_data(buffer), buffer->length, LWS_WRITE_TEXT) < 0 ? -1 : 0;
}

static int send_scratch(struct session *session)
{
    int result = send_buffer(session, &session->bridge->scratch);
    /* One long message must not be paid for ever after. */
    if (session->bridge->scratch.capacity > 1 << 18)
        buffer_free(&session->bridge->scratch);
    return result;
}

static struct buffer *scratch(struct session *session)
{
    buffer_clear(&session->bridge->scratch);
    return &session->bridge->scratch;
}

static int send_hello(struct session *session)
{
    struct document_moment moment;
    hub_moment(&session->bridge->hub, &moment);
    session->wants &= ~(unsigned)SESSION_STATE;
    session->changed = (struct protocol_devices){{0}};
    buffer_json(scratch(session), document_hello(session->bridge->tap, &moment, session->set, session->period));
    return send_scratch(session);
}

/* What clients hear of sessions from here on begins with this. */
static bool put_sessions(struct session *session, json_t *snap)
{
    if (!session->listens)
        return true;
    session->sent_list = session->bridge->hub.annotations.number;
    return annotations_put(&session->bridge->hub.annotations, snap) == 0;
}

static bool put_processes(struct session *session, json_t *snap)
{
    if (!session->watches)
        return true;
    session->sent_processes = session->bridge->hub.processes.number;
    return processes_put(&session->bridge->hub.processes, snap) == 0;
}

static int send_snap(struct session *session)
{
    struct document_moment moment;
    hub_moment(&session->bridge->hub, &moment);
    json_t *snap = json_object(), *document = document_snapshot_at(session->bridge->tap, &moment);
    bool failed = json_object_set_new(snap, "type", json_string("snap")) != 0 ||
                  json_object_set_new(snap, "seq", json_integer((json_int_t)moment.seq)) != 0 ||
                  json_object_update(snap, document) != 0 || !put_sessions(session, snap) || !put_processes(session, snap);
    json_decref(document);
    buffer_json(scratch(session), snap);
    session->sent_seq = moment.seq;
    session->seq_known = moment.attached;
    if (session->class)
        session->sent_number = session->class->number;
    return failed ? -1 : send_scratch(session);
}

static int send_gap(struct session *session, uint64_t to, const char *why)
{
    buffer_format(scratch(session), "{\"type\":\"gap\",\"from\":%llu,\"to\":%llu,\"why\":\"%s\"}",
                  (unsigned long long)session->sent_seq + 1, (unsigned long long)to, why);
    session->sent_seq = to;
    return send_scratch(session);
}

static int send_event_gap(struct session *session, uint64_t events, const char *why)
{
    buffer_format(scratch(session), "{\"type\":\"gap\",\"events\":%llu,\"why\":\"%s\"}", (unsigned long long)events, why);
    return send_scratch(session);
}

/* What was said while the client paused; it is not told that now. 1: nothing. */
static int send_paused_events(struct session *session)
{
    const struct event_log *log = &session->bridge->hub.annotations.log;
    uint64_t missed = log->events - session->events_sent.event;
    event_log_newest(log, &session->events_sent);
    return session->events && missed > 0 ? send_event_gap(session, missed, "paused") : 1;
}

static int send_state(struct session *session)
{
    const struct hub *hub = &session->bridge->hub;
    struct document_moment moment;
    hub_moment(&session->bridge->hub, &moment);
    struct buffer *out = scratch(session);
    buffer_format(out, "{\"type\":\"state\",\"t\":%lld,\"state\":\"%s\",\"age_ms\":", (long long)document_now_ms(), hub->state);
    if (moment.age_ms < 0)
        buffer_text(out, "null}");
    else
        buffer_format(out, "%lld}", (long long)moment.age_ms);
    return send_scratch(session);
}

/* Takes the next changed device off the list; -1 at its end. */
static int next_changed(struct session *session)
{
    for (int device = 0; device < PROTOCOL_DEVICES; device++)
        if (protocol_wants(&session->changed, device)) {
            session->changed.bits[device / 64] &= ~(UINT64_C(1) << (device % 64));
            return device;
        }
    return -1;
}

/* 1: nothing was left to send. */
static int send_device(struct session *session)
{
    gputap_device facts = GPUTAP_DEVICE_INIT;
    int device = next_changed(session);
    if (device < 0) {
        session->wants &= ~(unsigned)SESSION_DEVICES;
        return 1;
    }
    if (gputap_device_info(session->bridge->tap, device, &facts) != GPUTAP_OK)
        facts.state = GPUTAP_DEVICE_GONE;
    struct buffer *out = scratch(session);
    buffer_format(out, "{\"type\":\"device\",\"t\":%lld,\"index\":%d,\"state\":\"%s\",\"generation\":%u,\"unknown\":",
                  (long long)document_now_ms(), device, gputap_state_text((int)facts.state), (unsigned)facts.generation);
    buffer_json(out, document_unknown(session->bridge->tap, device));
    buffer_put(out, "}", 1);
    return send_scratch(session);
}

/* The host first, then each device that the client gets and that there is; one message a call. */
static int send_history(struct session *session)
{
    gputap_device facts = GPUTAP_DEVICE_INIT;
    int device = session->history_device, count = session->set == DOCUMENT_HOST ? 0 : gputap_device_count(session->bridge->tap);
    int next = device + 1;
    while (next < count &&
           (!protocol_wants(&session->devices, next) || gputap_device_info(session->bridge->tap, next, &facts) != GPUTAP_OK))
        next++;
    session->history_device = next;
    if (next >= count)
        session->wants &= ~(unsigned)SESSION_HISTORY;
    buffer_json(scratch(session),
                document_history(session->bridge->tap, device, session->set, session->history_seconds, session->history_points));
    return send_scratch(session);
}

static int send_err(struct session *session)
{
    buffer_format(scratch(session), "{\"type\":\"err\",\"code\":\"%s\",\"text\":\"%s\"}", session->err_code, session->err_text);
    return send_scratch(session);
}

static int send_pong(struct session *session)
{
    buffer_format(scratch(session), "{\"type\":\"pong\",\"id\":%lld,\"t\":%lld}", (long long)session->pongs[0],
                  (long long)document_now_ms());
    memmove(session->pongs, session->pongs + 1, sizeof session->pongs[0] * (size_t)(--session->pong_count));
    return send_scratch(session);
}

/* The newest frame of its class; before it the news of what was left out. */
static int send_frame(struct session *session)
{
    const struct hub_class *class = session->class;
    bool missed = class->number - session->sent_number > 1, told = session->seq_known && class->seq > session->sent_seq + 1;
    if (missed && told) {
        session->sent_number = class->number - 1;
        return send_gap(session, class->seq - 1, "slow");
    }
    if (class->broker_gap && told && session->sent_seq + 1 == class->broker_gap)
        return send_gap(session, class->seq - 1, "broker");
    session->sent_number = class->number;
    if (session->seq_known && class->seq <= session->sent_seq)
        return 1;
    session->sent_seq = class->seq;
    session->seq_known = true;
    return send_buffer(session, &class->frame);
}

/* ---- what goes on by itself: 1 there is nothing new ---- */

static int send_samples(struct session *session)
{
    const struct hub_class *class = session->class;
    return class && class->number != session->sent_number && class->frame.length > 0 ? send_frame(session) : 1;
}

/* The newest list; those before it are of no use any more. */
static int send_list(struct session *session)
{
    const struct annotations *annotations = &session->bridge->hub.annotations;
    if (!session->listens || session->sent_list == annotations->number)
        return 1;
    session->sent_list = annotations->number;
    return send_buffer(session, &annotations->list);
}

static int send_events(struct session *session)
{
    const struct event_log *log = &session->bridge->hub.annotations.log;
    if (!session->listens)
        return 1;
    uint64_t missed = event_log_missed(log, &session->events_sent);
    if (missed > 0)
        return send_event_gap(session, missed, "slow");
    const struct buffer *batch = event_log_take(log, &session->events_sent);
    return batch ? send_buffer(session, batch) : 1;
}

/* As it is now; what it was meanwhile is of no use. */
static int send_processes(struct session *session)
{
    const struct processes *processes = &session->bridge->hub.processes;
    if (!session->watches || session->sent_processes == processes->number)
        return 1;
    session->sent_processes = processes->number;
    return send_buffer(session, &processes->message);
}

/* In turns, so that on a slow connection none of them shuts out the others. */
static int send_stream(struct session *session)
{
    static int (*const streams[])(struct session *) = {send_samples, send_list, send_events, send_processes};
    const int count = (int)(sizeof streams / sizeof streams[0]);
    for (int i = 0; i < count; i++) {
        int stream = (session->turn + i) % count, result = streams[stream](session);
        if (result <= 0) {
            session->turn = (stream + 1) % count;
            return result;
        }
    }
    return 1;
}

static bool take(struct session *session, unsigned want)
{
    if (!(session_wants_now(session) & want))
        return false;
    session->wants &= ~want;
    return true;
}

int session_send_next(struct session *session)
{
    if (take(session, SESSION_ERR))
        return send_err(session);
    if (take(session, SESSION_HELLO))
        return send_hello(session);
    if (take(session, SESSION_GAP)) {
        struct document_moment moment;
        hub_moment(&session->bridge->hub, &moment);
        if (session->seq_known && moment.seq > session->sent_seq)
            return send_gap(session, moment.seq, "paused");
    }
    if (take(session, SESSION_EVENT_GAP)) {
        int result = send_paused_events(session);
        if (result <= 0)
            return result;
    }
    if (take(session, SESSION_SNAP))
        return send_snap(session);
    if (take(session, SESSION_STATE))
        return send_state(session);
    if (session_wants_now(session) & SESSION_DEVICES && send_device(session) <= 0)
        return 0;
    if (session->pong_count > 0)
        return send_pong(session);
    int result = send_stream(session);
    if (result <= 0)
        return result;
    if (session_wants_now(session) & SESSION_HISTORY)
        return send_history(session);
    return 1;
}

int session_send_bye(struct session *session)
{
    buffer_format(scratch(session), "{\"type\":\"bye\",\"code\":\"shutdown\",\"retry_ms\":%d}", PROTOCOL_RETRY_MS);
    return send_scratch(session);
}
