/* The render node of an Intel GPU, answering queries of its memory as i915 and xe do: numbers of requests and places of fields are
 * those of include/uapi/drm, written down here once more so that the provider's own cannot be wrong unseen. */
#ifndef GPUTAP_TESTS_INTEL_NODE_H
#define GPUTAP_TESTS_INTEL_NODE_H

#include "fault_io.h"

struct intel_node_region {
    uint16_t memory_class; /* 0 host memory, 1 VRAM */
    uint64_t total, used;  /* i915: what is left, not what is used */
    uint64_t visible_total, visible_used;
};

struct intel_node {
    struct intel_node_region regions[16];
    uint32_t count;
    uint32_t told_count; /* what it says that there are, if not 0 */
    uint32_t xe_size;    /* what it says that the answer takes, if not 0 */
    int error;           /* errno of the memory queries */
    int interrupted;     /* so many times first */
};

void intel_node_attach(struct intel_node *node, struct fault_io *fault);

#endif
