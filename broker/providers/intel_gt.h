/* The GTs of an Intel GPU: parts with a clock of their own. Most have one for graphics and, since Meteor Lake, one for media. */
#ifndef GPUTAP_BROKER_PROVIDERS_INTEL_GT_H
#define GPUTAP_BROKER_PROVIDERS_INTEL_GT_H

#include "broker/providers/pci.h"

enum { INTEL_GT_MOST = 8 };

struct intel_gt {
    bool media;
    char reasons[384]; /* how the paths of throttle reasons begin */
    struct io_file clock, throttled, idle;
    bool has_clock; /* the last read */
    double mhz, mhz_maximum;
    uint64_t idle_ms, idle_ns; /* time in its deepest state, and when that was read; 0 ns = never */
    bool busy;
};

struct intel_gts {
    struct intel_gt list[INTEL_GT_MOST];
    int count;
    bool lost; /* a file is gone: to be found anew */
    uint64_t retry_ns;
};

void intel_gt_init(struct intel_gts *gts);
void intel_gt_close(struct intel_gts *gts, struct io *io);
/* Clocks and throttle reasons. Finds the GTs at the first call, and again when their files are gone: cardN may be renumbered. All
 * of these files wake a sleeping device (xe_gt_freq.c and intel_gt_sysfs_pm.c take runtime references). */
void intel_gt_sample(struct intel_gts *gts, struct io *io, const struct pci_display *display, struct sample *sample);
/* Was one of them out of its deepest idle state for more than a tenth of the last second? */
bool intel_gt_is_busy(struct intel_gts *gts, struct io *io, uint64_t mono_ns);
/* The highest clock that the graphics GTs can have (RP0), MHz; 0 = unknown. */
double intel_gt_maximum(const struct intel_gts *gts);

#endif
