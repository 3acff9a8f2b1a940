/* The firmware's table gpu_metrics in a sample, and what a table of its kind gets wrong. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "broker/providers/amdgpu.h"

/* Strix tells its load in other units before a firmware: which one runs is asked once, and only where it matters. */
static uint32_t smc_firmware(struct amdgpu_device *device, struct io *io)
{
    char path[320];
    uint64_t version = 0;
    if (device->firmware_asked)
        return device->smc_firmware;
    (void)snprintf(path, sizeof path, "%.255s/fw_version/smc_fw_version", device->display.path);
    int error = io_read_u64(io, path, 16, &version);
    device->firmware_asked = error != -EBUSY && error != -EPERM; /* it fell asleep, or is being reset */
    device->smc_firmware = error || version > UINT32_MAX ? 0 : (uint32_t)version;
    return device->smc_firmware;
}

void amdgpu_metrics_read(struct amdgpu_device *device, struct io *io)
{
    unsigned char bytes[GM_MOST_BYTES];
    memset(&device->table, 0, sizeof device->table);
    if (device->absent[AMDGPU_TABLE])
        return;
    long got = io_file_bytes(io, &device->files[AMDGPU_TABLE], bytes, sizeof bytes, gpu_metrics_size);
    device->absent[AMDGPU_TABLE] = got == -ENOENT;
    if (got >= 4 && gpu_metrics_parse(bytes, (size_t)got, bytes[2] == 3 ? smc_firmware(device, io) : 0, &device->table) != 0)
        memset(&device->table, 0, sizeof device->table);
}

/* --- filling ---------------------------------------------------------------------------------------------------------- */

struct filling {
    int metric;
    enum gpu_metrics_field field;
    double low, high;
};

static const struct filling fillings[] = {
    {METRIC_GFX_BUSY, GM_GFX_BUSY, 0, 100},
    {METRIC_MEMORY_BUSY, GM_MEMORY_BUSY, 0, 100},
    {METRIC_MEDIA_BUSY, GM_MEDIA_BUSY, 0, 100},
    {METRIC_NPU_BUSY, GM_NPU_BUSY, 0, 100},
    {METRIC_TEMPERATURE_EDGE, GM_TEMPERATURE_EDGE, TEMPERATURE_LOW, TEMPERATURE_HIGH},
    {METRIC_TEMPERATURE_JUNCTION, GM_TEMPERATURE_HOTSPOT, TEMPERATURE_LOW, TEMPERATURE_HIGH},
    {METRIC_TEMPERATURE_MEMORY, GM_TEMPERATURE_MEMORY, TEMPERATURE_LOW, TEMPERATURE_HIGH},
    {METRIC_GFX_CLOCK, GM_GFX_CLOCK, 0, AMDGPU_CLOCK_MOST},
    {METRIC_MEMORY_CLOCK, GM_MEMORY_CLOCK, 0, AMDGPU_CLOCK_MOST},
    {METRIC_SOC_CLOCK, GM_SOC_CLOCK, 0, AMDGPU_CLOCK_MOST},
    {METRIC_MEDIA_CLOCK, GM_MEDIA_CLOCK, 0, AMDGPU_CLOCK_MOST},
    {METRIC_FAN_RPM, GM_FAN_RPM, 0, FAN_MOST},
    {METRIC_VOLTAGE_GFX, GM_VOLTAGE_GFX, 1, VOLTAGE_MOST},
    {METRIC_DRAM_READ, GM_DRAM_READ, 0, 1e14},
    {METRIC_DRAM_WRITE, GM_DRAM_WRITE, 0, 1e14},
};

/* A clock of zero is no average: the engine was off. */
static const struct filling averages[] = {
    {METRIC_GFX_CLOCK, GM_GFX_CLOCK_AVERAGE, 1, AMDGPU_CLOCK_MOST},
    {METRIC_MEMORY_CLOCK, GM_MEMORY_CLOCK_AVERAGE, 1, AMDGPU_CLOCK_MOST},
    {METRIC_SOC_CLOCK, GM_SOC_CLOCK_AVERAGE, 1, AMDGPU_CLOCK_MOST},
    {METRIC_MEDIA_CLOCK, GM_MEDIA_CLOCK_AVERAGE, 1, AMDGPU_CLOCK_MOST},
};

static bool known(const struct sample *sample, int metric) { return metrics_valid(sample->valid, metric); }

static double value_or(const struct sample *sample, int metric, double otherwise)
{
    return known(sample, metric) ? sample->values[metric].f64 : otherwise;
}

/* Only what is unknown is filled, and only by what is known. */
static void fill(const struct gpu_metrics *table, const struct filling *filling, struct sample *sample)
{
    if (!known(sample, filling->metric) && table->known[filling->field])
        sample_f64_within(sample, filling->metric, table->values[filling->field], filling->low, filling->high);
}

