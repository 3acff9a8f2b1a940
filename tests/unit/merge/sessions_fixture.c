#include "tests/unit/merge/sessions_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/text.h"

#define MUST(condition)                                                                                                            \
    do {                                                                                                                           \
        if (!(condition)) {                                                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                        \
            exit(1);                                                                                                               \
        }                                                                                                                          \
    } while (0)

void sessions_start_in(struct sessions_fixture *f, const char *folder, uint32_t devices)
{
    char message[256];
    memset(f, 0, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "%s", folder);
    f->options = (struct options){.period_ns = 100000000, .group = -1};
    MUST(publisher_open(&f->publisher, &f->options, f->folder, 4, message, sizeof message) == REGION_OK);
    devices_init(&f->devices, 4);
    for (uint32_t i = 0; i < devices; i++) {
        char id[16];
        snprintf(id, sizeof id, "dev:%u", (unsigned)i);
        struct device *device = devices_add(&f->devices, id);
        MUST(device != NULL);
        snprintf(device->facts.id, sizeof device->facts.id, "%s", id);
        uint64_t words[sizeof device->facts / 8];
        memcpy(words, &device->facts, sizeof words);
        ring_publish(&f->publisher.devices[i].entry, words);
    }
    publish_announce(&f->publisher, 0, devices);
    sessions_bind(&f->sessions, &f->publisher);
    f->next_event = ring_head(&f->sessions.events);
}

void sessions_start(struct sessions_fixture *f, uint32_t devices)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/dev/shm/gputap-unit-XXXXXX");
    MUST(mkdtemp(folder) != NULL);
    sessions_start_in(f, folder, devices);
}

void sessions_stop(struct sessions_fixture *f)
{
    publisher_close(&f->publisher);
    devices_free(&f->devices);
}

void sessions_end(struct sessions_fixture *f)
{
    char path[256];
    sessions_stop(f);
    snprintf(path, sizeof path, "%s/%s", f->folder, PLACE_SEGMENT);
    unlink(path);
    MUST(rmdir(f->folder) == 0);
}

void sessions_sample(struct sessions_fixture *f, uint64_t mono_ns, double watts, uint64_t vram)
{
    for (uint32_t i = 0; i < f->devices.count; i++) {
        struct merged merged = {.mono_ns = mono_ns, .state = DEVICE_OK};
        merged.values[METRIC_POWER_NOW].f64 = watts;
        metrics_set_valid(merged.valid, METRIC_POWER_NOW);
        merged.values[METRIC_VRAM_USED].u64 = vram;
        metrics_set_valid(merged.valid, METRIC_VRAM_USED);
        publish_device(&f->publisher, i, &f->devices.items[i], &merged, 1, mono_ns, 2000000000u, false);
    }
}

bool sessions_event(struct sessions_fixture *f, struct layout_event *out)
{
    uint64_t words[sizeof *out / 8];
    if (ring_read(&f->sessions.events, f->next_event, words) != RING_OK)
        return false;
    memcpy(out, words, sizeof words);
    f->next_event++;
    return true;
}

void sessions_mirror(struct sessions_fixture *f, int slot, struct layout_session *out)
{
    uint64_t words[sizeof *out / 8], last = 0;
    sessions_publish(&f->sessions, clock_mono_ns());
    MUST(ring_latest_words(&f->sessions.entries[slot], words, sizeof *out / 8, &last, 0) == RING_OK);
    memcpy(out, words, sizeof words);
}

void fake_attach(struct sessions_fixture *f, struct fake_client *client, const char *label)
{
    struct layout_session who = {.pid = 77, .uid = 5};
    text_copy(who.label, sizeof who.label, label, strlen(label));
    memset(client->memory, 0, sizeof client->memory);
    client->slot = sessions_free_slot(&f->sessions, clock_mono_ns());
    MUST(client->slot >= 0);
    sessions_open(&f->sessions, client->slot, &who, client->memory, clock_mono_ns());
    client_memory_format(&client->view, client->memory);
}

void fake_show(struct fake_client *client, int index, const struct layout_span *span)
{
    uint64_t words[sizeof *span / 8];
    memcpy(words, span, sizeof words);
    ring_publish(&client->view.spans[index], words);
}

void fake_say(struct fake_client *client, enum event_type type, const struct layout_span *span, uint64_t mono_ns)
{
    struct layout_event event = {.mono_ns = mono_ns,
                                 .type = (uint32_t)type,
                                 .span = span->id,
                                 .parent = span->parent,
                                 .devices = span->devices,
                                 .value = span->value,
                                 .max = span->max,
                                 .start_ns = span->start_ns};
    uint64_t words[sizeof event / 8];
    memcpy(event.job, span->job, sizeof event.job);
    memcpy(event.node, span->node, sizeof event.node);
    memcpy(event.name, span->name, sizeof event.name);
    memcpy(words, &event, sizeof words);
    ring_publish(&client->view.events, words);
}

struct layout_span fake_span(uint64_t id, const char *name, uint64_t start_ns)
{
    struct layout_span span = {.id = id, .start_ns = start_ns, .updated_ns = start_ns};
    text_copy(span.name, sizeof span.name, name, strlen(name));
    return span;
}
