/* The public metric tables, and the ties between the public header's numbers and the layout's. */
#include <string.h>

#include "client/handle.h"
#include "shm/usage.h"

#define F64 GPUTAP_F64
#define U64 GPUTAP_U64
#define I64 GPUTAP_I64
#define GAUGE GPUTAP_GAUGE
#define COUNTER GPUTAP_COUNTER
#define BITS GPUTAP_BITS
#define NONE METRIC_SET_NONE
#define CAPSULE METRIC_SET_CAPSULE
#define HISTORY METRIC_SET_HISTORY
#define ROW(ID, name, type, unit, semantics, decimals, sets, ladder, help)                                                         \
    {#name, unit, help, type, semantics, decimals, ((sets)&CAPSULE) != 0, ((sets)&HISTORY) != 0},

static const gputap_metric device_metrics[] = {
#define GPU_METRIC ROW
#include "shm/metrics.def"
};
static const gputap_metric host_metrics[] = {
#define HOST_METRIC ROW
#include "shm/metrics.def"
};

#define SAME(public_name, private_name) _Static_assert((int)(public_name) == (int)(private_name), #public_name)
SAME(GPUTAP_METRIC_COUNT, METRIC_COUNT);
SAME(GPUTAP_HOST_METRIC_COUNT, HOST_METRIC_COUNT);
SAME(GPUTAP_METRIC_SLOTS, LAYOUT_METRIC_SLOTS);
SAME(GPUTAP_F64, METRIC_F64);
SAME(GPUTAP_U64, METRIC_U64);
SAME(GPUTAP_I64, METRIC_I64);
SAME(GPUTAP_GAUGE, METRIC_GAUGE);
SAME(GPUTAP_COUNTER, METRIC_COUNTER);
SAME(GPUTAP_BITS, METRIC_BITS);
SAME(GPUTAP_REASON_NONE, REASON_NONE);
SAME(GPUTAP_REASON_NOT_SAMPLED, REASON_NOT_SAMPLED);
SAME(GPUTAP_REASON_NOT_SUPPORTED, REASON_NOT_SUPPORTED);
SAME(GPUTAP_REASON_NO_PERMISSION, REASON_NO_PERMISSION);
SAME(GPUTAP_REASON_ASLEEP, REASON_ASLEEP);
SAME(GPUTAP_REASON_LETTING_SLEEP, REASON_LETTING_SLEEP);
SAME(GPUTAP_REASON_ERROR, REASON_ERROR);
SAME(GPUTAP_REASON_IMPLAUSIBLE, REASON_IMPLAUSIBLE);
SAME(GPUTAP_REASON_STALE, REASON_STALE);
SAME(GPUTAP_REASON_STALE + 1, REASON_COUNT);
SAME(GPUTAP_DEVICE_OK, DEVICE_OK);
SAME(GPUTAP_DEVICE_ASLEEP, DEVICE_ASLEEP);
SAME(GPUTAP_DEVICE_SETTLING, DEVICE_SETTLING);
SAME(GPUTAP_DEVICE_HUNG, DEVICE_HUNG);
SAME(GPUTAP_DEVICE_GONE, DEVICE_GONE);
SAME(GPUTAP_DEVICE_GONE + 1, DEVICE_STATE_COUNT);
SAME(GPUTAP_POOL_UNKNOWN, POOL_UNKNOWN);
SAME(GPUTAP_POOL_DISCRETE, POOL_DISCRETE);
SAME(GPUTAP_POOL_UNIFIED, POOL_UNIFIED);
SAME(sizeof(gputap_value), sizeof(union metric_value));
SAME(sizeof(gputap_sums), ACCUMULATE_COUNT * sizeof(double));
SAME(sizeof(gputap_snapshot), 80 + 8 * LAYOUT_METRIC_SLOTS + sizeof(gputap_sums));
SAME(offsetof(gputap_snapshot, values), 80);
SAME(offsetof(gputap_snapshot, sums), 80 + 8 * LAYOUT_METRIC_SLOTS);
SAME(sizeof(gputap_cursor), 40);
SAME(sizeof(gputap_provider), 24 + 16 + 144);
SAME(sizeof(gputap_stats), 8 + 18 * 8);
SAME(GPUTAP_MAX_SPANS, LAYOUT_SESSION_SPANS);
SAME(GPUTAP_MAX_GAUGES, LAYOUT_SESSION_GAUGES);
SAME(GPUTAP_SPAN_DEVICES, LAYOUT_SPAN_DEVICES);
SAME(GPUTAP_USAGE_PARTIAL, USAGE_PARTIAL);
SAME(GPUTAP_USAGE_ESTIMATED, USAGE_ESTIMATED);
SAME(GPUTAP_USAGE_SHARED, USAGE_SHARED);
SAME(GPUTAP_USAGE_UNIFIED, USAGE_UNIFIED);
SAME(GPUTAP_EVENT_ATTACH, EVENT_ATTACH);
SAME(GPUTAP_EVENT_USAGE + 1, EVENT_TYPE_COUNT);
SAME(GPUTAP_EVENT_ABANDONED, EVENT_ABANDONED);
SAME(GPUTAP_EVENT_RECOVERED, EVENT_RECOVERED);
SAME(sizeof(gputap_usage), sizeof(struct layout_usage) + 32);
SAME(offsetof(gputap_usage, temperature_peak), offsetof(struct layout_usage, temperature_peak));

const gputap_metric *gputap_metric_info(int device, int metric)
{
    int count = device == GPUTAP_HOST ? (int)HOST_METRIC_COUNT : (int)METRIC_COUNT;
    if (device < GPUTAP_HOST || metric < 0 || metric >= count)
        return NULL;
    return device == GPUTAP_HOST ? &host_metrics[metric] : &device_metrics[metric];
}

int gputap_metric_find(int device, const char *name)
{
    const gputap_metric *info;
    if (!name)
        return GPUTAP_EINVAL;
    for (int metric = 0; (info = gputap_metric_info(device, metric)) != NULL; metric++)
        if (strcmp(info->name, name) == 0)
            return metric;
    return GPUTAP_EINVAL;
}
