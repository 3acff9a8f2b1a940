/* What the ROCm kernel driver tells of a GPU in its topology. Only sysfs: to open /dev/kfd would make us a compute process
 * (ROCm issue 4411). */
#ifndef GPUTAP_BROKER_PROVIDERS_KFD_H
#define GPUTAP_BROKER_PROVIDERS_KFD_H

#include "broker/providers/pci.h"

struct kfd_facts {
    int index;       /* among the GPUs of the topology, in its order */
    uint32_t gpu_id; /* what its processes' files are named by; 0 = unknown */
    uint32_t gfx_target_version;
    uint32_t compute_units;
    uint32_t memory_bus_bits;
    uint64_t memory_bytes; /* of the first memory bank; 0 = unknown */
};

/* Of a card in CPX or DPX mode (MI300): its memory and compute units are those of the partition. */
struct kfd_partition {
    int number;
    int render_minor;
    struct kfd_facts facts;
};
enum { KFD_MOST_PARTITIONS = 8 };
/* Partitions of a card in the order of the topology; 0 for one that is whole. */
int kfd_partitions(struct io *io, const struct pci_display *display, struct kfd_partition *out, int capacity);
/* The node of a card, of a partitioned one its first. */
bool kfd_find(struct io *io, const struct pci_display *display, struct kfd_facts *out);
/* 110501 is gfx1151: major * 10000 + minor * 100 + step, minor and step printed in hex. Empty for 0. */
void kfd_arch(uint32_t gfx_target_version, char *out, size_t size);

#endif
