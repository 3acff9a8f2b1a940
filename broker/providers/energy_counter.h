/* A counter of energy as a driver shows it: joules that never go back, and the power between two looks. What drivers do wrong is
 * caught here: counters that stay at zero, stand still, jump, wrap around or start anew. */
#ifndef GPUTAP_BROKER_PROVIDERS_ENERGY_COUNTER_H
#define GPUTAP_BROKER_PROVIDERS_ENERGY_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

struct energy_counter {
    double unit;                    /* joules a count */
    unsigned bits;                  /* width of the counter: 32 wraps around, 64 never does */
    bool seen;                      /* base_value was read */
    bool moved;                     /* it has been something other than zero */
    uint64_t base_value, base_ns;   /* the last reading that was believed and had changed */
    uint64_t total;                 /* counts up to the base: the first reading and all believed steps */
    uint64_t pending;               /* counts since */
    bool doubted;                   /* the last reading fits nothing before it */
    uint64_t doubt_value, doubt_ns; /* that reading */
    unsigned still;                 /* looks without a change */
    bool power_known;
    double watts;
};

enum energy_verdict {
    ENERGY_NOTHING,  /* it never counted: there is no such counter */
    ENERGY_COUNTING, /* joules are known; watts where power_known says so */
    ENERGY_REJECTED  /* this reading was not believed: joules are those of before, watts unknown */
};

/* Counts of `unit` joules: 1e-6 for hwmon. */
void energy_counter_init(struct energy_counter *counter, double unit, unsigned bits);
/* A reading. More than `most_watts` since the last one is no energy but a mistake. */
enum energy_verdict energy_counter_feed(struct energy_counter *counter, uint64_t value, uint64_t mono_ns, double most_watts);
double energy_counter_joules(const struct energy_counter *counter);

#endif
