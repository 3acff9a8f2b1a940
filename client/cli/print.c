#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"

static const char *const throttle_names[] = {"power", "thermal", "current", "voltage", "hardware", "other"};
static const char *const quality_names[] = {"settling", "inconsistent", "implausible", "estimated"};

bool print_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0])
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8") || strstr(value, "utf-8");
    }
    return true; /* nothing set: services and containers, whose output goes to something that knows UTF-8 */
}

const char *print_dash(void) { return print_utf8() ? "\342\200\223" : "-"; }

static const char *print_bits(char *out, size_t size, const char *const *names, int count, double value)
{
    size_t used = 0;
    uint64_t bits = value >= 0 && value < 1e15 ? (uint64_t)value : 0;
    snprintf(out, size, "none");
    for (int i = 0; i < count; i++)
        if ((bits >> i) & 1 && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "", names[i]);
    return out;
}

const char *print_bytes(char *out, size_t size, double bytes, const char *suffix)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    snprintf(out, size, "%.*f %s%s", unit == 0 ? 0 : 1, bytes, units[unit], suffix);
    return out;
}

const char *print_gib(char *out, size_t size, double used, double total)
{
    if (isnan(used) && isnan(total))
        snprintf(out, size, "%s", print_dash());
    else if (isnan(total))
        snprintf(out, size, "%.2f GiB", used / 1073741824.0);
    else if (isnan(used))
        snprintf(out, size, "%s/%.2f GiB", print_dash(), total / 1073741824.0);
    else
        snprintf(out, size, "%.2f/%.2f GiB", used / 1073741824.0, total / 1073741824.0);
    return out;
}

const char *print_value(char *out, size_t size, const gputap_metric *metric, double value)
{
    if (isnan(value))
        snprintf(out, size, "%s", print_dash());
    else if (strcmp(metric->unit, "B") == 0)
        snprintf(out, size, "%.2f GiB", value / 1073741824.0);
    else if (strcmp(metric->unit, "B/s") == 0)
        return print_bytes(out, size, value, "/s");
    else if (metric->semantics == GPUTAP_BITS && strcmp(metric->name, "throttle") == 0)
        return print_bits(out, size, throttle_names, 6, value);
    else if (metric->semantics == GPUTAP_BITS)
        return print_bits(out, size, quality_names, 4, value);
    else
        snprintf(out, size, "%.*f%s%s", metric->decimals, value, metric->unit[0] ? " " : "",
                 !print_utf8() && strcmp(metric->unit, "\302\260C") == 0 ? "C" : metric->unit);
    return out;
}

const char *print_duration(char *out, size_t size, double seconds)
{
    if (seconds < 0)
        snprintf(out, size, "%s", print_dash());
    else if (seconds < 1)
        snprintf(out, size, "%.0f ms", seconds * 1000);
    else if (seconds < 100)
        snprintf(out, size, "%.1f s", seconds);
    else if (seconds < 7200)
        snprintf(out, size, "%.0f min", seconds / 60);
    else
        snprintf(out, size, "%.1f h", seconds / 3600);
    return out;
}

const char *print_device_name(char *out, size_t size, const gputap_device *device)
{
    const char *name = device->name[0] ? device->name : device->id;
    snprintf(out, size, "%s%s", name, device->simulated && !strstr(name, "imulated") ? " (simulated)" : "");
    return out;
}

const char *print_status(int bits)
{
    if (bits & GPUTAP_STATUS_RUNNING)
        return "running";
    if (bits & GPUTAP_STATUS_SUPERSEDED)
        return "superseded";
    return bits & GPUTAP_STATUS_STALE ? "stale" : "dead";
}

void print_where(FILE *out, const char *node, const char *job, const int16_t *devices, int device_count)
{
    if (node[0])
        fprintf(out, "  node %s", node);
    if (job[0])
        fprintf(out, "  job %s", job);
    for (int i = 0; i < device_count; i++)
        fprintf(out, "%s%d", i ? "," : "  GPU ", devices[i]);
}

void print_bar(char *out, size_t size, double share, int width)
{
    bool utf8 = print_utf8();
    int full = !(share > 0) ? 0 : (int)((share > 1 ? 1 : share) * width + 0.5);
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < width && used + 4 < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s",
                                 utf8       ? (i < full ? "\342\226\210" : "\342\226\221")
                                 : i < full ? "#"
                                            : ".");
}

void print_spark(char *out, size_t size, const double *shares, int count)
{
    static const char *const blocks[] = {"\342\226\201", "\342\226\202", "\342\226\203", "\342\226\204",
                                         "\342\226\205", "\342\226\206", "\342\226\207", "\342\226\210"};
    static const char *const letters[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
    bool utf8 = print_utf8();
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < count && used + 4 < size; i++) {
        double share = shares[i] > 1 ? 1 : shares[i];
        int level = share > 0 ? (int)(share * 7.999) : 0;
        used += (size_t)snprintf(out + used, size - used, "%s", isnan(shares[i]) ? " " : utf8 ? blocks[level] : letters[level]);
    }
}
