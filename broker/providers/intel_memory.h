/* What the drivers i915 and xe say of a device's memory, by their query ioctls. */
#ifndef GPUTAP_BROKER_PROVIDERS_INTEL_MEMORY_H
#define GPUTAP_BROKER_PROVIDERS_INTEL_MEMORY_H

#include "broker/providers/pci.h"

struct intel_memory {
    bool has_vram;
    bool used_known;        /* of VRAM: the drivers tell it to CAP_PERFMON only, and others something that looks like a number */
    bool system_used_known; /* of host memory: xe alone counts it */
    uint64_t vram_total, vram_used;
    uint64_t visible_total, visible_used;
    uint64_t system_total, system_used;
    char driver_version[40]; /* asked for once */
};

/* Asks through the render node, into a struct that was zero before the first time. 0 or -errno. */
int intel_memory_query(struct io *io, const struct pci_display *display, struct intel_memory *out);

#endif
