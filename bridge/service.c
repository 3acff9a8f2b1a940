/* The service loop: libwebsockets' callbacks, handed on to the parts. */
#include <libwebsockets.h>
#include <string.h>
#include <unistd.h>

#include "bridge/bridge.h"
#include "bridge/http.h"
#include "bridge/log.h"
#include "bridge/own_user.h"

#define MOST_ACCEPTS 64

static struct lws *adopt_file(struct bridge *bridge, int fd, void *opaque)
{
    lws_adopt_desc_t adoption = {
        .vh = bridge->vhost, .type = LWS_ADOPT_RAW_FILE_DESC, .vh_prot_name = PROTOCOL_NAME, .opaque = opaque};
    adoption.fd.filefd = fd;
    return lws_adopt_descriptor_vhost_via_info(&adoption);
}

static void accept_all(struct bridge *bridge, const struct listener *listener)
{
    bool again = true;
    for (int i = 0; i < MOST_ACCEPTS && again; i++) {
        struct peer *peer = peers_accept(&bridge->peers, listener, &again);
        if (!peer)
            continue;
        lws_adopt_desc_t adoption = {.vh = bridge->vhost, .type = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP, .opaque = peer};
        adoption.fd.sockfd = peer->fd;
        /* A failure has closed the socket; whether WSI_DESTROY came with it or not, the place is free. */
        if (!lws_adopt_descriptor_vhost_via_info(&adoption))
            peers_release(&bridge->peers, peer);
    }
}

static void begin_stop(struct bridge *bridge)
{
    char byte;
    if (read(bridge->stop_fd, &byte, 1) <= 0 || bridge->stopping)
        return;
    bridge->stopping = true;
    bridge->stop_ms = hub_now_ms();
    for (struct session *session = bridge->hub.sessions; session; session = session->next)
        session_poke(session);
}

static int serve_file(struct bridge *bridge, struct lws *wsi)
{
    void *opaque = lws_get_opaque_user_data(wsi);
    if (opaque == &bridge->stop_fd)
        begin_stop(bridge);
    else
        accept_all(bridge, opaque);
    return 0;
}

static void release_peer(struct bridge *bridge, struct lws *wsi)
{
    char *opaque = lws_get_opaque_user_data(wsi), *first = (char *)bridge->peers.item;
    if (opaque >= first && opaque < (char *)(bridge->peers.item + bridge->peers.total))
        peers_release(&bridge->peers, (struct peer *)(void *)opaque);
    if (wsi == bridge->socket_wsi)
        bridge->socket_wsi = NULL;
}

/* bridge.sock follows its folder: it comes when a broker first makes the folder, again when the folder was swept, and elsewhere
 * when a broker starts in another of the reader's places. */
