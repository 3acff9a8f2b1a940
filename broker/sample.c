/* Filling a sample. The quality bits are a device's: a host provider uses none of the helpers that flag. */
#include <math.h>
#include <string.h>

#include "broker/provider.h"
#include "shm/text.h"

static bool in_table(int metric) { return metric >= 0 && metric < LAYOUT_METRIC_SLOTS; }

void sample_begin(struct sample *sample, uint64_t mono_ns)
{
    memset(sample, 0, sizeof *sample);
    sample->mono_ns = mono_ns;
    sample->state = DEVICE_OK;
    memset(sample->reasons, REASON_NOT_SUPPORTED, sizeof sample->reasons);
}

static void sample_known(struct sample *sample, int metric, union metric_value value)
{
    if (!in_table(metric))
        return;
    sample->values[metric] = value;
    sample->reasons[metric] = REASON_NONE;
    metrics_set_valid(sample->valid, metric);
}

void sample_u64(struct sample *sample, int metric, uint64_t value)
{
    sample_known(sample, metric, (union metric_value){.u64 = value});
}

void sample_f64(struct sample *sample, int metric, double value)
{
    if (isfinite(value))
        sample_known(sample, metric, (union metric_value){.f64 = value});
    else
        sample_unknown(sample, metric, REASON_ERROR);
}

void sample_unknown(struct sample *sample, int metric, unsigned reason)
{
    if (!in_table(metric))
        return;
    sample->values[metric].u64 = 0;
    sample->reasons[metric] = (uint8_t)reason;
    metrics_clear_valid(sample->valid, metric);
}

void sample_all_unknown(struct sample *sample, unsigned reason)
{
    memset(sample->values, 0, sizeof sample->values);
    memset(sample->valid, 0, sizeof sample->valid);
    memset(sample->reasons, (int)reason, sizeof sample->reasons);
}

static void sample_implausible(struct sample *sample, int metric)
{
    sample_unknown(sample, metric, REASON_IMPLAUSIBLE);
    sample_flag(sample, QUALITY_IMPLAUSIBLE);
}

void sample_f64_within(struct sample *sample, int metric, double value, double low, double high)
{
    if (isfinite(value) && (value < low || value > high))
        sample_implausible(sample, metric);
    else
        sample_f64(sample, metric, value);
}

void sample_memory(struct sample *sample, int total_metric, uint64_t total, int used_metric, uint64_t used)
{
    if (total >> SAMPLE_MEMORY_BITS) {
        sample_implausible(sample, total_metric);
        sample_implausible(sample, used_metric);
        return;
    }
    if (total > 0)
        sample_u64(sample, total_metric, total);
    else
        sample_unknown(sample, total_metric, REASON_NOT_SUPPORTED); /* there is no such memory */
    if (total > 0 && used <= total)
        sample_u64(sample, used_metric, used);
    else if (used > total)
        sample_implausible(sample, used_metric);
    else
        sample_unknown(sample, used_metric, REASON_NOT_SUPPORTED);
}

void sample_flag(struct sample *sample, uint64_t quality)
{
    uint64_t before = metrics_valid(sample->valid, METRIC_QUALITY) ? sample->values[METRIC_QUALITY].u64 : 0;
    sample_u64(sample, METRIC_QUALITY, before | quality);
}

bool provider_wants(const struct provider_context *context, const char *id)
{
    if (context->only)
        return strcmp(context->only, id) == 0;
    for (int i = 0; i < context->exclude_count; i++)
        if (strcmp(context->exclude[i], id) == 0)
            return false;
    return true;
}

void provider_text(char *out, size_t size, const char *text) { text_copy(out, size, text ? text : "", text ? strlen(text) : 0); }
