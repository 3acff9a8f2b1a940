#include "bridge/processes.h"

#include <string.h>

#include "client/json/document.h"

void processes_start(struct processes *processes, gputap *tap, bool show_all, uint32_t uid)
{
    *processes = (struct processes){.tap = tap, .uid = show_all ? -1 : (int64_t)uid};
}

void processes_stop(struct processes *processes)
{
    buffer_free(&processes->gpus);
    buffer_free(&processes->message);
}

/* The first one is to see them at once. */
void processes_listen(struct processes *processes, int change)
{
    if (processes->listeners == 0)
        processes->due_ms = 0;
    processes->listeners += change;
}

static bool same(const struct buffer *a, const struct buffer *b)
{
    return a->length == b->length && memcmp(buffer_data(a), buffer_data(b), a->length) == 0;
}

/* A message that could not be made is made at the next turn. */
static bool encode(struct processes *processes, struct buffer *gpus)
{
    struct buffer *out = &processes->message;
    buffer_clear(out);
    buffer_format(out, "{\"type\":\"processes\",\"t\":%lld,\"gpus\":", (long long)document_now_ms());
    buffer_put(out, buffer_data(gpus), gpus->length);
    buffer_text(out, "}");
    if (out->failed)
        return false;
    buffer_free(&processes->gpus);
    processes->gpus = *gpus;
    *gpus = (struct buffer){0};
    processes->number++;
    return true;
}

bool processes_update(struct processes *processes, int64_t now_ms)
{
    struct buffer gpus = {0};
    if (processes->listeners == 0 || now_ms < processes->due_ms)
        return false;
    processes->due_ms = now_ms + PROCESSES_EVERY_MS;
    buffer_json(&gpus, document_process_gpus(processes->tap, -1, processes->uid));
    bool told = !gpus.failed && !(processes->gpus.memory && same(&gpus, &processes->gpus)) && encode(processes, &gpus);
    buffer_free(&gpus);
    return told;
}

int processes_put(const struct processes *processes, json_t *into)
{
    return json_object_set_new(into, "processes", document_process_gpus(processes->tap, -1, processes->uid));
}
