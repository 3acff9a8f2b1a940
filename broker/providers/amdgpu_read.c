#include <errno.h>
#include <string.h>

#include "broker/providers/amdgpu.h"

enum { BUSY_FROM_PERCENT = 5 };

static const char *const field_names[AMDGPU_FIELD_COUNT] = {
    [AMDGPU_VRAM_TOTAL] = "mem_info_vram_total",
    [AMDGPU_VRAM_USED] = "mem_info_vram_used",
    [AMDGPU_VISIBLE_TOTAL] = "mem_info_vis_vram_total",
    [AMDGPU_VISIBLE_USED] = "mem_info_vis_vram_used",
    [AMDGPU_GTT_TOTAL] = "mem_info_gtt_total",
    [AMDGPU_GTT_USED] = "mem_info_gtt_used",
    [AMDGPU_GFX_BUSY] = "gpu_busy_percent",
    [AMDGPU_MEMORY_BUSY] = "mem_busy_percent",
    [AMDGPU_MEDIA_BUSY] = "vcn_busy_percent",
    [AMDGPU_GFX_CLOCKS] = "pp_dpm_sclk",
    [AMDGPU_MEMORY_CLOCKS] = "pp_dpm_mclk",
    [AMDGPU_SOC_CLOCKS] = "pp_dpm_socclk",
    [AMDGPU_MEDIA_CLOCKS] = "pp_dpm_vclk",
    [AMDGPU_LINKS] = "pp_dpm_pcie",
    [AMDGPU_REPLAYS] = "pcie_replay_count",
    [AMDGPU_TABLE] = "gpu_metrics",
};

void amdgpu_read_init(struct amdgpu_device *device)
{
    for (int i = 0; i < AMDGPU_FIELD_COUNT; i++)
        io_file_init(&device->files[i], "%s/%s", device->display.path, field_names[i]);
    hwmon_init(&device->hwmon, device->display.path);
    energy_counter_init(&device->energy, GM_JOULE, 64);
}

void amdgpu_read_close(struct amdgpu_device *device, struct io *io)
{
    for (int i = 0; i < AMDGPU_FIELD_COUNT; i++)
        io_file_close(io, &device->files[i]);
    hwmon_close(&device->hwmon, io);
}

/* Which files a driver has is settled when it loads: one that is missing is not asked for again. */
static int note_absence(struct amdgpu_device *device, enum amdgpu_field field, int error)
{
    if (error == -ENOENT)
        device->absent[field] = true;
    return error;
}

int amdgpu_file_number(struct amdgpu_device *device, struct io *io, enum amdgpu_field field, uint64_t *out)
{
    return device->absent[field] ? -ENOENT : note_absence(device, field, io_file_u64(io, &device->files[field], out));
}

int amdgpu_file_text(struct amdgpu_device *device, struct io *io, enum amdgpu_field field, char *text, size_t size)
{
    if (device->absent[field])
        return -ENOENT;
    long got = io_file_read_all(io, &device->files[field], text, size);
    return note_absence(device, field, got < 0 ? (int)got : 0);
}

/* --- memory ----------------------------------------------------------------------------------------------------------- */

/* Reads a pair; the totals or the numbers in use may fail alone. True if both are sound. */
static bool read_pair(struct amdgpu_device *device, struct io *io, struct sample *sample, enum amdgpu_field field, int total_metric,
                      int used_metric, uint64_t pair[2])
{
    int total_error = amdgpu_file_number(device, io, field, &pair[0]);
    int used_error = amdgpu_file_number(device, io, (enum amdgpu_field)(field + 1), &pair[1]);
    if (!total_error && !used_error)
        sample_memory(sample, total_metric, pair[0], used_metric, pair[1]);
    else if (!total_error)
        sample_memory(sample, total_metric, pair[0], used_metric, 0);
    if (total_error)
        sample_unknown(sample, total_metric, io_reason(total_error));
    if (used_error)
        sample_unknown(sample, used_metric, io_reason(used_error));
    else if (total_error)
        sample_u64(sample, used_metric, pair[1]);
    return metrics_valid(sample->valid, total_metric) && metrics_valid(sample->valid, used_metric);
}

/* What a process on an APU can have: the carve-out, which lies outside the host's memory, and as much of that as may be mapped.
 * GTT limits beyond the host's memory exist (ROCm issue 6004). */
void amdgpu_sample_unified(const struct amdgpu_device *device, struct sample *sample, const uint64_t vram[2], const uint64_t gtt[2])
{
    uint64_t mapped = gtt[0];
    if (device->host_memory && mapped > device->host_memory)
        mapped = device->host_memory;
    sample_memory(sample, METRIC_UNIFIED_TOTAL, vram[0] + mapped, METRIC_UNIFIED_USED, vram[1] + gtt[1]);
}

