#include "broker/providers/hwmon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
enum { HWMON_MOST = 24 /* channels of a kind that are looked at */, LABEL_COUNT = 4 };

/* Which labels mean what, the first label before the second. Drivers that label nothing have one sensor of a kind, and it is the
 * first one of the list: temp1 of radeon, nouveau and i915, and in0 of i915, are the chip itself. */
struct hwmon_rule {
    enum hwmon_channel channel;
    const char *kind;
    double unit;                       /* of the file in the metric's: millidegrees, microwatts, microjoules, hertz, millivolts */
    const char *suffix, *other_suffix; /* the other one where the channel has no file of the first */
    const char *labels[LABEL_COUNT];
    int number;      /* the channel's, where it does not go by label */
    bool unlabelled; /* the first of the kind without a label will do */
    enum device_limit limit;
    bool has_limit;
};

#define FIRST_RAIL                                                                                                                 \
    {                                                                                                                              \
        "PPT", "slowPPT", "card", "pkg"                                                                                            \
    }
#define SECOND_RAIL                                                                                                                \
    {                                                                                                                              \
        "fastPPT", "pkg"                                                                                                           \
    }
/* Labels: amdgpu_pm.c (edge, junction, mem, sclk, mclk, vddgfx; power1 is PPT or slowPPT, power2 fastPPT), xe_hwmon.c (card is the
 * whole board, pkg the chip). vram_ch_N are left alone: a read of each takes about a tenth of a second, and in public readings of
 * Battlemage cards vram was as hot as the hottest of them. The limit is power1_cap, or power1_max of i915 and xe; power1_crit is
 * none, and neither is power1_rated_max, what the board is made for. Fans have no labels: which of them turns differs from board
 * to board. */
static const struct hwmon_rule rules[HWMON_CHANNEL_COUNT] = {
    {HWMON_EDGE, "temp", 1e3, "input", NULL, {"edge", "pkg"}, 0, true, LIMIT_EDGE_CRITICAL, true},
    {HWMON_JUNCTION, "temp", 1e3, "input", NULL, {"junction", "hotspot"}, 0, false, LIMIT_JUNCTION_CRITICAL, true},
    {HWMON_MEMORY, "temp", 1e3, "input", NULL, {"mem", "vram"}, 0, false, LIMIT_MEMORY_CRITICAL, true},
    {HWMON_POWER_NOW, "power", 1e6, "input", NULL, FIRST_RAIL, 0, true, 0, false},
    {HWMON_POWER_AVERAGE, "power", 1e6, "average", NULL, FIRST_RAIL, 0, true, 0, false},
    {HWMON_POWER_CAP, "power", 1e6, "cap", "max", FIRST_RAIL, 0, true, 0, false},
    {HWMON_SECOND_NOW, "power", 1e6, "input", NULL, SECOND_RAIL, 0, false, 0, false},
    {HWMON_SECOND_AVERAGE, "power", 1e6, "average", NULL, SECOND_RAIL, 0, false, 0, false},
    {HWMON_ENERGY, "energy", 1e6, "input", NULL, {"card", "pkg"}, 0, true, 0, false},
    {HWMON_SECOND_ENERGY, "energy", 1e6, "input", NULL, {"pkg"}, 0, false, 0, false},
    {HWMON_FAN, "fan", 1, "input", NULL, {NULL}, 1, false, 0, false},
    {HWMON_FAN_2, "fan", 1, "input", NULL, {NULL}, 2, false, 0, false},
    {HWMON_FAN_3, "fan", 1, "input", NULL, {NULL}, 3, false, 0, false},
    {HWMON_FAN_4, "fan", 1, "input", NULL, {NULL}, 4, false, 0, false},
    {HWMON_DUTY, "pwm", 1, "", NULL, {NULL}, 1, false, 0, false},
    {HWMON_GFX_CLOCK, "freq", 1e6, "input", NULL, {"sclk"}, 0, true, 0, false},
    {HWMON_MEMORY_CLOCK, "freq", 1e6, "input", NULL, {"mclk"}, 0, false, 0, false},
    {HWMON_VOLTAGE_GFX, "in", 1, "input", NULL, {"vddgfx", "pkg"}, 0, true, 0, false},
};

