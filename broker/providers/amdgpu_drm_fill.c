/* What sysfs does not say, the driver may answer through the render node. That is second choice: opening a node and each request to
 * it wake a sleeping card (amdgpu_driver_open_kms and amdgpu_drm_ioctl call pm_runtime_get_sync), it takes the rights of the
 * group "render", and power comes in whole watts. So the node is opened only where a metric is missing, and kept only while it
 * answers.
 *
 * The requests are those of libdrm's amdgpu_query_info and amdgpu_query_sensor_info, in the layouts of its header, sent through
 * struct io. */
#include <amdgpu_drm.h>
#include <drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "broker/providers/amdgpu.h"

#define SECOND UINT64_C(1000000000)
/* amdgpu_info_ioctl answers EINVAL for a sensor that is not there and for one that cannot be read just now alike. */
static const uint64_t ask_again_ns = 60 * SECOND;
/* Not in the headers of libdrm 2.4.114. */
enum { SENSOR_GPU_INPUT_POWER = 0xc };
enum { INTERRUPTS_MOST = 8, WATTS_MOST = 3000, MILLIVOLTS_MOST = 3000 };

enum { ASK_MEMORY, ASK_INPUT_POWER, ASK_AVERAGE_POWER, ASK_OTHERS };
static const struct {
    uint32_t sensor;
    int metric;
    double scale, low, high; /* 0 is below low where it would mean "off" or "not known" */
} sensors[AMDGPU_DRM_QUESTIONS] = {
    /* The units are those of amdgpu_info_ioctl: W, millidegrees, %, MHz, mV. */
    [ASK_INPUT_POWER] = {SENSOR_GPU_INPUT_POWER, METRIC_POWER_NOW, 1, 0, WATTS_MOST},
    [ASK_AVERAGE_POWER] = {AMDGPU_INFO_SENSOR_GPU_AVG_POWER, METRIC_POWER_AVERAGE, 1, 0, WATTS_MOST},
    [ASK_OTHERS] = {AMDGPU_INFO_SENSOR_GPU_TEMP, METRIC_TEMPERATURE_EDGE, 1e-3, TEMPERATURE_LOW, TEMPERATURE_HIGH},
    {AMDGPU_INFO_SENSOR_GPU_LOAD, METRIC_GFX_BUSY, 1, 0, 100},
    {AMDGPU_INFO_SENSOR_GFX_SCLK, METRIC_GFX_CLOCK, 1, 1, AMDGPU_CLOCK_MOST},
    {AMDGPU_INFO_SENSOR_GFX_MCLK, METRIC_MEMORY_CLOCK, 1, 1, AMDGPU_CLOCK_MOST},
    {AMDGPU_INFO_SENSOR_VDDGFX, METRIC_VOLTAGE_GFX, 1, 1, MILLIVOLTS_MOST},
};
_Static_assert(ASK_OTHERS + 5 == AMDGPU_DRM_QUESTIONS, "a place for each question");

void amdgpu_drm_init(struct amdgpu_device *device)
{
    memset(&device->drm, 0, sizeof device->drm);
    device->drm.node = -1;
}

void amdgpu_drm_close(struct amdgpu_device *device, struct io *io)
{
    if (device->drm.node >= 0)
        io->operations->close(io, device->drm.node);
    device->drm.node = -1;
}

/* --- asking ------------------------------------------------------------------------------------------------------------------ */

static int open_node(struct amdgpu_device *device, struct io *io)
{
    char path[64];
    if (device->drm.node >= 0)
        return 0;
    (void)snprintf(path, sizeof path, "/dev/dri/renderD%d", device->display.render_minor);
    int node = io->operations->open(io, path, O_RDWR);
    if (node < 0)
        return node;
    device->drm.node = node;
    return 0;
}

static int request(struct amdgpu_device *device, struct io *io, uint32_t query, uint32_t sensor, void *out, uint32_t size)
{
    struct drm_amdgpu_info info = {.return_pointer = (uintptr_t)out, .return_size = size, .query = query};
    info.sensor_info.type = sensor;
    int error = open_node(device, io);
    for (int i = 0; i < INTERRUPTS_MOST && !error; i++) {
        error =
            io->operations->ioctl(io, device->drm.node, DRM_IOW(DRM_COMMAND_BASE + DRM_AMDGPU_INFO, struct drm_amdgpu_info), &info);
        if (error != -EINTR && error != -EAGAIN)
            return error < 0 ? error : 0;
        error = 0;
    }
    return error ? error : -EAGAIN;
}

/* Unknown because nobody here can tell: an error, a value that was dropped and a sleeping card stand for themselves. */
static bool lacking(const struct sample *sample, int metric)
{
    return sample->reasons[metric] == REASON_NOT_SUPPORTED || sample->reasons[metric] == REASON_NO_PERMISSION;
}

static bool known_or_lacking(const struct sample *sample, int metric)
{
    return metrics_valid(sample->valid, metric) || lacking(sample, metric);
}

/* --- memory ------------------------------------------------------------------------------------------------------------------ */

static const int memory_metrics[3][2] = {{METRIC_VRAM_TOTAL, METRIC_VRAM_USED},
                                         {METRIC_VRAM_VISIBLE_TOTAL, METRIC_VRAM_VISIBLE_USED},
                                         {METRIC_GTT_TOTAL, METRIC_GTT_USED}};

