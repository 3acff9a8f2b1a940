/* The parts of the provider "intel". */
#ifndef GPUTAP_BROKER_PROVIDERS_INTEL_H
#define GPUTAP_BROKER_PROVIDERS_INTEL_H

#include "broker/providers/hwmon.h"
#include "broker/providers/intel_gt.h"
#include "broker/providers/intel_memory.h"
#include "broker/providers/pci.h"
#include "broker/providers/sleep_gate.h"

struct intel_device {
    struct layout_device facts;
    bool facts_complete; /* described while awake; before that only by what does not wake it */
    bool facts_changed;  /* since discovery told them */

    struct sleep_gate gate;
    struct hwmon hwmon;
    struct intel_gts gts;

    uint64_t memory_due_ns;
    int memory_error;
    struct intel_memory memory;

    uint64_t link_due_ns;
    int link_error;
    double link_speed;
    uint64_t link_width;
};

/* --- intel_facts.c ---------------------------------------------------------------------------------------------------- */
bool intel_is_driver(const char *driver);
/* What needs no awake device. */
void intel_describe_asleep(struct intel_device *device, struct io *io, const struct pci_display *display);
/* The rest, right after a first sample of an awake device: hwmon, gts and memory are known then. */
void intel_describe_awake(struct intel_device *device, struct io *io);

/* --- intel_read.c ----------------------------------------------------------------------------------------------------- */
/* Everything of an awake device. True if it works on something. */
bool intel_read_all(struct intel_device *device, struct io *io, const struct pci_display *display, struct sample *sample);

#endif
