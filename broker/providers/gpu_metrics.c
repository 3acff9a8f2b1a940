#include "broker/providers/gpu_metrics.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Firmware of Strix up to this one tells the graphics load in hundredths (smu_v14_0_0_ppt.c). */
static const uint32_t CENTI_FIRMWARE = 0x5d4600;

size_t gpu_metrics_width(enum gpu_metrics_type type)
{
    static const uint8_t widths[GM_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 8, 8};
    return (unsigned)type < GM_TYPE_COUNT ? widths[type] : 0;
}

static uint64_t load(const unsigned char *at, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static uint64_t all_ones(size_t width) { return width >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * width)) - 1; }

/* A signed field sign-extended, as a number. */
static double number_of(enum gpu_metrics_type type, uint64_t raw)
{
    size_t width = gpu_metrics_width(type);
    bool is_signed = type == GM_S8 || type == GM_S16 || type == GM_S32 || type == GM_S64;
    if (is_signed && raw >> (8 * width - 1))
        return -(double)((~raw & all_ones(width)) + 1);
    return (double)raw;
}

void gpu_metrics_take(const struct gpu_metrics_row *row, const unsigned char *at, struct gpu_metrics *out)
{
    size_t width = gpu_metrics_width((enum gpu_metrics_type)row->type);
    double sum = 0, highest = 0;
    uint64_t bits = 0;
    unsigned known = 0;
    if (row->rule == GM_HIGHEST && out->known[row->field])
        return;
    for (unsigned i = 0; i < row->count; i++) {
        uint64_t raw = load(at + i * width, width);
        if (raw == all_ones(width) || (raw == 0 && row->rule == GM_ZERO_UNKNOWN))
            continue;
        double value = number_of((enum gpu_metrics_type)row->type, raw);
        highest = known == 0 || value > highest ? value : highest;
        sum += value;
        bits = raw;
        known++;
    }
    if (known == 0)
        return;
    out->known[row->field] = true;
    out->values[row->field] = (row->rule == GM_HIGHEST ? highest : sum / known) * row->worth;
    out->bits[row->field] = bits;
}

/* --- what a version or a firmware gets wrong -------------------------------------------------------------------------- */

static void mend_load(uint32_t smc_firmware, struct gpu_metrics *out)
{
    bool old = smc_firmware != 0 && smc_firmware <= CENTI_FIRMWARE;
    bool unlikely = smc_firmware == 0 && out->values[GM_GFX_BUSY] > 100;
    if (out->format == 3 && (old || unlikely))
        out->values[GM_GFX_BUSY] /= 100;
}

/* Some Renoir, Lucienne, Cezanne and Barcelo firmware tells the socket's power in watts beside parts in milliwatts (amdgpu_top
 * issue 30). The whole is never less than a part. */
static void mend_power(struct gpu_metrics *out)
{
    static const enum gpu_metrics_field parts[] = {GM_POWER_CPU, GM_POWER_SOC, GM_POWER_GFX};
    if (out->format != 2 || !out->known[GM_POWER_AVERAGE] || out->bits[GM_POWER_AVERAGE] == 0)
        return;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (out->known[parts[i]] && out->bits[parts[i]] > out->bits[GM_POWER_AVERAGE]) {
            out->values[GM_POWER_AVERAGE] = (double)out->bits[GM_POWER_AVERAGE];
            return;
        }
}

static void drop_impossible_loads(struct gpu_metrics *out)
{
    for (int field = GM_GFX_BUSY; field <= GM_NPU_BUSY; field++)
        if (out->known[field] && (out->values[field] < 0 || out->values[field] > 100))
            out->known[field] = false;
}

/* --- partitions ------------------------------------------------------------------------------------------------------- */

/* Mean of the loads that are known, NaN for none; adds them to a total. */
static double mean_load(const unsigned char *at, unsigned count, enum gpu_metrics_type type, double *sum, unsigned *known)
{
    size_t width = gpu_metrics_width(type);
    double own = 0;
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t raw = load(at + i * width, width);
        if (raw > 100) /* among them all ones */
            continue;
        own += (double)raw;
        found++;
    }
    *sum += own;
    *known += found;
    return found ? own / found : (double)NAN;
}

/* On parts that can be partitioned the load at the head of the table is retired, or that of the first partition (AMD's exporter,
 * issues 139 and 160): the mean over what is active is the card's. */
static void take_partitions(const struct gpu_metrics_partitions *layout, const unsigned char *bytes, struct gpu_metrics *out)
{
    double gfx = 0, media = 0;
    unsigned gfx_known = 0, media_known = 0;
    uint64_t count = load(bytes + layout->count_at, 2);
    if (count > GM_MOST_PARTITIONS)
        return;
    out->partitions = (unsigned)count;
    for (unsigned i = 0; i < out->partitions; i++) {
        const unsigned char *record = bytes + layout->first + (size_t)i * layout->stride;
        out->partition_busy[i] = mean_load(record, layout->gfx_count, GM_U32, &gfx, &gfx_known);
        out->partition_media_busy[i] = mean_load(record + layout->media_at, layout->media_count, GM_U16, &media, &media_known);
    }
    if (gfx_known) {
        out->known[GM_GFX_BUSY] = true;
        out->values[GM_GFX_BUSY] = gfx / gfx_known;
    }
    if (media_known) {
        out->known[GM_MEDIA_BUSY] = true;
        out->values[GM_MEDIA_BUSY] = media / media_known;
    }
}

/* --- all of it -------------------------------------------------------------------------------------------------------- */

static const struct gpu_metrics_version *find_version(unsigned format, unsigned content, size_t size)
{
    for (int i = 0; i < gpu_metrics_version_count; i++) {
        const struct gpu_metrics_version *version = &gpu_metrics_versions[i];
        if (version->format == format && version->content == content)
            return size >= version->size ? version : NULL;
    }
    return NULL;
}

static void take_version(const struct gpu_metrics_version *version, const unsigned char *bytes, struct gpu_metrics *out)
{
    for (size_t group = 0; group < sizeof version->groups / sizeof version->groups[0] && version->groups[group]; group++)
        for (const struct gpu_metrics_row *row = version->groups[group]; row->count > 0; row++)
            gpu_metrics_take(row, bytes + row->offset, out);
    if (version->partitions.first)
        take_partitions(&version->partitions, bytes, out);
}

int gpu_metrics_parse(const void *bytes, size_t size, uint32_t smc_firmware, struct gpu_metrics *out)
{
    const unsigned char *table = bytes;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < GM_MOST_PARTITIONS; i++)
        out->partition_busy[i] = out->partition_media_busy[i] = (double)NAN;
    if (size < 4)
        return -EPROTO;
    size_t told = (size_t)load(table, 2);
    out->format = table[2];
    out->content = table[3];
    if (told < 4 || told > size)
        return -EPROTO; /* cut short, or no table */
    if (out->format == 1 && out->content == 9) {
        int error = gpu_metrics_parse_list(table, told, out);
        if (error)
            return error;
    } else {
        const struct gpu_metrics_version *version = find_version(out->format, out->content, told);
        if (!version)
            return -EOPNOTSUPP;
        take_version(version, table, out);
    }
    mend_load(smc_firmware, out);
    mend_power(out);
    drop_impossible_loads(out);
    return 0;
}

size_t gpu_metrics_size(const void *bytes, size_t got) { return got < 4 ? 4 : (size_t)load(bytes, 2); }
