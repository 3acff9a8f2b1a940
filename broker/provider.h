/* What a provider is: one source of numbers, run in a worker process of its own. To add one: a file in broker/providers/ with a
 * `const struct provider provider_NAME`, a line in providers.c, and its name in the ladders of metrics.def. */
#ifndef GPUTAP_BROKER_PROVIDER_H
#define GPUTAP_BROKER_PROVIDER_H

#include "broker/io.h"
#include "shm/layout.h"

enum { PROVIDER_MAX_DEVICES = 128, PROVIDER_HOST_DEVICE = -1 };

/* Everything a provider may know of its surroundings. */
struct provider_context {
    struct io *io;
    void *state; /* the provider's own; made by start */
    uint64_t tick;
    uint64_t period_ns;
    bool at_work; /* somebody says that work is going on: do not let devices go to sleep */
    /* Options of the command line that concern a provider. */
    const char *const *simulate; /* "MODEL[:COUNT]" */
    int simulate_count;
    const char *sim_load; /* static, wave, workflow */
    /* A hung device has a worker of its own: ids to leave alone, or the only one to touch. */
    const char *const *exclude;
    int exclude_count;
    const char *only;
    /* Set by the provider at discovery: what it found, or why nothing, in one line for people. */
    char message[144];
    bool beyond; /* likewise: there are more devices than it had room for */
};

/* A sample being filled: begins with every metric unknown, REASON_NOT_SUPPORTED. */
struct sample {
    uint64_t mono_ns;
    uint64_t cost_ns;
    uint32_t state; /* enum device_state */
    uint32_t padding;
    uint64_t valid[2];
    union metric_value values[LAYOUT_METRIC_SLOTS];
    uint8_t reasons[64];
};

void sample_begin(struct sample *sample, uint64_t mono_ns);
void sample_u64(struct sample *sample, int metric, uint64_t value);
/* NaN and infinities become REASON_ERROR. */
void sample_f64(struct sample *sample, int metric, double value);
void sample_unknown(struct sample *sample, int metric, unsigned reason);
void sample_all_unknown(struct sample *sample, unsigned reason);
/* Known values outside [low, high] are dropped with REASON_IMPLAUSIBLE and QUALITY_IMPLAUSIBLE. */
void sample_f64_within(struct sample *sample, int metric, double value, double low, double high);
enum { SAMPLE_MEMORY_BITS = 50 }; /* no pool of memory reaches a pebibyte: above it lie sentinels */
/* A used/total pair: 0 < total, 0 <= used <= total, or used is dropped and flagged. */
void sample_memory(struct sample *sample, int total_metric, uint64_t total, int used_metric, uint64_t used);
void sample_flag(struct sample *sample, uint64_t quality);

struct provider {
    const char *name;
    bool host;  /* samples the machine, not devices */
    bool aside; /* knows who uses a device, not how the device is: its word on state and time does not count */
    /* Makes `state`. 0, or -errno when there is nothing for it here (message set): the worker reports "absent" and ends. */
    int (*start)(struct provider_context *context);
    /* Fills up to `capacity` devices, ordered by id, and returns how many; honours exclude and only (provider_wants). Called at
     * the start and about once a second; returns -EAGAIN if nothing has changed since the last call. generation grows when a
     * device was away and is back. `devices[i]` keeps its index i in later calls as long as the returned set is unchanged. */
    int (*discover)(struct provider_context *context, struct layout_device *devices, int capacity);
    /* Reads one device of the last discovery. Never blocks on purpose: a slow source has its own deadline. Returns 0, or
     * -errno when the device itself is gone. For a host provider device is PROVIDER_HOST_DEVICE. */
    int (*sample)(struct provider_context *context, int device, struct sample *sample);
    /* The processes of a device, after its sample; false where there is nothing new to tell. NULL: it knows none. */
    bool (*processes)(struct provider_context *context, int device, struct layout_process_table *table);
    /* Host providers only. */
    int (*describe_host)(struct provider_context *context, struct layout_host *host);
    void (*stop)(struct provider_context *context);
};

/* May this worker touch the device of that id? */
bool provider_wants(const struct provider_context *context, const char *id);
/* Bounded copy into a layout string: NUL-padded, cut at a whole UTF-8 character, control characters dropped. */
void provider_text(char *out, size_t size, const char *text);

/* All providers of this build, in the order of REGION_PROVIDER. */
extern const struct provider *const providers[];
extern const int provider_count;
int provider_find(const char *name);

#endif