static bool wants_memory(const struct sample *sample)
{
    for (int i = 0; i < 3; i++)
        if (lacking(sample, memory_metrics[i][0]) || lacking(sample, memory_metrics[i][1]))
            return true;
    return false;
}

/* The sizes of the heaps are those that mem_info_*_total shows. */
static void fill_pair(struct sample *sample, const int metrics[2], const struct drm_amdgpu_heap_info *heap)
{
    bool total = lacking(sample, metrics[0]), used = lacking(sample, metrics[1]);
    if ((!total && !used) || !known_or_lacking(sample, metrics[0]) || !known_or_lacking(sample, metrics[1]))
        return;
    sample_memory(sample, metrics[0], total ? heap->total_heap_size : sample->values[metrics[0]].u64, metrics[1],
                  used ? heap->heap_usage : sample->values[metrics[1]].u64);
}

static bool fill_unified(const struct amdgpu_device *device, struct sample *sample)
{
    if (device->facts.pool != POOL_UNIFIED || !lacking(sample, METRIC_UNIFIED_TOTAL))
        return false;
    for (int i = 0; i < 3; i += 2)
        if (!metrics_valid(sample->valid, memory_metrics[i][0]) || !metrics_valid(sample->valid, memory_metrics[i][1]))
            return false;
    uint64_t vram[2] = {sample->values[METRIC_VRAM_TOTAL].u64, sample->values[METRIC_VRAM_USED].u64};
    uint64_t gtt[2] = {sample->values[METRIC_GTT_TOTAL].u64, sample->values[METRIC_GTT_USED].u64};
    amdgpu_sample_unified(device, sample, vram, gtt);
    return true;
}

static int fill_memory(struct amdgpu_device *device, struct io *io, struct sample *sample)
{
    struct drm_amdgpu_memory_info memory;
    memset(&memory, 0, sizeof memory);
    int error = request(device, io, AMDGPU_INFO_MEMORY, 0, &memory, sizeof memory);
    if (error)
        return error;
    fill_pair(sample, memory_metrics[0], &memory.vram);
    fill_pair(sample, memory_metrics[1], &memory.cpu_accessible_vram);
    fill_pair(sample, memory_metrics[2], &memory.gtt);
    (void)fill_unified(device, sample);
    return 0;
}

/* --- sensors ----------------------------------------------------------------------------------------------------------------- */

static bool wants(const struct amdgpu_device *device, const struct sample *sample, int question)
{
    if (question == ASK_MEMORY)
        return wants_memory(sample);
    int metric = sensors[question].metric;
    if (!lacking(sample, metric))
        return false;
    /* gpu_busy_percent is the same sensor: where the file was read and not believed, this answer is not better. */
    if (metric == METRIC_GFX_BUSY)
        return device->absent[AMDGPU_GFX_BUSY] || sample->reasons[metric] == REASON_NO_PERMISSION;
    /* Since Linux 6.6 the average falls back to power now (amdgpu_kms.c). Where now is known, it may be just that. */
    return question != ASK_AVERAGE_POWER || !metrics_valid(sample->valid, METRIC_POWER_NOW);
}

static int fill_sensor(struct amdgpu_device *device, struct io *io, struct sample *sample, int question)
{
    uint32_t raw = 0;
    int error = request(device, io, AMDGPU_INFO_SENSOR, sensors[question].sensor, &raw, sizeof raw);
    if (error)
        return error;
    if (raw == 0 && sensors[question].low > 0)
        return -ENODATA; /* switched off, as the voltage is in GFXOFF */
    double value = sensors[question].metric == METRIC_TEMPERATURE_EDGE ? (double)(int32_t)raw : (double)raw;
    sample_f64_within(sample, sensors[question].metric, value * sensors[question].scale, sensors[question].low,
                      sensors[question].high);
    return 0;
}

/* --- all of it --------------------------------------------------------------------------------------------------------------- */

/* Memory is what every amdgpu answers: that it is unknown is then for want of rights. */
static void note_refusal(struct sample *sample)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++)
            if (lacking(sample, memory_metrics[i][j]))
                sample_unknown(sample, memory_metrics[i][j], REASON_NO_PERMISSION);
}

void amdgpu_drm_fill(struct amdgpu_device *device, struct io *io, struct sample *sample)
{
    struct amdgpu_drm *drm = &device->drm;
    bool answered = false;
    /* Below a root there are only files, and no node of this machine may be opened for them. */
    if (io->root[0] || device->display.render_minor < 0)
        return;
    for (int i = 0; i < AMDGPU_DRM_QUESTIONS && sample->mono_ns >= drm->retry_ns; i++) {
        if (sample->mono_ns < drm->ask_ns[i] || !wants(device, sample, i))
            continue;
        int error = i == ASK_MEMORY ? fill_memory(device, io, sample) : fill_sensor(device, io, sample, i);
        answered = answered || !error;
        if (error)
            drm->ask_ns[i] = sample->mono_ns + ask_again_ns;
        drm->refused = drm->node < 0 && error == -EACCES;
        if (drm->node < 0) /* not to be opened: nothing else can be asked, either */
            drm->retry_ns = sample->mono_ns + ask_again_ns;
    }
    if (!answered)
        amdgpu_drm_close(device, io);
    if (drm->refused)
        note_refusal(sample);
}
