#include "bridge/session.h"

#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/bridge.h"

static bool hears(const struct session *session)
{
    const struct annotations *annotations = &session->bridge->hub.annotations;
    return session->listens &&
           (session->sent_list != annotations->number || event_log_behind(&annotations->log, &session->events_sent));
}

static bool sees(const struct session *session)
{
    return session->watches && session->sent_processes != session->bridge->hub.processes.number;
}

static bool has_more(const struct session *session)
{
    return session_wants_now(session) || session->pong_count > 0 || session->close_code || session->bridge->stopping ||
           (session->class && session->class->number != session->sent_number) || hears(session) || sees(session);
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
    if (session_wants_now(session))
        session_poke(session);
}

void session_open(struct session *session, struct bridge *bridge, struct lws *wsi)
{
    *session = (struct session){.wsi = wsi,
                                .bridge = bridge,
                                .open = true,
                                .events = true,
                                .set = DOCUMENT_CAPSULE,
                                .period = PROTOCOL_PERIOD_DEFAULT,
                                .devices = protocol_all_devices};
    protocol_rate_begin(&session->rate, hub_now_ms());
    hub_add(&bridge->hub, session);
    hub_join(&bridge->hub, session);
    hub_listen(&bridge->hub, session, true);
    event_log_newest(&bridge->hub.annotations.log, &session->events_sent);
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
        hub_listen(&session->bridge->hub, session, false);
        hub_watch(&session->bridge->hub, session, false);
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
    if (message->events && !session->events)
        event_log_newest(&session->bridge->hub.annotations.log, &session->events_sent);
    session->events = message->events;
    session->processes = message->processes;
    hub_listen(&session->bridge->hub, session, session->events && !session->paused);
    hub_watch(&session->bridge->hub, session, session->processes && !session->paused);
    if (!session->paused && !hub_join(&session->bridge->hub, session))
        refuse(session, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "memory", "out of memory");
    session_want(session, SESSION_HELLO | SESSION_SNAP);
}

static void resume(struct session *session)
{
    session->paused = false;
    if (!hub_join(&session->bridge->hub, session))
        refuse(session, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "memory", "out of memory");
    hub_listen(&session->bridge->hub, session, session->events);
    hub_watch(&session->bridge->hub, session, session->processes);
    session_want(session, SESSION_GAP | SESSION_EVENT_GAP | SESSION_SNAP);
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
        hub_listen(&session->bridge->hub, session, false);
        hub_watch(&session->bridge->hub, session, false);
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

/* ---- when there is room ---- */

static int end(struct session *session, int code, const char *reason)
{
    char text[32];
    snprintf(text, sizeof text, "%s", reason);
    lws_close_reason(session->wsi, (enum lws_close_status)code, (unsigned char *)text, strlen(text));
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
        result = session_send_bye(session);
    } else {
        result = session_send_next(session);
    }
    if (result < 0)
        return -1;
    if (has_more(session))
        session_poke(session);
    return 0;
}
