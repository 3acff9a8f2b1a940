#include "bridge/session.h"

#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/bridge.h"

_Static_assert(BUFFER_HEADROOM >= LWS_PRE, "libwebsockets writes its header in front of the text");

/* What may still be sent to a client that paused: answers to what it asked for itself. */
#define WHILE_PAUSED (SESSION_HISTORY | SESSION_ERR)

static unsigned wants_now(const struct session *session)
{
    return session->paused ? session->wants & WHILE_PAUSED : session->wants;
}

static bool has_more(const struct session *session)
{
    return wants_now(session) || session->pong_count > 0 || session->close_code || session->bridge->stopping ||
           (session->class && session->class->number != session->sent_number);
}

void session_poke(struct session *session)
{
    if (session->asked_ms)
        return;
    session->asked_ms = hub_now_ms();
    lws_callback_on_writable(session->wsi);
}

void session_want(struct session *session, unsigned wants)
{
    session->wants |= wants;
    if (wants_now(session))
        session_poke(session);
}

void session_open(struct session *session, struct bridge *bridge, struct lws *wsi)
{
    *session = (struct session){.wsi = wsi,
                                .bridge = bridge,
                                .open = true,
                                .set = DOCUMENT_CAPSULE,
                                .period = PROTOCOL_PERIOD_DEFAULT,
                                .devices = protocol_all_devices};
    protocol_rate_begin(&session->rate, hub_now_ms());
    hub_add(&bridge->hub, session);
    hub_join(&bridge->hub, session);
    session_want(session, SESSION_HELLO | SESSION_SNAP);
}

void session_close(struct session *session)
{
    if (!session->open)
        return;
    session->open = false;
    hub_remove(&session->bridge->hub, session);
    free(session->partial);
    session->partial = NULL;
}