void amdgpu_read_memory(struct amdgpu_device *device, struct io *io, struct sample *sample)
{
    uint64_t vram[2] = {0}, visible[2] = {0}, gtt[2] = {0};
    bool sound = read_pair(device, io, sample, AMDGPU_VRAM_TOTAL, METRIC_VRAM_TOTAL, METRIC_VRAM_USED, vram);
    (void)read_pair(device, io, sample, AMDGPU_VISIBLE_TOTAL, METRIC_VRAM_VISIBLE_TOTAL, METRIC_VRAM_VISIBLE_USED, visible);
    sound = read_pair(device, io, sample, AMDGPU_GTT_TOTAL, METRIC_GTT_TOTAL, METRIC_GTT_USED, gtt) && sound;
    if (device->facts.pool != POOL_UNIFIED)
        return;
    if (sound) {
        amdgpu_sample_unified(device, sample, vram, gtt);
        return;
    }
    unsigned reason = sample->reasons[METRIC_GTT_USED] ? sample->reasons[METRIC_GTT_USED] : sample->reasons[METRIC_VRAM_USED];
    sample_unknown(sample, METRIC_UNIFIED_TOTAL, reason);
    sample_unknown(sample, METRIC_UNIFIED_USED, reason);
}

/* --- busy -------------------------------------------------------------------------------------------------- */

static bool is_known(const struct sample *sample, int metric) { return metrics_valid(sample->valid, metric); }

/* From its file, where the firmware's table does not tell it. */
static void sample_percent(struct amdgpu_device *device, struct io *io, struct sample *sample, enum amdgpu_field field, int metric)
{
    uint64_t percent;
    if (is_known(sample, metric))
        return;
    int error = amdgpu_file_number(device, io, field, &percent);
    if (error)
        sample_unknown(sample, metric, io_reason(error));
    else
        sample_f64_within(sample, metric, (double)percent, 0, 100);
}

static void sample_clocks(struct amdgpu_device *device, struct io *io, struct sample *sample)
{
    static const struct {
        enum amdgpu_field field;
        int metric;
    } tables[] = {{AMDGPU_GFX_CLOCKS, METRIC_GFX_CLOCK},
                  {AMDGPU_MEMORY_CLOCKS, METRIC_MEMORY_CLOCK},
                  {AMDGPU_SOC_CLOCKS, METRIC_SOC_CLOCK},
                  {AMDGPU_MEDIA_CLOCKS, METRIC_MEDIA_CLOCK}};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (sample->reasons[tables[i].metric] == REASON_NOT_SUPPORTED)
            amdgpu_clock_sample(device, io, sample, tables[i].field, tables[i].metric);
    amdgpu_clock_drop_stopped(sample, METRIC_GFX_CLOCK);
    amdgpu_clock_drop_stopped(sample, METRIC_MEMORY_CLOCK);
}

/* --- all of it -------------------------------------------------------------------------------------------------------- */

/* Of the two dies of an MI250 only the first measures: the other one tells zero for the power of both (aldebaran_ppt.c). */
static void drop_power_of_second_die(const struct amdgpu_device *device, struct sample *sample)
{
    static const int metrics[] = {METRIC_POWER_NOW, METRIC_POWER_AVERAGE};
    if (strcmp(device->facts.arch, "gfx90a") != 0)
        return;
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
        if (metrics_valid(sample->valid, metrics[i]) && sample->values[metrics[i]].f64 <= 0)
            sample_unknown(sample, metrics[i], REASON_NOT_SUPPORTED);
}

/* Who is asked first for what, and why; a source that does not know leaves the field to the next, and never takes a value away.
 *   temperatures, power, cap, fan,   hwmon (labels say which is which, and what is absent has no file), then gpu_metrics
 *   voltage, clocks of gfx, memory
 *   loads, clocks of SoC and video,  gpu_metrics (one read for all, hundredths where the files have whole percent), then the
 *   link                             file of each, for the link then the bridges
 *   energy, throttling, DRAM, NPU    gpu_metrics alone
 *   memory, replays                  their files, replays then gpu_metrics
 *   clocks that nobody tells         the firmware's average of gpu_metrics, flagged as estimated */
void amdgpu_read_all(struct amdgpu_device *device, struct io *io, struct sample *sample)
{
    amdgpu_read_memory(device, io, sample);
    hwmon_sample(&device->hwmon, io, sample);
    amdgpu_metrics_read(device, io);
    amdgpu_metrics_fill(device, sample);
    sample_percent(device, io, sample, AMDGPU_GFX_BUSY, METRIC_GFX_BUSY);
    sample_percent(device, io, sample, AMDGPU_MEMORY_BUSY, METRIC_MEMORY_BUSY);
    sample_percent(device, io, sample, AMDGPU_MEDIA_BUSY, METRIC_MEDIA_BUSY);
    amdgpu_metrics_doubt_load(device, sample);
    drop_power_of_second_die(device, sample);
    amdgpu_clock_drop_stopped(sample, METRIC_GFX_CLOCK);
    amdgpu_clock_drop_stopped(sample, METRIC_MEMORY_CLOCK);
    sample_clocks(device, io, sample);
    amdgpu_metrics_fill_averages(device, sample);
    amdgpu_link_sample(device, io, sample);
}

static bool above(const struct sample *sample, int metric, double limit)
{
    return is_known(sample, metric) && sample->values[metric].f64 > limit;
}

/* Looking at a card makes it a few percent busy. */
bool amdgpu_is_busy(const struct sample *sample)
{
    return above(sample, METRIC_GFX_BUSY, BUSY_FROM_PERCENT) || above(sample, METRIC_MEMORY_BUSY, BUSY_FROM_PERCENT) ||
           above(sample, METRIC_MEDIA_BUSY, 0);
}
