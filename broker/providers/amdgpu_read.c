#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/amdgpu.h"

#define SECOND UINT64_C(1000000000)
enum { TABLE_TEXT = 2048, CLOCK_MOST = 10000, BUSY_FROM_PERCENT = 5 };

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
};

void amdgpu_read_init(struct amdgpu_device *device)
{
    for (int i = 0; i < AMDGPU_FIELD_COUNT; i++)
        io_file_init(&device->files[i], "%s/%s", device->display.path, field_names[i]);
    hwmon_init(&device->hwmon, device->display.path);
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

static int read_number(struct amdgpu_device *device, struct io *io, enum amdgpu_field field, uint64_t *out)
{
    return device->absent[field] ? -ENOENT : note_absence(device, field, io_file_u64(io, &device->files[field], out));
}

static int read_table(struct amdgpu_device *device, struct io *io, enum amdgpu_field field, char text[TABLE_TEXT])
{
    if (device->absent[field])
        return -ENOENT;
    long got = io_file_read_all(io, &device->files[field], text, TABLE_TEXT);
    return note_absence(device, field, got < 0 ? (int)got : 0);
}

/* --- memory ----------------------------------------------------------------------------------------------------------- */

/* Reads a pair; the totals or the numbers in use may fail alone. True if both are sound. */
static bool read_pair(struct amdgpu_device *device, struct io *io, struct sample *sample, enum amdgpu_field field, int total_metric,
                      int used_metric, uint64_t pair[2])
{
    int total_error = read_number(device, io, field, &pair[0]);
    int used_error = read_number(device, io, (enum amdgpu_field)(field + 1), &pair[1]);
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
static void sample_unified(const struct amdgpu_device *device, struct sample *sample, const uint64_t vram[2], const uint64_t gtt[2])
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
        sample_unified(device, sample, vram, gtt);
        return;
    }
    unsigned reason = sample->reasons[METRIC_GTT_USED] ? sample->reasons[METRIC_GTT_USED] : sample->reasons[METRIC_VRAM_USED];
    sample_unknown(sample, METRIC_UNIFIED_TOTAL, reason);
    sample_unknown(sample, METRIC_UNIFIED_USED, reason);
}

/* --- busy and clocks -------------------------------------------------------------------------------------------------- */

static void sample_percent(struct amdgpu_device *device, struct io *io, struct sample *sample, enum amdgpu_field field, int metric)
{
    uint64_t percent;
    int error = read_number(device, io, field, &percent);
    if (error)
        sample_unknown(sample, metric, io_reason(error));
    else
        sample_f64_within(sample, metric, (double)percent, 0, 100);
}

/* The end of the line's number, its unit after it: "0: 500Mhz", "S: 19Mhz" (deep sleep). NULL for another kind of line. */
static const char *clock_of_line(const char *line, double *mhz)
{
    const char *colon = line + strcspn(line, ":\n");
    char *end;
    if (*colon != ':')
        return NULL;
    *mhz = strtod(colon + 1, &end);
    return end != colon + 1 && (strncmp(end, "Mhz", 3) == 0 || strncmp(end, "MHz", 3) == 0) ? end + 3 : NULL;
}

int amdgpu_clock_now(const char *text, double *mhz)
{
    int result = -ENODATA;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        double value;
        const char *rest = clock_of_line(line, &value);
        size_t space = rest ? strspn(rest, " \t") : 0;
        if (rest && rest[space] == '*') {
            *mhz = value;
            result = 0;
        }
    }
    return result;
}

double amdgpu_clock_maximum(const char *text)
{
    double most = 0, value;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (clock_of_line(line, &value) && value > most && value < CLOCK_MOST)
            most = value;
    }
    return most;
}

static void sample_clock(struct amdgpu_device *device, struct io *io, struct sample *sample, enum amdgpu_field field, int metric)
{
    char text[TABLE_TEXT];
    double mhz = 0;
    int error = read_table(device, io, field, text);
    if (!error)
        error = amdgpu_clock_now(text, &mhz);
    if (error)
        sample_unknown(sample, metric, io_reason(error));
    else
        sample_f64_within(sample, metric, mhz, 0, CLOCK_MOST);
}

