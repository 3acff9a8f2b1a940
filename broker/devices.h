/* The table of devices: what each provider says of one id, merged into one set of facts and one sample. No I/O. */
#ifndef GPUTAP_BROKER_DEVICES_H
#define GPUTAP_BROKER_DEVICES_H

#include "broker/provider.h"

enum { DEVICES_MAX_SOURCES = LAYOUT_MAX_PROVIDERS };

/* One provider's word on one device. */
struct source {
    bool present; /* in the provider's last list */
    bool hung;
    bool isolated; /* hung once: a worker of its own lists it from then on, the provider's main one never again */
    bool sampled;  /* `sample` holds something */
    int gone;      /* errno of the last read of a device that is no more */
    struct layout_device facts;
    struct sample sample;
};

struct device {
    char id[48];
    bool gone; /* no provider lists it any more */
    uint32_t generation;
    struct source sources[DEVICES_MAX_SOURCES];
    struct layout_device facts;            /* merged: with state, generation, reasons and sources of the last merge */
    uint8_t falls[METRIC_COUNT];           /* times in a row that a counter was below its last value */
    union metric_value last[METRIC_COUNT]; /* last known value of counters */
    uint64_t last_known[2];
};

/* The outcome of a merge: what is published. */
struct merged {
    uint64_t mono_ns; /* of the newest sample, 0 = none */
    uint64_t cost_ns;
    uint32_t state;
    uint64_t valid[2];
    union metric_value values[LAYOUT_METRIC_SLOTS];
};

struct devices {
    struct device *items; /* capacity of them */
    uint32_t count;
    uint32_t capacity;
    uint8_t rank[METRIC_COUNT][DEVICES_MAX_SOURCES]; /* place of a provider in a metric's ladder, 255 = not on it */
    uint8_t fact_rank[DEVICES_MAX_SOURCES];
};

/* Room for `capacity` devices; aborts without memory. */
void devices_init(struct devices *devices, uint32_t capacity);
void devices_free(struct devices *devices);
/* The device of an id, or NULL. */
struct device *devices_find(const struct devices *devices, const char *id);
/* Adds one; NULL when there is no room. */
struct device *devices_add(struct devices *devices, const char *id);
/* Order of ids: as text, but trailing numbers by value. */
int devices_compare_ids(const void *a, const void *b);
/* Called before the first snapshot is published: devices in the order of their ids. */
void devices_sort(struct devices *devices);

void devices_take_facts(struct device *device, int provider, const struct layout_device *facts);
/* Marks what a provider no longer lists. `only`: the list is of that one device's own worker. */
void devices_take_list(struct devices *devices, int provider, const char *only, const char (*ids)[48], int count);
void devices_take_sample(struct device *device, int provider, int gone, const struct sample *sample);
void devices_take_hung(struct device *device, int provider);

/* Each metric from the highest rung of its ladder whose sample is younger than `stale_ns` at `now_ns` and knows it; else unknown
 * with the highest rung's reason. Fills device->facts. True if facts or state changed (reasons and sources do not count). */
bool devices_merge(struct devices *devices, struct device *device, uint64_t now_ns, uint64_t stale_ns, struct merged *merged);

#endif
