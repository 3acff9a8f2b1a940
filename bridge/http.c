#include "bridge/http.h"

#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bridge/routes.h"

static const char *status_text(int status)
{
    switch (status) {
    case 200: return "OK";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 426: return "Upgrade Required";
    case 431: return "Request Header Fields Too Large";
    default: return "Service Unavailable";
    }
}

static void write_head(struct buffer *out, const struct request *request, const struct reply *reply)
{
    buffer_format(out, "HTTP/1.1 %d %s\r\nServer: gputap\r\n", reply->status, status_text(reply->status));
    if (reply->type)
        buffer_format(out, "Content-Type: %s\r\nContent-Length: %zu\r\n", reply->type, reply->length);
    else if (reply->status != 304)
        buffer_text(out, "Content-Length: 0\r\n");
    if (reply->gzip && reply->type)
        buffer_text(out, "Content-Encoding: gzip\r\n");
    if (reply->etag[0])
        buffer_format(out, "ETag: %s\r\n", reply->etag);
    buffer_format(out, "Cache-Control: %s\r\n", reply->revalidate ? "no-cache" : "no-store");
    buffer_format(out, "Vary: %s\r\n", reply->varies ? "Origin, Accept-Encoding" : "Origin");
    if (reply->cors)
        buffer_format(out, "Access-Control-Allow-Origin: %s\r\n", request->origin);
    buffer_text(
        out, "X-Content-Type-Options: nosniff\r\n"
             "Content-Security-Policy: default-src 'self'; connect-src 'self' ws: wss:; frame-ancestors 'self'; base-uri 'none'\r\n"
             "Referrer-Policy: no-referrer\r\n");
    if (!reply->cors)
        buffer_text(out, "Cross-Origin-Resource-Policy: same-origin\r\n");
    if (reply->extra)
        buffer_text(out, reply->extra);
    if (reply->last)
        buffer_text(out, "Connection: close\r\n");
    buffer_text(out, "\r\n");
}

/* Head and body go out in one write; what the socket does not take, libwebsockets keeps and sends later. */
static int write_reply(struct bridge *bridge, struct lws *wsi, const struct request *request, struct reply *reply)
{
    struct buffer *out = &bridge->scratch;
    buffer_clear(out);
    write_head(out, request, reply);
    if (reply->type && request->method != REQUEST_HEAD)
        buffer_put(out, reply->body, reply->length);
    free(reply->owned);
    reply->owned = NULL;
    return out->failed || lws_write(wsi, buffer_data(out), out->length, LWS_WRITE_HTTP_HEADERS) < 0 ? -1 : 0;
}

static const struct guard_local *local_of(struct lws *wsi)
{
    const struct peer *peer = lws_get_opaque_user_data(wsi);
    return &peer->local;
}

int http_answer(struct bridge *bridge, struct lws *wsi)
{
    struct request request;
    struct reply reply = {0};
    request_read(wsi, &request);
    routes_answer(bridge, local_of(wsi), &request, &reply);
    if (write_reply(bridge, wsi, &request, &reply) != 0 || reply.last)
        return -1;
    return lws_http_transaction_completed(wsi) ? -1 : 0;
}

/* Before 4.3.7 libwebsockets comes here after it has freed the request's headers, if the upgrade was to something unknown
 * (CVE-2025-11677). So the first thing is a look that tells, and the argument that comes with the call is never read. */
int http_confirm_upgrade(struct bridge *bridge, struct lws *wsi)
{
    char upgrade[16];
    struct request request;
    struct reply reply = {0};
    if (lws_hdr_copy(wsi, upgrade, sizeof upgrade, WSI_TOKEN_UPGRADE) <= 0 || strcasecmp(upgrade, "websocket") != 0)
        return -1;
    request_read(wsi, &request);
    if (routes_may_upgrade(bridge, local_of(wsi), &request, &reply))
        return 0;
    write_reply(bridge, wsi, &request, &reply);
    return -1;
}
