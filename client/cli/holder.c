/* What a holder does for a request. */
#include "client/cli/holder.h"

#include <string.h>

#include "shm/text.h"

static int find_devices(gputap *tap, const struct holder_request *request, int *devices)
{
    if (request->device_count < 0 || request->device_count > HOLDER_DEVICES)
        return GPUTAP_EINVAL;
    for (int i = 0; i < request->device_count; i++) {
        char id[sizeof request->devices[0]];
        text_copy(id, sizeof id, request->devices[i], sizeof request->devices[i]);
        devices[i] = gputap_find(tap, id);
        if (devices[i] < 0)
            return devices[i];
    }
    return request->device_count;
}

static int begin(gputap *tap, const struct holder_request *request, uint64_t *span)
{
    char job[sizeof request->job], node[sizeof request->node], name[sizeof request->name];
    int devices[HOLDER_DEVICES];
    int count = find_devices(tap, request, devices);
    text_copy(job, sizeof job, request->job, sizeof request->job);
    text_copy(node, sizeof node, request->node, sizeof request->node);
    text_copy(name, sizeof name, request->name, sizeof request->name);
    return count < 0 ? count : gputap_span_begin(tap, job, node, name, request->span, devices, count, span);
}

static int end(gputap *tap, const struct holder_request *request, struct holder_reply *reply)
{
    int count = gputap_span_end(tap, request->span, reply->usage, GPUTAP_SPAN_DEVICES);
    if (count < 0)
        return count;
    for (int i = 0; i < count; i++) {
        gputap_device device = GPUTAP_DEVICE_INIT;
        if (gputap_device_info(tap, reply->usage[i].device, &device) == GPUTAP_OK)
            memcpy(reply->ids[i], device.id, sizeof reply->ids[i]);
    }
    reply->usage_count = count;
    return GPUTAP_OK;
}

void holder_answer(gputap *tap, const struct holder_request *request, struct holder_reply *reply)
{
    gputap_annotator annotator = GPUTAP_ANNOTATOR_INIT;
    memset(reply, 0, sizeof *reply);
    reply->magic = HOLDER_MAGIC;
    reply->slot = gputap_annotator_info(tap, &annotator) == GPUTAP_OK ? annotator.slot : -1;
    reply->generation = annotator.generation;
    switch (request->type) {
    case HOLDER_BEGIN: reply->result = begin(tap, request, &reply->span); break;
    case HOLDER_STEP: reply->result = gputap_span_step(tap, request->span, request->value, request->max); break;
    case HOLDER_END: reply->result = end(tap, request, reply); break;
    case HOLDER_CLOSE: reply->result = GPUTAP_OK; break;
    default: reply->result = GPUTAP_EINVAL; break;
    }
    if (reply->result != GPUTAP_OK) {
        const char *details = gputap_message(tap);
        text_format(reply->message, sizeof reply->message, "%s", details[0] ? details : gputap_strerror(reply->result));
    }
}