/* power1_input of some APUs reads 7 to 15 mW (drm/amd issue 3999): hwmon has dropped it, and the socket's average stands for it. */
static void fill_power(const struct amdgpu_device *device, struct sample *sample)
{
    double most = hwmon_power_maximum(&device->hwmon, value_or(sample, METRIC_POWER_CAP, 0));
    const struct filling now = {METRIC_POWER_NOW, GM_POWER_NOW, 0, most};
    const struct filling average = {METRIC_POWER_AVERAGE, GM_POWER_AVERAGE, 0, most};
    const struct filling stand_in = {METRIC_POWER_NOW, GM_POWER_AVERAGE, 0, most};
    bool dropped = sample->reasons[METRIC_POWER_NOW] == REASON_IMPLAUSIBLE;
    fill(&device->table, &now, sample);
    fill(&device->table, &average, sample);
    if (!dropped || known(sample, METRIC_POWER_NOW))
        return;
    fill(&device->table, &stand_in, sample);
    if (known(sample, METRIC_POWER_NOW))
        sample_flag(sample, QUALITY_ESTIMATED);
}

/* 2^-16 J is documented of Instinct's tables (1.2, 1.4 and later, MI100's 1.1). Navi's say nothing, and mean something else: a card
 * of RDNA 2 had counted 17691682 in the 533.5 s of its driver's clock, at 36 W. That would be 270 J, but is 17.7 kJ, in mJ. Joules
 * summed up from power are better than joules that are wrong by a factor. */
static bool unit_of_energy_is_known(const struct amdgpu_device *device)
{
    const struct gpu_metrics *table = &device->table;
    bool navi = table->format == 1 && (table->content == 1 || table->content == 3);
    return !navi || (table->content == 1 && strcmp(device->facts.arch, "gfx908") == 0);
}

/* The counter may stand still or go back until a reboot (amdsmi issue 115): joules never do. */
static void fill_energy(struct amdgpu_device *device, struct sample *sample)
{
    const struct gpu_metrics *table = &device->table;
    if (known(sample, METRIC_ENERGY) || !table->known[GM_ENERGY] || !unit_of_energy_is_known(device))
        return;
    double most = hwmon_power_maximum(&device->hwmon, value_or(sample, METRIC_POWER_CAP, 0));
    (void)energy_counter_feed(&device->energy, table->bits[GM_ENERGY], sample->mono_ns, most);
    if (device->energy.seen)
        sample_f64(sample, METRIC_ENERGY, energy_counter_joules(&device->energy));
}

void amdgpu_metrics_fill(struct amdgpu_device *device, struct sample *sample)
{
    for (size_t i = 0; i < sizeof fillings / sizeof fillings[0]; i++)
        fill(&device->table, &fillings[i], sample);
    fill_power(device, sample);
    fill_energy(device, sample);
    amdgpu_throttle_sample(&device->throttle, &device->table, value_or(sample, METRIC_TEMPERATURE_JUNCTION, (double)NAN),
                           device->hwmon.limits[LIMIT_JUNCTION_CRITICAL], sample);
}

void amdgpu_metrics_fill_averages(const struct amdgpu_device *device, struct sample *sample)
{
    for (size_t i = 0; i < sizeof averages / sizeof averages[0]; i++) {
        double average = device->table.values[averages[i].field];
        if (known(sample, averages[i].metric) || average < averages[i].low || average > averages[i].high)
            continue;
        fill(&device->table, &averages[i], sample);
        if (known(sample, averages[i].metric))
            sample_flag(sample, QUALITY_ESTIMATED);
    }
}

/* --- load ------------------------------------------------------------------------------------------------------------- */

/* Raven, Raven2 and Picasso say 100 % for ever (drm/amd issue 1932). */
static bool has_stuck_load(const struct amdgpu_device *device)
{
    return device->display.device == 0x15dd || device->display.device == 0x15d8;
}

/* Firmware that pins the load at 100 % shows in a card that draws a tenth of what it may (rocm-systems issue 8663). With its clock
 * stopped as well it is surely idle. With a clock it may be a program that waits busily: told, with a doubt. */
void amdgpu_metrics_doubt_load(const struct amdgpu_device *device, struct sample *sample)
{
    if (known(sample, METRIC_GFX_BUSY) && has_stuck_load(device)) {
        sample_unknown(sample, METRIC_GFX_BUSY, REASON_NOT_SUPPORTED);
        return;
    }
    double limit = value_or(sample, METRIC_POWER_CAP, device->hwmon.power_default);
    double power = value_or(sample, METRIC_POWER_NOW, value_or(sample, METRIC_POWER_AVERAGE, (double)NAN));
    if (value_or(sample, METRIC_GFX_BUSY, 0) < 100 || limit <= 0 || !(power < limit / 10))
        return;
    sample_flag(sample, QUALITY_INCONSISTENT);
    if (value_or(sample, METRIC_GFX_CLOCK, 1) <= 0)
        sample_f64_within(sample, METRIC_GFX_BUSY, 100, 0, 99); /* dropped, and flagged */
}
