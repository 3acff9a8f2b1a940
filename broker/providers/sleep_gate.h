/* May a device be read now? A card that sleeps must not be woken by looking at it, and one that is idle must be looked away from
 * for long enough that the kernel can put it to sleep: each read of a sensor starts its timer anew. */
#ifndef GPUTAP_BROKER_PROVIDERS_SLEEP_GATE_H
#define GPUTAP_BROKER_PROVIDERS_SLEEP_GATE_H

#include "broker/provider.h"

enum sleep_verdict {
    SLEEP_READ,
    SLEEP_SETTLING, /* read, but the first values after a wake are not to be trusted */
    SLEEP_LETTING,  /* do not read: it may fall asleep */
    SLEEP_ASLEEP
};

struct sleep_gate {
    struct io_file status, control, delay;
    bool was_asleep;
    bool idle;
    uint64_t idle_since_ns;
    uint64_t quiet_until_ns; /* 0 = not being let go */
    uint64_t settle_until_ns;
    uint64_t patience_ns; /* idle time before the next try */
};

/* `device` is the folder that holds power/. */
void sleep_gate_init(struct sleep_gate *gate, const char *device);
void sleep_gate_close(struct sleep_gate *gate, struct io *io);
/* Before reading: opens nothing but power/runtime_status. */
enum sleep_verdict sleep_gate_check(struct sleep_gate *gate, struct io *io, uint64_t mono_ns);
/* After reading: was the device busy? Where that is not known, false. */
void sleep_gate_report(struct sleep_gate *gate, struct io *io, uint64_t mono_ns, bool busy);
/* What a sample says of a verdict: state, quality, and the reasons of what is not read. */
void sleep_gate_mark(enum sleep_verdict verdict, struct sample *sample);

#endif
