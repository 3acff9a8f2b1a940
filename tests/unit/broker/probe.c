#include "probe.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void probe_prepare(struct probe *probe, const char *provider, const char *root)
{
    memset(probe, 0, sizeof *probe);
    fault_io_init(&probe->fault, root);
    probe->provider = providers[provider_find(provider)];
    probe->context.io = &probe->fault.io;
    probe->context.period_ns = 100000000;
}

int probe_run(struct probe *probe)
{
    int result = probe->provider->start(&probe->context);
    if (result == 0 && !probe->provider->host)
        (void)probe_discover(probe);
    return result;
}

int probe_start(struct probe *probe, const char *provider, const char *root)
{
    probe_prepare(probe, provider, root);
    return probe_run(probe);
}

void probe_stop(struct probe *probe)
{
    if (probe->context.state)
        probe->provider->stop(&probe->context);
    fault_io_free(&probe->fault);
}

int probe_discover(struct probe *probe)
{
    static struct layout_device found[PROVIDER_MAX_DEVICES];
    int count = probe->provider->discover(&probe->context, found, PROVIDER_MAX_DEVICES);
    if (count >= 0) {
        memcpy(probe->devices, found, sizeof found);
        probe->count = count;
    }
    return count;
}

void probe_sample(struct probe *probe, int device)
{
    sample_begin(&probe->sample, probe->fault.now);
    probe->result = probe->provider->sample(&probe->context, device, &probe->sample);
}

void probe_forward_ms(struct probe *probe, uint64_t ms) { probe->fault.now += ms * 1000000; }

bool probe_known(const struct probe *probe, int metric) { return metrics_valid(probe->sample.valid, metric); }

double probe_f64(const struct probe *probe, int metric)
{
    return probe_known(probe, metric) ? probe->sample.values[metric].f64 : NAN;
}

uint64_t probe_u64(const struct probe *probe, int metric)
{
    return probe_known(probe, metric) ? probe->sample.values[metric].u64 : UINT64_MAX;
}

unsigned probe_reason(const struct probe *probe, int metric) { return probe->sample.reasons[metric]; }
