/* Names and figures of cards by their PCI id, from data/gpu_specs.json: a last resort, where neither the device nor the tables of
 * this machine tell. A wrong answer is worse than none: where an id is several cards and it is not sure which, there is none. */
#ifndef GPUTAP_BROKER_PROVIDERS_SPECS_H
#define GPUTAP_BROKER_PROVIDERS_SPECS_H

#include "broker/provider.h"

struct specs {
    uint16_t vendor, device; /* PCI ids */
    const char *name_match;  /* what a name has, as whole words, if this card is meant */
    const char *name;
    const char *memory_type; /* "" = unknown */
    uint32_t memory_bus_bits;
    double tgp;            /* W; as for the bus, 0 = unknown */
    const char *revisions; /* " c8 cf ": the PCI revisions that this card has; "" = not told apart by them */
};

/* The card of that id, by its revision, else by the name known so far. NULL if there is none, or several that fit. */
const struct specs *specs_find(uint32_t vendor, uint32_t device, uint32_t revision, const char *name);

/* Replaces a name that only a list of PCI ids told. */
void specs_name(struct layout_device *facts);
/* Fills power and memory where they are unknown. */
void specs_complete(struct layout_device *facts);

#endif
