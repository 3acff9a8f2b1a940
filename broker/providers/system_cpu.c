#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/providers/hwmon.h"
#include "broker/providers/system.h"

#define SECOND UINT64_C(1000000000)

enum { CPU_TEXT = 32768, BUSY_MIN_TICKS = 10 };

/* --- busy ------------------------------------------------------------------------------------------------------------- */

/* user nice system idle iowait irq softirq steal; the two that follow, guest and guest_nice, are part of user and nice
 * (kernel/sched/cputime.c) and would count double. */
static bool parse_times(const char *text, uint64_t times[CPU_TIMES])
{
    if (strncmp(text, "cpu ", 4) != 0)
        return false;
    const char *at = text + 4;
    for (int i = 0; i < CPU_TIMES; i++) {
        char *end;
        times[i] = strtoull(at, &end, 10);
        if (end == at)
            return i >= 4; /* old kernels know the first four */
        at = end;
    }
    return true;
}

/* Ticks are 10 ms long, so that a share of fewer than ten of them says nothing: the last one is repeated until then. iowait
 * and idle may go back (Documentation/filesystems/proc.rst): such a step counts as none. */
static void sample_busy(struct system_cpu *cpu, struct io *io, struct sample *sample)
{
    char text[512];
    uint64_t times[CPU_TIMES] = {0};
    long got = io_file_read(io, &cpu->stat, text, sizeof text);
    if (got < 0 || !parse_times(text, times)) {
        sample_unknown(sample, HOST_METRIC_CPU_BUSY, got < 0 ? io_reason((int)got) : REASON_ERROR);
        return;
    }
    uint64_t total = 0, idle = 0, sum = 0, last_sum = 0;
    for (int i = 0; i < CPU_TIMES; i++) {
        uint64_t step = times[i] > cpu->times[i] ? times[i] - cpu->times[i] : 0;
        sum += times[i];
        last_sum += cpu->times[i];
        total += step;
        idle += i == 3 || i == 4 ? step : 0;
    }
    bool restarted = total == 0 && sum < last_sum;
    if (!cpu->have_times || restarted || total >= BUSY_MIN_TICKS) {
        if (cpu->have_times && total > 0)
            cpu->busy = 100.0 * (double)(total - idle) / (double)total;
        cpu->have_times = true;
        memcpy(cpu->times, times, sizeof times);
    }
    if (isnan(cpu->busy))
        sample_unknown(sample, HOST_METRIC_CPU_BUSY, REASON_NOT_SAMPLED);
    else
        system_within(sample, HOST_METRIC_CPU_BUSY, cpu->busy, 0, 100);
}

/* --- clock ------------------------------------------------------------------------------------------------------------ */

struct clock_search {
    struct system_cpu *cpu;
    int found; /* CPUs seen */
    int step;  /* of them, every how many-th is kept */
};

static bool is_cpu(const char *name)
{
    return strncmp(name, "cpu", 3) == 0 && name[3] && strspn(name + 3, "0123456789") == strlen(name + 3);
}

static bool count_cpu(void *context, const char *name)
{
    struct clock_search *search = context;
    search->found += is_cpu(name);
    return true;
}

static bool keep_cpu(void *context, const char *name)
{
    struct clock_search *search = context;
    if (is_cpu(name) && search->found++ % search->step == 0)
        io_file_init(&search->cpu->clocks[search->cpu->clock_count++], "/sys/devices/system/cpu/%s/cpufreq/scaling_cur_freq", name);
    return search->cpu->clock_count < CPU_CLOCK_FILES;
}

