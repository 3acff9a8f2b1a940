/* Layouts of Level Zero's sysman, for a provider that loads the library by name and has none of its headers. */
#ifndef GPUTAP_BROKER_PROVIDERS_LEVELZERO_LAYOUT_H
#define GPUTAP_BROKER_PROVIDERS_LEVELZERO_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum { LEVELZERO_FREQUENCY_BYTES = 64 };

/* NaN = unknown. */
struct levelzero_frequency {
    double mhz; /* at which the domain runs */
    double volts;
};

/* zes_freq_state_t. What was requested, the limit for heat and the most efficient clock stand beside the actual one and are no
 * clock: none of them stands in where the actual one is unknown. */
struct levelzero_frequency levelzero_frequency(const uint8_t state[LEVELZERO_FREQUENCY_BYTES]);

#endif
