/* What an interval took on one device, from its rings: for the broker when a span has ended, and for a client at any time. Pure
 * arithmetic over records that may be overwritten while it reads. */
#ifndef GPUTAP_SHM_USAGE_H
#define GPUTAP_SHM_USAGE_H

#include "shm/layout.h"
#include "shm/ring.h"

enum usage_flag {
    USAGE_PARTIAL = 1,   /* the records of the start are gone: seconds are right, sums and peaks cover the rest */
    USAGE_ESTIMATED = 2, /* no sample inside, or none in its later half, or none after the end yet: neighbours had to do */
    USAGE_SHARED = 4,    /* another session's span overlapped: the numbers are the device's, not the process's */
    USAGE_UNIFIED = 8    /* vram_mean is of the unified pair */
};

struct usage_request {
    uint64_t start_ns, end_ns; /* broker's monotonic clock, start <= end */
    uint64_t gap_ns;           /* no sample says anything about what lies further from it */
    double idle_watts;         /* 0 = unknown */
    bool unified;
};

/* Fills all but device, own_vram_peak (NaN) and USAGE_SHARED. `ring` is the device's ring, `coarse` its one-second ring. Bounded: a
 * writer that overruns it, or garbage, costs `partial` and not time. */
void usage_between(const struct ring *ring, const struct ring *coarse, const struct usage_request *request,
                   struct layout_usage *out);

#endif
