#include "broker/providers/hwmon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
enum { HWMON_MOST = 24 /* channels of a kind that are looked at */ };

/* Which labels mean what. Drivers that label nothing have one sensor of a kind, and it is the first one of the list:
 * temp1 of radeon, nouveau and i915 is the chip itself. */
struct hwmon_rule {
    enum hwmon_channel channel;
    const char *kind;
    const char *suffix;
    const char *labels[4];
    bool unlabelled; /* KIND1 without a label will do */
    enum device_limit limit;
    bool has_limit;
};

/* Labels: amdgpu_pm.c (edge, junction, mem, sclk, mclk, vddgfx, PPT and slowPPT are power1), xe_hwmon.c (pkg, vram). */
static const struct hwmon_rule rules[HWMON_CHANNEL_COUNT] = {
    {HWMON_EDGE, "temp", "input", {"edge", "pkg"}, true, LIMIT_EDGE_CRITICAL, true},
    {HWMON_JUNCTION, "temp", "input", {"junction", "hotspot"}, false, LIMIT_JUNCTION_CRITICAL, true},
    {HWMON_MEMORY, "temp", "input", {"mem", "vram"}, false, LIMIT_MEMORY_CRITICAL, true},
    {HWMON_POWER_NOW, "power", "input", {"PPT", "slowPPT", "card", "pkg"}, true, 0, false},
    {HWMON_POWER_AVERAGE, "power", "average", {"PPT", "slowPPT", "card", "pkg"}, true, 0, false},
    {HWMON_POWER_CAP, "power", "cap", {"PPT", "slowPPT", "card", "pkg"}, true, 0, false},
    {HWMON_FAN, "fan", "input", {NULL}, true, 0, false},
    {HWMON_DUTY, "pwm", "", {NULL}, true, 0, false},
    {HWMON_GFX_CLOCK, "freq", "input", {"sclk"}, true, 0, false},
    {HWMON_MEMORY_CLOCK, "freq", "input", {"mclk"}, false, 0, false},
    {HWMON_VOLTAGE_GFX, "in", "input", {"vddgfx"}, false, 0, false},
};

void hwmon_init(struct hwmon *hwmon, const char *device)
{
    memset(hwmon, 0, sizeof *hwmon);
    (void)snprintf(hwmon->device, sizeof hwmon->device, "%s", device);
    for (int i = 0; i < HWMON_CHANNEL_COUNT; i++)
        io_file_init(&hwmon->files[i], "%s", "");
}

void hwmon_close(struct hwmon *hwmon, struct io *io)
{
    for (int i = 0; i < HWMON_CHANNEL_COUNT; i++) {
        io_file_close(io, &hwmon->files[i]);
        hwmon->present[i] = false;
    }
    hwmon->folder[0] = '\0';
}

/* --- finding ---------------------------------------------------------------------------------------------------------- */

static bool take_hwmon(void *context, const char *name)
{
    struct hwmon *hwmon = context;
    if (strncmp(name, "hwmon", 5) != 0 || strlen(name) > 32)
        return true;
    (void)snprintf(hwmon->folder, sizeof hwmon->folder, "%.255s/hwmon/%.32s", hwmon->device, name);
    return false;
}

/* Number of the channel of that kind with one of these labels, the first label before the second, or -1. in starts at 0, the
 * others at 1. */
static int labelled_number(struct io *io, const char *folder, const char *kind, const char *const *labels, int label_count,
                           bool *refused)
{
    char path[448], text[64];
    int best = -1, best_rank = label_count;
    for (int n = strcmp(kind, "in") == 0 ? 0 : 1; n <= HWMON_MOST && best_rank > 0; n++) {
        (void)snprintf(path, sizeof path, "%.319s/%.8s%d_label", folder, kind, n);
        long got = io_read_text(io, path, text, sizeof text);
        *refused = *refused || (got < 0 && got != -ENOENT && got != -ENODATA);
        if (got <= 0)
            continue;
        for (int rank = 0; rank < best_rank && labels[rank]; rank++)
            if (strcmp(text, labels[rank]) == 0) {
                best = n;
                best_rank = rank;
            }
    }
    return best;
}

bool hwmon_labelled(struct io *io, const char *folder, const char *kind, const char *label, struct io_file *file)
{
    bool refused = false;
    int number = labelled_number(io, folder, kind, &label, 1, &refused);
    if (number >= 0)
        io_file_init(file, "%.319s/%.8s%d_input", folder, kind, number);
    return number >= 0;
}

