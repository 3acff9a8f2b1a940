#include "bridge/routes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/assets.h"
#include "bridge/mime.h"

static const char json_media[] = "application/json; charset=utf-8";

static void reply_document(struct reply *reply, int status, json_t *document)
{
    char *text = document_print(document);
    json_decref(document);
    *reply = (struct reply){.status = status, .type = json_media, .body = (unsigned char *)text, .owned = text};
    if (text)
        reply->length = strlen(text);
    else
        *reply = (struct reply){.status = 503, .last = true};
}

void reply_error(struct reply *reply, int status, const char *text)
{
    reply_document(reply, status, json_pack("{s:s}", "error", text));
}

/* ---- who may ask ---- */

static bool may_ask(struct bridge *bridge, const struct guard_local *local, const struct request *request, struct reply *reply)
{
    if (request->too_long)
        reply_error(reply, 431, "a header is too long");
    else if (!request->host[0])
        reply_error(reply, 400, "Host is missing");
    else if (!guard_host_ok(&bridge->rules, local, request->host))
        reply_error(reply, 403, "this Host is not ours (--allow-host NAME)");
    else if (!guard_origin_ok(&bridge->rules, local, request->origin))
        reply_error(reply, 403, "this Origin may not connect (--allow-origin URL)");
    else
        return true;
    reply->last = true;
    return false;
}

static bool has_token(struct bridge *bridge, const struct request *request, struct reply *reply)
{
    if (guard_token_ok(&bridge->rules, request->authorization, request->protocols))
        return true;
    reply_error(reply, 401, "a token is needed");
    reply->extra = "WWW-Authenticate: Bearer\r\n";
    return false;
}

bool routes_may_upgrade(struct bridge *bridge, const struct guard_local *local, const struct request *request, struct reply *reply)
{
    if (!may_ask(bridge, local, request, reply))
        return false;
    if (request->method != REQUEST_GET) {
        reply_error(reply, 405, "only GET upgrades");
        reply->extra = "Allow: GET, HEAD\r\n";
    } else if (strcmp(request->path, "/ws") != 0) {
        reply_error(reply, 404, "no such path");
    } else if (request->has_body) {
        reply_error(reply, 400, "a body is not wanted");
    } else if (strcmp(request->version, "13") != 0) {
        reply_error(reply, 426, "WebSocket version 13 is wanted");
        reply->extra = "Sec-WebSocket-Version: 13\r\n";
    } else if (!guard_protocol_offered(request->protocols, PROTOCOL_NAME)) {
        reply_error(reply, 400, "the sub-protocol gputap.v1 is wanted");
    } else if (has_token(bridge, request, reply)) {
        return true;
    }
    reply->last = true;
    return false;
}

/* ---- the API ---- */

/* Range of an integer argument; `fallback` where it is absent. */
static bool take_argument(const struct request *request, const char *name, long low, long high, long fallback, int *value)
{
    const char *text = request_argument(request, name);
    char *end;
    long number = text ? strtol(text, &end, 10) : fallback;
    if (text && (end == text || *end || strspn(text, "0123456789") != strlen(text)))
        return false;
    *value = (int)number;
    return number >= low && number <= high;
}

/* An index, an id, a PCI address or uuid, or host; else answers itself. */
static bool take_gpu(struct bridge *bridge, const struct request *request, int *device, struct reply *reply)
{
    const char *gpu = request_argument(request, "gpu");
    gputap_device facts = GPUTAP_DEVICE_INIT;
    int index;
    *device = gpu ? gputap_find(bridge->tap, gpu) : -1;
    if (gpu && strcmp(gpu, "host") == 0) {
        *device = GPUTAP_HOST;
        return true;
    }
    if (gpu && *device < 0 && take_argument(request, "gpu", 0, INT_MAX, 0, &index))
        *device = index;
    if (*device >= 0 && gputap_device_info(bridge->tap, *device, &facts) == GPUTAP_OK)
        return true;
    if (*device >= 0 || (gpu && strchr(gpu, ':')))
        reply_error(reply, 404, "no such gpu");
    else
        reply_error(reply, 400, "gpu is an index, an id or host");
    return false;
}

static void answer_history(struct bridge *bridge, const struct request *request, struct reply *reply)
{
    int device, seconds, points;
    if (!take_gpu(bridge, request, &device, reply))
        return;
    if (!take_argument(request, "seconds", 1, DOCUMENT_HISTORY_SECONDS, PROTOCOL_HISTORY_DEFAULT, &seconds))
        reply_error(reply, 400, "seconds is 1 to 1020");
    else if (!take_argument(request, "points", 1, DOCUMENT_HISTORY_POINTS, PROTOCOL_HISTORY_DEFAULT, &points))
        reply_error(reply, 400, "points is 1 to 1000");
    else
        reply_document(reply, 200, document_history(bridge->tap, device, DOCUMENT_FULL, seconds, points));
}