/* A running engine has a clock: 0 MHz is then a sensor that was not ready, and no fact (CPU-X#301). */
static void drop_stopped_clock(struct sample *sample, int metric)
{
    bool busy = metrics_valid(sample->valid, METRIC_GFX_BUSY) && sample->values[METRIC_GFX_BUSY].f64 > 0;
    if (busy && metrics_valid(sample->valid, metric) && sample->values[metric].f64 <= 0)
        sample_f64_within(sample, metric, 0, 1, CLOCK_MOST);
}

/* --- once a second ---------------------------------------------------------------------------------------------------- */

int amdgpu_link_now(const char *text, double *speed, uint64_t *width)
{
    int result = -ENODATA;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        double rate;
        unsigned lanes;
        size_t length = strcspn(line, "\n");
        if (memchr(line, '*', length) && sscanf(line, "%*u: %lfGT/s, x%u", &rate, &lanes) == 2 && rate > 0 && rate <= 256 &&
            lanes >= 1 && lanes <= 32) {
            *speed = rate;
            *width = lanes;
            result = 0;
        }
    }
    return result;
}

static void read_slow(struct amdgpu_device *device, struct io *io)
{
    char text[TABLE_TEXT];
    uint64_t replays = 0;
    int error = read_table(device, io, AMDGPU_LINKS, text);
    if (!error)
        error = amdgpu_link_now(text, &device->link_speed, &device->link_width);
    device->link_error = error ? pci_link(io, &device->display, &device->link_speed, &device->link_width) : 0;
    device->replays_error = read_number(device, io, AMDGPU_REPLAYS, &replays);
    if (device->replays_error)
        return;
    if (replays < device->replays)
        device->replays_before += device->replays;
    device->replays = replays;
}

static void sample_slow(struct amdgpu_device *device, struct io *io, struct sample *sample)
{
    if (sample->mono_ns >= device->slow_due_ns) {
        device->slow_due_ns = sample->mono_ns + SECOND;
        read_slow(device, io);
    }
    pci_link_sample(device->link_error, device->link_speed, device->link_width, sample);
    if (device->replays_error)
        sample_unknown(sample, METRIC_PCIE_REPLAYS, io_reason(device->replays_error));
    else
        sample_u64(sample, METRIC_PCIE_REPLAYS, device->replays_before + device->replays);
}

/* --- all of it -------------------------------------------------------------------------------------------------------- */

void amdgpu_read_all(struct amdgpu_device *device, struct io *io, struct sample *sample)
{
    amdgpu_read_memory(device, io, sample);
    sample_percent(device, io, sample, AMDGPU_GFX_BUSY, METRIC_GFX_BUSY);
    sample_percent(device, io, sample, AMDGPU_MEMORY_BUSY, METRIC_MEMORY_BUSY);
    sample_percent(device, io, sample, AMDGPU_MEDIA_BUSY, METRIC_MEDIA_BUSY);
    hwmon_sample(&device->hwmon, io, sample);
    drop_stopped_clock(sample, METRIC_GFX_CLOCK);
    drop_stopped_clock(sample, METRIC_MEMORY_CLOCK);
    if (sample->reasons[METRIC_GFX_CLOCK] == REASON_NOT_SUPPORTED)
        sample_clock(device, io, sample, AMDGPU_GFX_CLOCKS, METRIC_GFX_CLOCK);
    if (sample->reasons[METRIC_MEMORY_CLOCK] == REASON_NOT_SUPPORTED)
        sample_clock(device, io, sample, AMDGPU_MEMORY_CLOCKS, METRIC_MEMORY_CLOCK);
    sample_clock(device, io, sample, AMDGPU_SOC_CLOCKS, METRIC_SOC_CLOCK);
    sample_clock(device, io, sample, AMDGPU_MEDIA_CLOCKS, METRIC_MEDIA_CLOCK);
    drop_stopped_clock(sample, METRIC_GFX_CLOCK);
    drop_stopped_clock(sample, METRIC_MEMORY_CLOCK);
    sample_slow(device, io, sample);
}

static bool above(const struct sample *sample, int metric, double limit)
{
    return metrics_valid(sample->valid, metric) && sample->values[metric].f64 > limit;
}

/* Looking at a card makes it a few percent busy. */
bool amdgpu_is_busy(const struct sample *sample)
{
    return above(sample, METRIC_GFX_BUSY, BUSY_FROM_PERCENT) || above(sample, METRIC_MEMORY_BUSY, BUSY_FROM_PERCENT) ||
           above(sample, METRIC_MEDIA_BUSY, 0);
}
