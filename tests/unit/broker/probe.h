/* A provider on a tree, as a worker would run it. */
#ifndef GPUTAP_TESTS_PROBE_H
#define GPUTAP_TESTS_PROBE_H

#include "broker/provider.h"
#include "fault_io.h"

struct probe {
    struct fault_io fault;
    struct provider_context context;
    const struct provider *provider;
    struct layout_device devices[PROVIDER_MAX_DEVICES];
    int count; /* of the last discovery */
    struct sample sample;
    int result; /* of the last sample */
};

/* Starts `provider` below `root`; returns what start did, and has discovered if that was 0. */
int probe_start(struct probe *probe, const char *provider, const char *root);
/* The same with context already filled in by the test (after probe_prepare). */
void probe_prepare(struct probe *probe, const char *provider, const char *root);
int probe_run(struct probe *probe);
void probe_stop(struct probe *probe);
/* Discovers again; -EAGAIN leaves devices as they were. */
int probe_discover(struct probe *probe);
void probe_sample(struct probe *probe, int device);
void probe_forward_ms(struct probe *probe, uint64_t ms);

bool probe_known(const struct probe *probe, int metric);
double probe_f64(const struct probe *probe, int metric);   /* NaN if unknown */
uint64_t probe_u64(const struct probe *probe, int metric); /* UINT64_MAX if unknown */
unsigned probe_reason(const struct probe *probe, int metric);

#endif