static int rule_number(struct io *io, const char *folder, const struct hwmon_rule *rule, bool *refused)
{
    char path[448];
    if (!rule->labels[0])
        return 1;
    int number = labelled_number(io, folder, rule->kind, rule->labels, 4, refused);
    if (number >= 0 || !rule->unlabelled)
        return number;
    (void)snprintf(path, sizeof path, "%.319s/%.8s1_label", folder, rule->kind);
    return io_exists(io, path) ? -1 : 1;
}

static void read_limit(struct hwmon *hwmon, struct io *io, const struct hwmon_rule *rule, int number)
{
    char path[448];
    uint64_t millidegrees;
    (void)snprintf(path, sizeof path, "%.319s/%.8s%d_crit", hwmon->folder, rule->kind, number);
    if (io_read_u64(io, path, 10, &millidegrees) == 0 && millidegrees > 0 && millidegrees <= TEMPERATURE_HIGH * 1000)
        hwmon->limits[rule->limit] = (double)millidegrees / 1000;
}

static void find_channel(struct hwmon *hwmon, struct io *io, const struct hwmon_rule *rule, bool *refused)
{
    int number = rule_number(io, hwmon->folder, rule, refused);
    if (number < 0)
        return;
    io_file_init(&hwmon->files[rule->channel], "%.319s/%.8s%d%s%.8s", hwmon->folder, rule->kind, number, rule->suffix[0] ? "_" : "",
                 rule->suffix);
    hwmon->present[rule->channel] = true;
    if (rule->has_limit)
        read_limit(hwmon, io, rule, number);
}

static void resolve(struct hwmon *hwmon, struct io *io)
{
    char path[256];
    uint64_t value;
    hwmon_close(hwmon, io);
    hwmon->refused = false;
    (void)snprintf(path, sizeof path, "%.240s/hwmon", hwmon->device);
    (void)io->operations->list(io, path, take_hwmon, hwmon);
    if (!hwmon->folder[0])
        return;
    for (int i = 0; i < HWMON_CHANNEL_COUNT; i++)
        find_channel(hwmon, io, &rules[i], &hwmon->refused);
    char limit[448];
    (void)snprintf(limit, sizeof limit, "%.319s/power1_crit", hwmon->folder);
    if (io_read_u64(io, limit, 10, &value) == 0)
        hwmon->power_critical = (double)value / 1e6;
    (void)snprintf(limit, sizeof limit, "%.319s/power1_cap_default", hwmon->folder);
    if (io_read_u64(io, limit, 10, &value) == 0)
        hwmon->power_default = (double)value / 1e6;
    (void)snprintf(limit, sizeof limit, "%.319s/pwm1_max", hwmon->folder);
    hwmon->duty_maximum = io_read_u64(io, limit, 10, &value) == 0 && value > 0 ? (double)value : 255;
}

/* --- reading ---------------------------------------------------------------------------------------------------------- */

/* A folder that is gone is looked for again: at once, then not for a second. The errno of the field, 0 with its value. */
static int read_channel(struct hwmon *hwmon, struct io *io, uint64_t mono_ns, enum hwmon_channel channel, int64_t *value)
{
    if (!hwmon->present[channel])
        return -ENOENT;
    int error = io_file_i64(io, &hwmon->files[channel], value);
    if ((error == -ENOENT || error == -ENODEV) && !io_exists(io, hwmon->folder) && mono_ns >= hwmon->retry_ns) {
        hwmon->retry_ns = mono_ns + SECOND;
        resolve(hwmon, io);
        error = hwmon->present[channel] ? io_file_i64(io, &hwmon->files[channel], value) : -ENOENT;
    } else if (error == -ENOENT && hwmon->files[channel].fd < 0) {
        hwmon->present[channel] = false; /* this one sensor does not exist: not asked for again */
    }
    return error;
}

enum { POWER_MOST = 3000 }; /* W: no board draws more, whatever its limits say */

/* Power beyond twice the limit is a misread counter or register (B570 on kernel 6.16: 3868 W). */
static double power_maximum(const struct hwmon *hwmon, double cap)
{
    double limit = cap > hwmon->power_critical ? cap : hwmon->power_critical;
    return limit > 0 && 2 * limit < POWER_MOST ? 2 * limit : POWER_MOST;
}