void session_check(struct session *session, int64_t now_ms)
{
    bool stalled = session->asked_ms && now_ms - session->asked_ms >= SESSION_STALL_MS;
    bool lingers = session->close_code && now_ms - session->close_ms >= SESSION_CLOSING_MS;
    if (stalled || lingers)
        lws_set_timeout(session->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
}

/* ---- what comes in ---- */

static void refuse(struct session *session, int close_code, const char *code, const char *text)
{
    session->err_code = code;
    session->err_text = text;
    if (close_code) {
        session->close_code = close_code;
        session->close_ms = hub_now_ms();
        hub_leave(&session->bridge->hub, session);
        session->wants = 0;
        session->pong_count = 0;
    }
    session_want(session, SESSION_ERR);
}

static void subscribe(struct session *session, const struct protocol_message *message)
{
    session->set = message->set;
    session->period = message->period;
    session->devices = message->devices;
    if (!session->paused && !hub_join(&session->bridge->hub, session))
        refuse(session, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "memory", "out of memory");
    session_want(session, SESSION_HELLO | SESSION_SNAP);
}

static void resume(struct session *session)
{
    session->paused = false;
    if (!hub_join(&session->bridge->hub, session))
        refuse(session, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "memory", "out of memory");
    session_want(session, SESSION_GAP | SESSION_SNAP);
}

static void pong(struct session *session, int64_t id)
{
    if (session->pong_count == SESSION_PONGS)
        memmove(session->pongs, session->pongs + 1, sizeof session->pongs[0] * (size_t)(--session->pong_count));
    session->pongs[session->pong_count++] = id;
    session_poke(session);
}

static void obey(struct session *session, const void *bytes, size_t length)
{
    struct protocol_message message;
    protocol_parse(bytes, length, &message);
    switch (message.kind) {
    case PROTOCOL_SUB: subscribe(session, &message); break;
    case PROTOCOL_PAUSE:
        session->paused = true;
        hub_leave(&session->bridge->hub, session);
        break;
    case PROTOCOL_RESUME: resume(session); break;
    case PROTOCOL_HISTORY:
        session->history_device = GPUTAP_HOST;
        session->history_seconds = message.seconds;
        session->history_points = message.points;
        session_want(session, SESSION_HISTORY);
        break;
    case PROTOCOL_PING: pong(session, message.id); break;
    case PROTOCOL_BAD: refuse(session, 0, "bad_message", message.text); break;
    case PROTOCOL_GARBAGE: refuse(session, LWS_CLOSE_STATUS_INVALID_PAYLOAD, "garbage", message.text); break;
    case PROTOCOL_IGNORED: break;
    }
}

/* False when memory ran out. Nearly every message comes in one piece and is read where it lies. */
static bool keep(struct session *session, const void *bytes, size_t length)
{
    if (!session->partial)
        session->partial = malloc(DOCUMENT_MAX_MESSAGE);
    if (!session->partial)
        return false;
    if (length > 0)
        memcpy(session->partial + session->received, bytes, length);
    session->received += length;
    return true;
}

int session_receive(struct session *session, const void *bytes, size_t length)
{
    struct lws *wsi = session->wsi;
    bool begins = lws_is_first_fragment(wsi) && session->received == 0;
    bool ends = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
    if (!session->open || session->close_code)
        return 0;
    if (!protocol_rate_take(&session->rate, hub_now_ms(), begins || ends)) {
        refuse(session, LWS_CLOSE_STATUS_POLICY_VIOLATION, "rate", "more than 20 messages a second");
    } else if (lws_frame_is_binary(wsi)) {
        refuse(session, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, "binary", "only text is understood");
    } else if (session->received + length + lws_remaining_packet_payload(wsi) > DOCUMENT_MAX_MESSAGE) {
        refuse(session, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "too_large", "more than 4096 bytes");
    } else if (begins && ends) {
        obey(session, bytes, length);
    } else if (!keep(session, bytes, length)) {
        return -1;
    } else if (ends) {
        obey(session, session->partial, session->received);
        free(session->partial);
        session->partial = NULL;
        session->received = 0;
    }
    return 0;
}

/* ---- what goes out ---- */

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

static int send_snap(struct session *session)
{
    struct document_moment moment;
    hub_moment(&session->bridge->hub, &moment);
    json_t *snap = json_object(), *document = document_snapshot_at(session->bridge->tap, &moment);
    bool failed = json_object_set_new(snap, "type", json_string("snap")) != 0 ||
                  json_object_set_new(snap, "seq", json_integer((json_int_t)moment.seq)) != 0 ||
                  json_object_update(snap, document) != 0;
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

static bool take(struct session *session, unsigned want)
{
    if (!(wants_now(session) & want))
        return false;
    session->wants &= ~want;
    return true;
}

/* One message. 0 sent, 1 there was nothing to send after all, -1 failed. */
static int send_next(struct session *session)
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
    if (take(session, SESSION_SNAP))
        return send_snap(session);
    if (take(session, SESSION_STATE))
        return send_state(session);
    if (wants_now(session) & SESSION_DEVICES && send_device(session) <= 0)
        return 0;
    if (session->pong_count > 0)
        return send_pong(session);
    if (session->class && session->class->number != session->sent_number && session->class->frame.length > 0) {
        int result = send_frame(session);
        if (result <= 0)
            return result;
    }
    if (wants_now(session) & SESSION_HISTORY)
        return send_history(session);
    return 1;
}

static int end(struct session *session, int code, const char *reason)
{
    unsigned char text[32];
    size_t length = strlen(reason);
    memcpy(text, reason, length);
    lws_close_reason(session->wsi, (enum lws_close_status)code, text, length);
    return -1;
}

int session_write(struct session *session)
{
    int result;
    if (!session->open)
        return 0;
    session->asked_ms = 0;
    if (session->close_code && !(session->wants & SESSION_ERR))
        return end(session, session->close_code, session->err_code);
    if (session->bridge->stopping && session->bye_sent)
        return end(session, LWS_CLOSE_STATUS_GOINGAWAY, "shutdown");
    if (session->bridge->stopping) {
        session->bye_sent = true;
        buffer_format(scratch(session), "{\"type\":\"bye\",\"code\":\"shutdown\",\"retry_ms\":%d}", PROTOCOL_RETRY_MS);
        result = send_scratch(session);
    } else {
        result = send_next(session);
    }
    if (result < 0)
        return -1;
    if (has_more(session))
        session_poke(session);
    return 0;
}
