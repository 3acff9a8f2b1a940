#include "bridge/request.h"

#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>

static bool copy(struct lws *wsi, enum lws_token_indexes token, char *out, size_t size)
{
    out[0] = '\0';
    if (lws_hdr_total_length(wsi, token) == 0)
        return true;
    int length = lws_hdr_copy(wsi, out, (int)size, token);
    if (length >= 0 && strlen(out) == (size_t)length)
        return true;
    out[0] = '\0';
    return false;
}

/* Arguments come as fragments "name=value", already decoded. */
static bool copy_query(struct lws *wsi, char *out, size_t size)
{
    size_t used = 0;
    for (int i = 0;; i++) {
        int length = lws_hdr_copy_fragment(wsi, out + used, (int)(size - used - 1), WSI_TOKEN_HTTP_URI_ARGS, i);
        if (length < 0) {
            out[used] = '\0';
            return i > 0 || lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_URI_ARGS) == 0;
        }
        used += (size_t)length;
        out[used++] = '\n';
        if (used + 2 >= size) {
            out[0] = '\0';
            return false;
        }
    }
}

static bool copy_path(struct lws *wsi, struct request *request)
{
    enum lws_token_indexes token = WSI_TOKEN_GET_URI;
    request->method = REQUEST_GET;
    if (lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) == 0) {
        bool head = lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) != 0;
        request->method = head ? REQUEST_HEAD : REQUEST_OTHER;
        token = WSI_TOKEN_HEAD_URI;
    }
    return copy(wsi, token, request->path, sizeof request->path);
}

void request_read(struct lws *wsi, struct request *request)
{
    char length[24], encoding[32];
    bool fits = copy_path(wsi, request);
    fits &= copy_query(wsi, request->query, sizeof request->query);
    fits &= copy(wsi, WSI_TOKEN_HOST, request->host, sizeof request->host);
    fits &= copy(wsi, WSI_TOKEN_ORIGIN, request->origin, sizeof request->origin);
    fits &= copy(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, request->authorization, sizeof request->authorization);
    fits &= copy(wsi, WSI_TOKEN_PROTOCOL, request->protocols, sizeof request->protocols);
    fits &= copy(wsi, WSI_TOKEN_VERSION, request->version, sizeof request->version);
    fits &= copy(wsi, WSI_TOKEN_UPGRADE, request->upgrade, sizeof request->upgrade);
    copy(wsi, WSI_TOKEN_HTTP_ACCEPT_ENCODING, request->accept_encoding, sizeof request->accept_encoding);
    copy(wsi, WSI_TOKEN_HTTP_IF_NONE_MATCH, request->none_match, sizeof request->none_match);
    request->has_body = !copy(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH, length, sizeof length) ||
                        (length[0] && strcmp(length, "0") != 0) ||
                        !copy(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING, encoding, sizeof encoding) || encoding[0];
    request->too_long = !fits;
}

const char *request_argument(const struct request *request, const char *name)
{
    static char value[64];
    size_t length = strlen(name);
    for (const char *line = request->query; *line; line += strcspn(line, "\n") + 1) {
        if (strncmp(line, name, length) != 0 || line[length] != '=')
            continue;
        size_t span = strcspn(line + length + 1, "\n");
        if (span >= sizeof value)
            span = sizeof value - 1;
        memcpy(value, line + length + 1, span);
        value[span] = '\0';
        return value;
    }
    return NULL;
}
