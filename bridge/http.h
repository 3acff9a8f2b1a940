#ifndef GPUTAP_BRIDGE_HTTP_H
#define GPUTAP_BRIDGE_HTTP_H

#include "bridge/bridge.h"

struct lws;

/* Answers the request that libwebsockets has parsed. 0 go on, -1 close. */
int http_answer(struct bridge *bridge, struct lws *wsi);
/* At LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: 0 let it through, -1 close. */
int http_confirm_upgrade(struct bridge *bridge, struct lws *wsi);

#endif