/* At most 32 files, spread over all CPUs: on x86 each read may interrupt the CPU that it asks about. */
static void find_clocks(struct system_cpu *cpu, struct io *io)
{
    struct clock_search search = {.cpu = cpu};
    if (!io_exists(io, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"))
        return;
    (void)io->operations->list(io, "/sys/devices/system/cpu", count_cpu, &search);
    search.step = (search.found + CPU_CLOCK_FILES - 1) / CPU_CLOCK_FILES;
    search.found = 0;
    if (search.step > 0)
        (void)io->operations->list(io, "/sys/devices/system/cpu", keep_cpu, &search);
}

static int mean_of_files(struct system_cpu *cpu, struct io *io, double *mhz)
{
    double sum = 0;
    int known = 0, error = -ENOENT;
    for (int i = 0; i < cpu->clock_count; i++) {
        uint64_t khz;
        int result = io_file_u64(io, &cpu->clocks[i], &khz);
        if (result == 0 && khz > 0 && khz < 20000000) {
            sum += (double)khz / 1000;
            known++;
        } else if (result < 0) {
            error = result; /* an offline CPU answers nothing */
        }
    }
    *mhz = known ? sum / known : 0;
    return known ? 0 : error;
}

/* The mean over what fits the buffer: twenty CPUs or so. */
static int mean_of_cpuinfo(struct system_cpu *cpu, struct io *io, double *mhz)
{
    static char text[CPU_TEXT];
    long got = io_file_read_all(io, &cpu->cpuinfo, text, sizeof text);
    if (got < 0)
        return (int)got;
    double sum = 0;
    int known = 0;
    for (const char *at = text; (at = strstr(at, "\ncpu MHz")); at++) {
        const char *colon = strchr(at, ':');
        double value = colon ? strtod(colon + 1, NULL) : 0;
        if (value > 0 && value < 20000) {
            sum += value;
            known++;
        }
    }
    *mhz = known ? sum / known : 0;
    return known ? 0 : -ENODATA;
}

/* Twice a second is enough, however fast the ticks are. */
static void sample_clock(struct system_cpu *cpu, struct io *io, uint64_t mono_ns, struct sample *sample)
{
    if (mono_ns >= cpu->clock_due_ns) {
        cpu->clock_due_ns = mono_ns + SECOND / 2;
        cpu->clock_error = cpu->clock_count ? mean_of_files(cpu, io, &cpu->clock) : mean_of_cpuinfo(cpu, io, &cpu->clock);
    }
    if (cpu->clock_error)
        sample_unknown(sample, HOST_METRIC_CPU_CLOCK, io_reason(cpu->clock_error));
    else
        sample_f64(sample, HOST_METRIC_CPU_CLOCK, cpu->clock);
}

/* --- temperature ------------------------------------------------------------------------------------------------------ */

struct temperature_search {
    struct io *io;
    struct io_file file;
    int rank; /* the lower the better; 0 = nothing yet */
};

/* Tctl carries an offset on some CPUs, which Tdie does not (drivers/hwmon/k10temp.c). */
static const struct {
    const char *driver, *label;
} cpu_sensors[] = {{"k10temp", "Tdie"}, {"k10temp", "Tctl"}, {"zenpower", "Tdie"}, {"coretemp", "Package id 0"}};
static const char *const cpu_zones[] = {"x86_pkg_temp", "cpu-thermal", "cpu_thermal"};

static bool try_hwmon(void *context, const char *name)
{
    struct temperature_search *search = context;
    char path[320], driver[64];
    (void)snprintf(path, sizeof path, "/sys/class/hwmon/%.64s/name", name);
    if (io_read_text(search->io, path, driver, sizeof driver) < 0)
        return true;
    (void)snprintf(path, sizeof path, "/sys/class/hwmon/%.64s", name);
    for (int i = 0; i < (int)(sizeof cpu_sensors / sizeof cpu_sensors[0]); i++)
        if (strcmp(driver, cpu_sensors[i].driver) == 0 && (search->rank == 0 || i + 1 < search->rank) &&
            hwmon_labelled(search->io, path, "temp", cpu_sensors[i].label, &search->file))
            search->rank = i + 1;
    return true;
}

static bool try_zone(void *context, const char *name)
{
    struct temperature_search *search = context;
    char path[320], type[64];
    (void)snprintf(path, sizeof path, "/sys/class/thermal/%.64s/type", name);
    if (strncmp(name, "thermal_zone", 12) != 0 || io_read_text(search->io, path, type, sizeof type) < 0)
        return true;
    for (int i = 0; i < (int)(sizeof cpu_zones / sizeof cpu_zones[0]); i++)
        if (strcmp(type, cpu_zones[i]) == 0 && (search->rank == 0 || i + 1 < search->rank)) {
            io_file_init(&search->file, "/sys/class/thermal/%.64s/temp", name);
            search->rank = i + 1;
        }
    return true;
}

static void find_temperature(struct system_cpu *cpu, struct io *io)
{
    struct temperature_search search = {.io = io};
    io_file_init(&search.file, "%s", "");
    (void)io->operations->list(io, "/sys/class/hwmon", try_hwmon, &search);
    if (search.rank == 0)
        (void)io->operations->list(io, "/sys/class/thermal", try_zone, &search);
    io_file_close(io, &cpu->temperature);
    cpu->temperature = search.file;
    cpu->have_temperature = search.rank > 0;
}

static void sample_temperature(struct system_cpu *cpu, struct io *io, uint64_t mono_ns, struct sample *sample)
{
    int64_t value;
    int error = cpu->have_temperature ? io_file_i64(io, &cpu->temperature, &value) : -ENOENT;
    if ((error == -ENOENT || error == -ENODEV) && mono_ns >= cpu->temperature_due_ns) {
        cpu->temperature_due_ns = mono_ns + 10 * SECOND; /* a driver may be loaded later, a folder renumbered */
        find_temperature(cpu, io);
        error = cpu->have_temperature ? io_file_i64(io, &cpu->temperature, &value) : -ENOENT;
    }
    if (error)
        sample_unknown(sample, HOST_METRIC_CPU_TEMPERATURE, io_reason(error));
    else
        system_within(sample, HOST_METRIC_CPU_TEMPERATURE, (double)value / 1000, TEMPERATURE_LOW, TEMPERATURE_HIGH);
}

/* --- power ------------------------------------------------------------------------------------------------------------ */

struct package_search {
    struct system_cpu *cpu;
    struct io *io;
};

/* intel-rapl:N is a package (also on AMD); intel-rapl:N:M are its parts, and "psys" is the whole board. */
static bool keep_package(void *context, const char *name)
{
    struct package_search *search = context;
    struct system_cpu *cpu = search->cpu;
    char path[128], kind[64];
    if (strncmp(name, "intel-rapl:", 11) != 0 || strchr(name + 11, ':') || strlen(name) > 32)
        return true;
    (void)snprintf(path, sizeof path, "/sys/class/powercap/%.32s/name", name);
    if (io_read_text(search->io, path, kind, sizeof kind) < 0 || strncmp(kind, "package", 7) != 0)
        return true;
    struct cpu_package *package = &cpu->packages[cpu->package_count++];
    memset(package, 0, sizeof *package);
    io_file_init(&package->energy, "/sys/class/powercap/%.32s/energy_uj", name);
    (void)snprintf(path, sizeof path, "/sys/class/powercap/%.32s/max_energy_range_uj", name);
    (void)io_read_u64(search->io, path, 10, &package->range);
    return cpu->package_count < CPU_PACKAGES;
}

/* Microjoules since the last tick; the counter starts anew after its range. */
static int package_step(struct cpu_package *package, struct io *io, double *microjoules, bool *first)
{
    uint64_t now;
    int error = io_file_u64(io, &package->energy, &now);
    if (error)
        return error;
    uint64_t last = package->last;
    *first = *first || !package->have_last || (now < last && (package->range < last || now > package->range));
    *microjoules += now >= last ? (double)(now - last) : (double)(package->range - last + now);
    package->last = now;
    package->have_last = true;
    return 0;
}

static void sample_power(struct system_cpu *cpu, struct io *io, uint64_t mono_ns, struct sample *sample)
{
    double microjoules = 0;
    bool first = cpu->power_ns == 0 || mono_ns <= cpu->power_ns;
    int error = cpu->package_count ? 0 : -ENOENT;
    for (int i = 0; i < cpu->package_count && !error; i++)
        error = package_step(&cpu->packages[i], io, &microjoules, &first);
    double seconds = (double)(mono_ns - cpu->power_ns) / 1e9;
    cpu->power_ns = error ? 0 : mono_ns;
    if (error)
        sample_unknown(sample, HOST_METRIC_CPU_POWER, io_reason(error));
    else if (first)
        sample_unknown(sample, HOST_METRIC_CPU_POWER, REASON_NOT_SAMPLED);
    else
        system_within(sample, HOST_METRIC_CPU_POWER, microjoules / 1e6 / seconds, 0, 1000.0 * cpu->package_count);
}

/* --- all of it -------------------------------------------------------------------------------------------------------- */

void system_cpu_init(struct system_cpu *cpu, struct io *io)
{
    memset(cpu, 0, sizeof *cpu);
    cpu->busy = NAN;
    io_file_init(&cpu->stat, "/proc/stat");
    io_file_init(&cpu->cpuinfo, "/proc/cpuinfo");
    io_file_init(&cpu->temperature, "%s", "");
    find_clocks(cpu, io);
    struct package_search search = {cpu, io};
    (void)io->operations->list(io, "/sys/class/powercap", keep_package, &search);
}

void system_cpu_sample(struct system_cpu *cpu, struct io *io, uint64_t mono_ns, struct sample *sample)
{
    sample_busy(cpu, io, sample);
    sample_clock(cpu, io, mono_ns, sample);
    sample_temperature(cpu, io, mono_ns, sample);
    sample_power(cpu, io, mono_ns, sample);
}

void system_cpu_close(struct system_cpu *cpu, struct io *io)
{
    io_file_close(io, &cpu->stat);
    io_file_close(io, &cpu->cpuinfo);
    io_file_close(io, &cpu->temperature);
    for (int i = 0; i < cpu->clock_count; i++)
        io_file_close(io, &cpu->clocks[i]);
    for (int i = 0; i < cpu->package_count; i++)
        io_file_close(io, &cpu->packages[i].energy);
}