/* Of all GPUs, or of one. */
static void answer_processes(struct bridge *bridge, const struct request *request, const struct document_moment *moment,
                             struct reply *reply)
{
    const char *gpu = request_argument(request, "gpu");
    int device = -1;
    if (gpu && strcmp(gpu, "host") == 0)
        reply_error(reply, 400, "gpu is an index or an id");
    else if (!gpu || take_gpu(bridge, request, &device, reply))
        reply_document(reply, 200, document_processes(bridge->tap, moment, device, bridge->hub.processes.uid));
}

static void answer_health(const struct document_moment *moment, struct reply *reply)
{
    const char *state = document_state_text(moment);
    json_t *health = json_pack("{s:s, s:I, s:o}", "state", state, "t", (json_int_t)moment->t_ms, "age_ms",
                               moment->age_ms < 0 ? json_null() : json_integer(moment->age_ms));
    reply_document(reply, strcmp(state, "live") == 0 ? 200 : 503, health);
}

static void answer_api(struct bridge *bridge, const struct request *request, struct reply *reply)
{
    struct document_moment moment;
    if (!has_token(bridge, request, reply))
        return;
    hub_moment(&bridge->hub, &moment);
    if (strcmp(request->path, "/api/v1/hello") == 0)
        reply_document(reply, 200, document_hello(bridge->tap, &moment, DOCUMENT_FULL, PROTOCOL_PERIOD_DEFAULT));
    else if (strcmp(request->path, "/api/v1/snapshot") == 0)
        reply_document(reply, 200, document_snapshot_at(bridge->tap, &moment));
    else if (strcmp(request->path, "/api/v1/sessions") == 0)
        reply_document(reply, 200, annotations_document(&bridge->hub.annotations));
    else if (strcmp(request->path, "/api/v1/processes") == 0)
        answer_processes(bridge, request, &moment, reply);
    else if (strcmp(request->path, "/api/v1/history") == 0)
        answer_history(bridge, request, reply);
    else
        reply_error(reply, 404, "no such path");
}

/* ---- the page ---- */

/* gzip stands in the list and is not refused by q=0. */
static bool accepts_gzip(const char *list)
{
    const char *found = strstr(list, "gzip");
    if (!found || (found > list && !strchr(" ,\t", found[-1])))
        return false;
    const char *rest = found + 4 + strspn(found + 4, " ");
    if (*rest != ';')
        return *rest == '\0' || *rest == ',';
    const char *q = rest + 1 + strspn(rest + 1, " ");
    return strncmp(q, "q=", 2) != 0 || strtod(q + 2, NULL) > 0;
}

static void answer_page(struct bridge *bridge, const struct request *request, struct reply *reply)
{
    const char *path = strcmp(request->path, "/") == 0 ? "index.html" : request->path + 1;
    bool built_in = !bridge->options.web || strcmp(path, ASSETS_SPECS) == 0;
    struct asset read;
    const struct asset *asset = NULL;
    if (!mime_path_clean(path))
        asset = NULL;
    else if (built_in)
        asset = assets_find(path);
    else if (assets_folder_read(bridge->options.web, path, &read))
        asset = &read;
    if (!asset) {
        reply_error(reply, 404, "no such path");
        return;
    }
    bool gzip = asset->gzip && accepts_gzip(request->accept_encoding);
    *reply = (struct reply){.status = 200, .type = mime_type(path), .gzip = gzip, .varies = asset->gzip, .revalidate = true};
    reply->body = gzip ? asset->gzip : asset->bytes;
    reply->length = gzip ? asset->gzip_length : asset->length;
    if (!built_in)
        reply->owned = (void *)(size_t)asset->bytes;
    snprintf(reply->etag, sizeof reply->etag, "\"%s%s\"", asset->etag, gzip ? "-gz" : "");
    if (strstr(request->none_match, reply->etag) || strcmp(request->none_match, "*") == 0) {
        reply->status = 304;
        reply->type = NULL;
    }
}

void routes_answer(struct bridge *bridge, const struct guard_local *local, const struct request *request, struct reply *reply)
{
    struct document_moment moment;
    if (!may_ask(bridge, local, request, reply))
        return;
    if (request->method == REQUEST_OTHER) {
        reply_error(reply, 405, "only GET and HEAD are answered");
        reply->extra = "Allow: GET, HEAD\r\n";
        reply->last = true;
        return;
    }
    if (request->has_body) {
        reply_error(reply, 400, "a body is not wanted");
        reply->last = true;
    } else if (strcmp(request->path, "/ws") == 0) {
        reply_error(reply, 426, "this is a WebSocket of sub-protocol gputap.v1");
        reply->extra = "Upgrade: websocket\r\n";
    } else if (strcmp(request->path, "/healthz") == 0) {
        hub_moment(&bridge->hub, &moment);
        answer_health(&moment, reply);
    } else if (strncmp(request->path, "/api/", 5) == 0) {
        answer_api(bridge, request, reply);
    } else {
        answer_page(bridge, request, reply);
    }
    reply->cors = guard_origin_listed(&bridge->rules, request->origin);
}