struct reading {
    int error;
    double value;
};

static void put(struct sample *sample, int metric, const struct reading *reading, double low, double high)
{
    if (reading->error)
        sample_unknown(sample, metric, io_reason(reading->error));
    else
        sample_f64_within(sample, metric, reading->value, low, high);
}

/* Some registers answer milliwatts where watts are due: 7 to 15 mW on an APU that computes (drm/amd issue 3999). */
static void put_power(struct sample *sample, int metric, const struct reading *reading, double most)
{
    put(sample, metric, reading, reading->value > 0 ? 0.05 : 0, most);
}

/* The same where zero is the driver's way to say "none" or "off". */
static void put_above_zero(struct sample *sample, int metric, const struct reading *reading, double high)
{
    if (!reading->error && reading->value <= 0)
        sample_unknown(sample, metric, REASON_NOT_SUPPORTED);
    else
        put(sample, metric, reading, 0, high);
}

static void put_all(struct hwmon *hwmon, const struct reading *readings, struct sample *sample)
{
    double cap = readings[HWMON_POWER_CAP].error ? 0 : readings[HWMON_POWER_CAP].value;
    double most = power_maximum(hwmon, cap);
    put(sample, METRIC_TEMPERATURE_EDGE, &readings[HWMON_EDGE], TEMPERATURE_LOW, TEMPERATURE_HIGH);
    put(sample, METRIC_TEMPERATURE_JUNCTION, &readings[HWMON_JUNCTION], TEMPERATURE_LOW, TEMPERATURE_HIGH);
    put(sample, METRIC_TEMPERATURE_MEMORY, &readings[HWMON_MEMORY], TEMPERATURE_LOW, TEMPERATURE_HIGH);
    put_power(sample, METRIC_POWER_NOW, &readings[HWMON_POWER_NOW], most);
    put_power(sample, METRIC_POWER_AVERAGE, &readings[HWMON_POWER_AVERAGE], most);
    put_above_zero(sample, METRIC_POWER_CAP, &readings[HWMON_POWER_CAP], POWER_MOST);
    put(sample, METRIC_FAN_RPM, &readings[HWMON_FAN], 0, 30000);
    put(sample, METRIC_FAN_PERCENT, &readings[HWMON_DUTY], 0, 100);
    put(sample, METRIC_GFX_CLOCK, &readings[HWMON_GFX_CLOCK], 0, 10000);
    put(sample, METRIC_MEMORY_CLOCK, &readings[HWMON_MEMORY_CLOCK], 0, 30000);
    put_above_zero(sample, METRIC_VOLTAGE_GFX, &readings[HWMON_VOLTAGE_GFX], 3000);
}

void hwmon_sample(struct hwmon *hwmon, struct io *io, struct sample *sample)
{
    /* Of the file's unit in the metric's: millidegrees, microwatts, hertz, millivolts. */
    const double units[HWMON_CHANNEL_COUNT] = {
        [HWMON_EDGE] = 1e3,          [HWMON_JUNCTION] = 1e3,     [HWMON_MEMORY] = 1e3,   [HWMON_POWER_NOW] = 1e6,
        [HWMON_POWER_AVERAGE] = 1e6, [HWMON_POWER_CAP] = 1e6,    [HWMON_FAN] = 1,        [HWMON_DUTY] = 1,
        [HWMON_GFX_CLOCK] = 1e6,     [HWMON_MEMORY_CLOCK] = 1e6, [HWMON_VOLTAGE_GFX] = 1};
    struct reading readings[HWMON_CHANNEL_COUNT];
    if ((!hwmon->folder[0] || hwmon->refused) && sample->mono_ns >= hwmon->retry_ns) {
        resolve(hwmon, io);
        hwmon->retry_ns = sample->mono_ns + (hwmon->refused     ? SECOND
                                             : hwmon->folder[0] ? 0
                                                                : 10 * SECOND); /* some have none at all */
    }
    for (int i = 0; i < HWMON_CHANNEL_COUNT; i++) {
        int64_t value = 0;
        readings[i].error = read_channel(hwmon, io, sample->mono_ns, (enum hwmon_channel)i, &value);
        readings[i].value = (double)value / (i == HWMON_DUTY ? hwmon->duty_maximum / 100 : units[i]);
    }
    put_all(hwmon, readings, sample);
}