static void tend_socket(struct bridge *bridge)
{
    static int64_t tried_ms;
    char folder[1100], before[sizeof bridge->socket.why];
    int64_t now_ms = hub_now_ms();
    if (bridge->stopping || (tried_ms && now_ms - tried_ms < 1000))
        return;
    bool first = tried_ms == 0;
    tried_ms = now_ms;
    if (gputap_directory(bridge->tap, folder, sizeof folder) < 0 || instance_socket_intact(&bridge->socket, folder))
        return;
    if (bridge->socket_wsi)
        lws_set_timeout(bridge->socket_wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
    bridge->socket_wsi = NULL;
    instance_socket_close(&bridge->socket, true);
    memcpy(before, bridge->socket.why, sizeof before);
    if (!instance_socket_open(&bridge->socket, folder)) {
        if (bridge->socket.why[0] && (first || strcmp(before, bridge->socket.why) != 0))
            log_line(LOG_LEVEL_INFO, "no bridge.sock (the address for this user's own programs) for now, only TCP: %s",
                     bridge->socket.why);
        return;
    }
    bridge->socket_listener = (struct listener){.fd = bridge->socket.fd, .local = {.local_socket = true}};
    bridge->socket_wsi = adopt_file(bridge, bridge->socket.fd, &bridge->socket_listener);
    log_line(LOG_LEVEL_INFO, "listening on %s", bridge->socket.path);
}

static void wake(struct bridge *bridge)
{
    if (!bridge->stopping)
        hub_update(&bridge->hub);
    tend_socket(bridge);
}

static int serve(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
    struct lws_context *context = lws_get_context(wsi);
    struct bridge *bridge = context ? lws_context_user(context) : NULL;
    struct session *session = user;
    if (!bridge) /* the context is still being made, or gone */
        return 0;
    switch (reason) {
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        if (bridge->vhost)
            wake(bridge);
        return 0;
    case LWS_CALLBACK_RAW_RX_FILE: return serve_file(bridge, wsi);
    case LWS_CALLBACK_RAW_ADOPT:
    case LWS_CALLBACK_RAW_RX:
    case LWS_CALLBACK_RAW_WRITEABLE: return -1; /* CONNECT turns a connection into a raw one */
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: return http_confirm_upgrade(bridge, wsi);
    case LWS_CALLBACK_HTTP: return http_answer(bridge, wsi);
    case LWS_CALLBACK_HTTP_BODY:
    case LWS_CALLBACK_HTTP_BODY_COMPLETION: return -1;
    case LWS_CALLBACK_ESTABLISHED:
        ((struct peer *)lws_get_opaque_user_data(wsi))->websocket = true;
        session_open(session, bridge, wsi);
        return 0;
    case LWS_CALLBACK_RECEIVE: return session_receive(session, in, length);
    case LWS_CALLBACK_SERVER_WRITEABLE: return session_write(session);
    case LWS_CALLBACK_WS_SERVER_DROP_PROTOCOL:
    case LWS_CALLBACK_CLOSED:
        if (session)
            session_close(session);
        return 0;
    case LWS_CALLBACK_WSI_DESTROY: release_peer(bridge, wsi); return 0;
    default: return 0;
    }
}

static const lws_retry_bo_t liveness = {.secs_since_valid_ping = 20, .secs_since_valid_hangup = 30};

static const struct lws_protocols protocols[] = {{.name = PROTOCOL_NAME,
                                                  .callback = serve,
                                                  .per_session_data_size = sizeof(struct session),
                                                  .rx_buffer_size = DOCUMENT_MAX_MESSAGE,
                                                  .tx_packet_size = 65536},
                                                 {0}};

static bool create(struct bridge *bridge)
{
    /* One name of a sub-protocol only, since a client may choose any that is here. No extensions: permessage-deflate would cost
     * five times the CPU of a frame. IPv6 is off for sockets that libwebsockets opens; ours are adopted. */
    struct lws_context_creation_info info = {.port = CONTEXT_PORT_NO_LISTEN_SERVER,
                                             .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DISABLE_IPV6 |
                                                        LWS_SERVER_OPTION_VALIDATE_UTF8 |
                                                        LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME,
                                             .protocols = protocols,
                                             .max_http_header_data = 16384,
                                             .keepalive_timeout = 5,
                                             .retry_and_idle_policy = &liveness,
                                             .vhost_name = "gputap",
                                             .user = bridge};
    lws_set_log_level(LLL_ERR, log_from_lws);
    bridge->context = lws_create_context(&info);
    if (bridge->context)
        bridge->vhost = lws_create_vhost(bridge->context, &info);
    return bridge->vhost != NULL;
}

static void wake_loop(void *context) { lws_cancel_service(((struct bridge *)context)->context); }

/* A closed session's connection lives on until the close frame is out and answered. */
static bool done(const struct bridge *bridge)
{
    if (!bridge->stopping)
        return false;
    bool any = false;
    for (int i = 0; i < bridge->peers.total; i++)
        any |= bridge->peers.item[i].used && bridge->peers.item[i].websocket;
    return !any || hub_now_ms() - bridge->stop_ms > BRIDGE_FAREWELL_MS;
}

int bridge_run(struct bridge *bridge)
{
    int code = 1;
    struct hub_config hub = {
        .tap = bridge->tap, .show_all = bridge->options.show_all, .uid = own_user(), .wake = wake_loop, .wake_context = bridge};
    if (!create(bridge)) {
        log_line(LOG_LEVEL_ERROR, "cannot start libwebsockets %s", lws_get_library_version());
    } else if (hub_start(&bridge->hub, &hub) != 0) {
        log_line(LOG_LEVEL_ERROR, "cannot start a thread");
    } else {
        adopt_file(bridge, bridge->stop_fd, &bridge->stop_fd);
        for (int i = 0; i < bridge->listeners.count; i++)
            adopt_file(bridge, bridge->listeners.item[i].fd, &bridge->listeners.item[i]);
        tend_socket(bridge);
        listeners_print(&bridge->listeners);
        while (!done(bridge) && lws_service(bridge->context, 0) >= 0)
            ;
        code = 0;
    }
    atomic_store(&bridge->hub.ended, true);
    if (bridge->hub.waiting)
        pthread_join(bridge->hub.waiter, NULL);
    bridge->hub.waiting = false;
    instance_socket_close(&bridge->socket, true);
    if (bridge->context)
        lws_context_destroy(bridge->context);
    hub_stop(&bridge->hub);
    return code;
}
