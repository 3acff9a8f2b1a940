/* What is derived from a device's samples as they go by: running sums and the records of whole seconds. No I/O. */
#ifndef GPUTAP_BROKER_TRACK_H
#define GPUTAP_BROKER_TRACK_H

#include "broker/devices.h"

struct track {
    double sums[ACCUMULATE_COUNT];
    uint64_t last_mono_ns; /* of the last sample counted; 0 = none, or the chain broke */
    bool energy_known;
    double energy_last;
    uint64_t energy_mono_ns;
    /* The second being gathered. */
    struct layout_coarse second;
    uint64_t second_number;
    uint32_t counts[LAYOUT_COARSE_SLOTS];
    double idle_watts;      /* 0 = not seen yet */
    double idle_watts_told; /* as published: moves in steps that matter */
};

/* Counts a new sample. One that was counted before, or no sample at all, adds nothing. A gap longer than gap_ns is not bridged. */
void track_sums(struct track *track, const struct merged *merged, uint32_t pool, uint64_t gap_ns);
/* Adds a sample to the second it lies in. True when that closed an earlier second, which is then in *closed. */
bool track_coarse(struct track *track, bool host, const struct merged *merged, uint64_t real_ns, uint64_t packed_state,
                  struct layout_coarse *closed);
/* Learns from a closed second what the device draws while nothing runs: `at_work` says that something does, busy or not. */
void track_idle(struct track *track, const struct layout_coarse *second, bool at_work);

#endif