void hwmon_init(struct hwmon *hwmon, const char *device)
{
    memset(hwmon, 0, sizeof *hwmon);
    (void)snprintf(hwmon->device, sizeof hwmon->device, "%s", device);
    for (int i = 0; i < HWMON_CHANNEL_COUNT; i++)
        io_file_init(&hwmon->files[i], "%s", "");
    energy_counter_init(&hwmon->energy, 1e-6, 64);
    energy_counter_init(&hwmon->second_energy, 1e-6, 64);
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

/* in starts at 0, the others at 1. */
static int first_number(const char *kind) { return strcmp(kind, "in") == 0 ? 0 : 1; }

/* Number of the channel of that kind with one of these labels, the first label before the second, or -1. */
static int labelled_number(struct io *io, const char *folder, const char *kind, const char *const *labels, int label_count,
                           bool *refused, int *rank_found)
{
    char path[448], text[64];
    int best = -1, best_rank = label_count;
    for (int n = first_number(kind); n <= HWMON_MOST && best_rank > 0; n++) {
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
    *rank_found = best_rank;
    return best;
}

bool hwmon_labelled(struct io *io, const char *folder, const char *kind, const char *label, struct io_file *file)
{
    bool refused = false;
    int rank = 0, number = labelled_number(io, folder, kind, &label, 1, &refused, &rank);
    if (number >= 0)
        io_file_init(file, "%.319s/%.8s%d_input", folder, kind, number);
    return number >= 0;
}

/* Path of a channel's file of the rule; false if the driver has none. */
static bool channel_path(struct io *io, const char *folder, const struct hwmon_rule *rule, int number, char path[448])
{
    const char *suffixes[] = {rule->suffix, rule->other_suffix};
    for (int i = 0; i < 2 && suffixes[i]; i++) {
        (void)snprintf(path, 448, "%.319s/%.8s%d%s%.8s", folder, rule->kind, number, suffixes[i][0] ? "_" : "", suffixes[i]);
        if (io_exists(io, path))
            return true;
    }
    return false;
}

/* Number of the channel that the rule means and that has a file, or -1. */
static int rule_number(struct io *io, const char *folder, const struct hwmon_rule *rule, bool *refused, char path[448])
{
    if (rule->number)
        return channel_path(io, folder, rule, rule->number, path) ? rule->number : -1;
    bool labelled = false;
    for (int from = 0; from < LABEL_COUNT && rule->labels[from];) {
        int rank = 0, number = labelled_number(io, folder, rule->kind, rule->labels + from, LABEL_COUNT - from, refused, &rank);
        if (number < 0)
            break;
        labelled = true;
        if (channel_path(io, folder, rule, number, path))
            return number;
        from += rank + 1;
    }
    if (labelled || !rule->unlabelled)
        return -1;
    int number = first_number(rule->kind);
    (void)snprintf(path, 448, "%.319s/%.8s%d_label", folder, rule->kind, number);
    return !io_exists(io, path) && channel_path(io, folder, rule, number, path) ? number : -1;
}

static void read_limit(struct hwmon *hwmon, struct io *io, const struct hwmon_rule *rule, int number)
{
    char path[448];
    uint64_t millidegrees;
    (void)snprintf(path, sizeof path, "%.319s/%.8s%d_crit", hwmon->folder, rule->kind, number);
    if (io_read_u64(io, path, 10, &millidegrees) == 0 && millidegrees > 0 && millidegrees <= TEMPERATURE_HIGH * 1000)
        hwmon->limits[rule->limit] = (double)millidegrees / 1000;
}

static int find_channel(struct hwmon *hwmon, struct io *io, const struct hwmon_rule *rule, bool *refused)
{
    char path[448];
    int number = rule_number(io, hwmon->folder, rule, refused, path);
    if (number < 0)
        return number;
    io_file_init(&hwmon->files[rule->channel], "%s", path);
    hwmon->present[rule->channel] = true;
    if (rule->has_limit)
        read_limit(hwmon, io, rule, number);
    return number;
}

/* A number of the folder in the metric's unit; 0 = none. */
static double read_scaled(const struct hwmon *hwmon, struct io *io, const char *name, double unit)
{
    char path[448];
    uint64_t value;
    (void)snprintf(path, sizeof path, "%.319s/%.48s", hwmon->folder, name);
    return io_read_u64(io, path, 10, &value) == 0 ? (double)value / unit : 0;
}

/* What is taken for the first rail is no second one. */
static void drop_same_rail(struct hwmon *hwmon, const int *numbers, enum hwmon_channel first, enum hwmon_channel second)
{
    if (hwmon->present[first] && hwmon->present[second] && numbers[first] == numbers[second])
        hwmon->present[second] = false;
}

static void resolve(struct hwmon *hwmon, struct io *io)
{
    char path[256];
    int numbers[HWMON_CHANNEL_COUNT];
    hwmon_close(hwmon, io);
    hwmon->refused = false;
    (void)snprintf(path, sizeof path, "%.240s/hwmon", hwmon->device);
    (void)io->operations->list(io, path, take_hwmon, hwmon);
    if (!hwmon->folder[0])
        return;
    for (int i = 0; i < HWMON_CHANNEL_COUNT; i++)
        numbers[i] = find_channel(hwmon, io, &rules[i], &hwmon->refused);
    drop_same_rail(hwmon, numbers, HWMON_POWER_NOW, HWMON_SECOND_NOW);
    drop_same_rail(hwmon, numbers, HWMON_POWER_AVERAGE, HWMON_SECOND_AVERAGE);
    drop_same_rail(hwmon, numbers, HWMON_ENERGY, HWMON_SECOND_ENERGY);
    double critical[] = {read_scaled(hwmon, io, "power1_crit", 1e6), read_scaled(hwmon, io, "power2_crit", 1e6)};
    hwmon->power_critical = critical[0] > critical[1] ? critical[0] : critical[1];
    hwmon->power_default = read_scaled(hwmon, io, "power1_cap_default", 1e6);
    double duty = read_scaled(hwmon, io, "pwm1_max", 1);
    hwmon->duty_maximum = duty > 0 ? duty : 255;
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

/* Power beyond twice the limit is a misread counter or register (B570 on kernel 6.16: 3868 W). */
double hwmon_power_maximum(const struct hwmon *hwmon, double cap)
{
    double limit = cap > hwmon->power_critical ? cap : hwmon->power_critical;
    return limit > 0 && 2 * limit < POWER_MOST ? 2 * limit : POWER_MOST;
}

struct reading {
    int error;
    double value;   /* in the metric's unit */
    uint64_t count; /* as it stands there */
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

/* Of a rail without a power file: what its counter says. */
static void put_counted_power(struct sample *sample, int metric, const struct energy_counter *counter, enum energy_verdict verdict,
                              double most)
{
    if (verdict == ENERGY_REJECTED)
        sample_f64_within(sample, metric, POWER_MOST, 0, 0); /* dropped, and flagged */
    else if (verdict == ENERGY_NOTHING)
        sample_unknown(sample, metric, REASON_NOT_SUPPORTED);
    else if (!counter->power_known)
        sample_unknown(sample, metric, counter->still > 1 ? REASON_STALE : REASON_NOT_SAMPLED);
    else
        sample_f64_within(sample, metric, counter->watts, 0, most);
}

static enum energy_verdict feed(struct energy_counter *counter, const struct reading *reading, uint64_t mono_ns, double most)
{
    if (reading->error || reading->value < 0)
        return ENERGY_NOTHING;
    return energy_counter_feed(counter, reading->count, mono_ns, most);
}

/* Joules are those of the card where that counter moves, else of the chip; once told, never of the other, since a counter must
 * not go back. */
static void put_energy(struct hwmon *hwmon, const struct reading *readings, double most, struct sample *sample)
{
    enum energy_verdict first = feed(&hwmon->energy, &readings[HWMON_ENERGY], sample->mono_ns, most);
    enum energy_verdict second = feed(&hwmon->second_energy, &readings[HWMON_SECOND_ENERGY], sample->mono_ns, most);
    bool first_is_zero = !readings[HWMON_ENERGY].error && !hwmon->energy.seen;
    if (hwmon->energy_rail == HWMON_RAIL_OPEN && hwmon->energy.seen)
        hwmon->energy_rail = HWMON_RAIL_FIRST;
    else if (hwmon->energy_rail == HWMON_RAIL_OPEN && hwmon->second_energy.seen && first_is_zero)
        hwmon->energy_rail = HWMON_RAIL_SECOND;
    bool is_second = hwmon->energy_rail == HWMON_RAIL_SECOND;
    const struct reading *reading = &readings[is_second ? HWMON_SECOND_ENERGY : HWMON_ENERGY];
    const struct energy_counter *counter = is_second ? &hwmon->second_energy : &hwmon->energy;
    if (reading->error || !counter->seen)
        sample_unknown(sample, METRIC_ENERGY, reading->error ? io_reason(reading->error) : REASON_NOT_SUPPORTED);
    else
        sample_f64(sample, METRIC_ENERGY, energy_counter_joules(counter));
    if (!hwmon->present[HWMON_POWER_NOW] && counter->seen)
        put_counted_power(sample, METRIC_POWER_NOW, counter, is_second ? second : first, most);
    if (!hwmon->present[HWMON_SECOND_NOW] && !hwmon->present[HWMON_SECOND_AVERAGE] && !is_second && hwmon->second_energy.seen)
        put_counted_power(sample, METRIC_POWER_SECOND, &hwmon->second_energy, second, most);
}

/* The fastest fan: boards have one of three turning, and any of them may be it. */
static const struct reading *fan(const struct reading *readings)
{
    const struct reading *fastest = &readings[HWMON_FAN];
    for (int i = HWMON_FAN_2; i <= HWMON_FAN_4; i++)
        if (!readings[i].error && (fastest->error || readings[i].value > fastest->value))
            fastest = &readings[i];
    return fastest;
}

static void put_all(struct hwmon *hwmon, const struct reading *readings, struct sample *sample)
{
    double cap = readings[HWMON_POWER_CAP].error ? 0 : readings[HWMON_POWER_CAP].value;
    double most = hwmon_power_maximum(hwmon, cap);
    bool second_now = hwmon->present[HWMON_SECOND_NOW];
    put(sample, METRIC_TEMPERATURE_EDGE, &readings[HWMON_EDGE], TEMPERATURE_LOW, TEMPERATURE_HIGH);
    put(sample, METRIC_TEMPERATURE_JUNCTION, &readings[HWMON_JUNCTION], TEMPERATURE_LOW, TEMPERATURE_HIGH);
    put(sample, METRIC_TEMPERATURE_MEMORY, &readings[HWMON_MEMORY], TEMPERATURE_LOW, TEMPERATURE_HIGH);
    put_power(sample, METRIC_POWER_NOW, &readings[HWMON_POWER_NOW], most);
    put_power(sample, METRIC_POWER_AVERAGE, &readings[HWMON_POWER_AVERAGE], most);
    put_power(sample, METRIC_POWER_SECOND, &readings[second_now ? HWMON_SECOND_NOW : HWMON_SECOND_AVERAGE], most);
    put_above_zero(sample, METRIC_POWER_CAP, &readings[HWMON_POWER_CAP], POWER_MOST);
    put_energy(hwmon, readings, most, sample);
    put(sample, METRIC_FAN_RPM, fan(readings), 0, FAN_MOST);
    put(sample, METRIC_FAN_PERCENT, &readings[HWMON_DUTY], 0, 100);
    put(sample, METRIC_GFX_CLOCK, &readings[HWMON_GFX_CLOCK], 0, 10000);
    put(sample, METRIC_MEMORY_CLOCK, &readings[HWMON_MEMORY_CLOCK], 0, 30000);
    put_above_zero(sample, METRIC_VOLTAGE_GFX, &readings[HWMON_VOLTAGE_GFX], VOLTAGE_MOST);
}

void hwmon_sample(struct hwmon *hwmon, struct io *io, struct sample *sample)
{
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
        readings[i].value = (double)value / (i == HWMON_DUTY ? hwmon->duty_maximum / 100 : rules[i].unit);
        readings[i].count = value < 0 ? 0 : (uint64_t)value;
    }
    put_all(hwmon, readings, sample);
}
