#include "broker/providers/intel_gt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
enum { CLOCK_MOST = 10000, FOLDER_MAX = 320, IDLE_SHARE = 10 };

/* Names of reasons in xe_gt_throttle.c and intel_gt_sysfs_pm.c. The raw bit is the one in the hardware's register
 * GT0_PERF_LIMIT_REASONS (mask 0xde3) as i915_reg.h has it; reasons that only newer chips have lie from bit 16 on, in an order of
 * our own. pl1 and pl2 are limits of power over time; pl4 is the one of peaks, of current as much as of power; ratl is the running
 * average of the temperature; prochot comes from outside of the chip. */
static const struct {
    const char *name;
    unsigned raw_bit;
    unsigned throttle;
} reasons[] = {
    {"prochot", 0, THROTTLE_HARDWARE},     {"thermal", 1, THROTTLE_THERMAL},
    {"ratl", 5, THROTTLE_THERMAL},         {"vr_thermalert", 6, THROTTLE_THERMAL},
    {"vr_tdc", 7, THROTTLE_CURRENT},       {"pl4", 8, THROTTLE_POWER | THROTTLE_CURRENT},
    {"pl1", 10, THROTTLE_POWER},           {"pl2", 11, THROTTLE_POWER},
    {"soc_thermal", 16, THROTTLE_THERMAL}, {"mem_thermal", 17, THROTTLE_THERMAL},
    {"vr_thermal", 18, THROTTLE_THERMAL},  {"soc_avg_thermal", 19, THROTTLE_THERMAL},
    {"iccmax", 20, THROTTLE_CURRENT},      {"fastvmode", 21, THROTTLE_VOLTAGE},
    {"psys_pl1", 22, THROTTLE_POWER},      {"psys_pl2", 23, THROTTLE_POWER},
    {"psys_crit", 24, THROTTLE_HARDWARE},  {"p0_freq", 25, THROTTLE_OTHER},
};

void intel_gt_init(struct intel_gts *gts) { memset(gts, 0, sizeof *gts); }

void intel_gt_close(struct intel_gts *gts, struct io *io)
{
    for (int i = 0; i < gts->count; i++) {
        io_file_close(io, &gts->list[i].clock);
        io_file_close(io, &gts->list[i].throttled);
        io_file_close(io, &gts->list[i].idle);
    }
    gts->count = 0;
    gts->lost = false;
}

/* --- finding ---------------------------------------------------------------------------------------------------------- */

struct gt_search {
    struct io *io;
    struct intel_gts *gts;
    char folder[FOLDER_MAX];
};

/* "gt0" for "gt": the prefix and digits only. */
static bool is_numbered(const char *name, const char *prefix)
{
    size_t length = strlen(prefix), digits = strncmp(name, prefix, length) == 0 ? strlen(name + length) : 0;
    return digits > 0 && digits < 5 && strspn(name + length, "0123456789") == digits;
}

static bool has_file(struct io *io, const char *folder, const char *name)
{
    char path[FOLDER_MAX + 64];
    (void)snprintf(path, sizeof path, "%.319s/%.60s", folder, name);
    return io_exists(io, path);
}

static double read_maximum(struct io *io, const char *folder, const char *name)
{
    char path[FOLDER_MAX + 64];
    uint64_t mhz;
    (void)snprintf(path, sizeof path, "%.319s/%.60s", folder, name);
    return io_read_u64(io, path, 10, &mhz) == 0 && mhz <= CLOCK_MOST ? (double)mhz : 0;
}

static struct intel_gt *add_gt(struct gt_search *search, bool media, const char *folder, const char *clock, const char *maximum,
                               const char *idle)
{
    struct intel_gts *gts = search->gts;
    if (gts->count == INTEL_GT_MOST)
        return NULL;
    struct intel_gt *gt = &gts->list[gts->count++];
    *gt = (struct intel_gt){.media = media};
    io_file_init(&gt->clock, "%s/%s", folder, clock);
    io_file_init(&gt->idle, "%s/%s", folder, idle);
    io_file_init(&gt->throttled, "%s", "");
    gt->mhz_maximum = read_maximum(search->io, folder, maximum);
    return gt;
}

/* gtidle/name is "gt0-rc" or, of a media GT, "gt1-mc" (xe_gt_idle.c); else the engines tell. */
static bool is_media(struct io *io, const char *folder)
{
    char path[FOLDER_MAX + 16], name[32];
    (void)snprintf(path, sizeof path, "%.319s/gtidle/name", folder);
    if (io_read_text(io, path, name, sizeof name) > 0)
        return strstr(name, "-mc") != NULL;
    return has_file(io, folder, "engines") && !has_file(io, folder, "engines/rcs") && !has_file(io, folder, "engines/ccs");
}

static bool take_xe_gt(void *context, const char *name)
{
    struct gt_search *search = context;
    char folder[FOLDER_MAX];
    (void)snprintf(folder, sizeof folder, "%.300s/%.8s", search->folder, name);
    if (!is_numbered(name, "gt") || !has_file(search->io, folder, "freq0"))
        return true;
    struct intel_gt *gt =
        add_gt(search, is_media(search->io, folder), folder, "freq0/act_freq", "freq0/rp0_freq", "gtidle/idle_residency_ms");
    if (!gt)
        return false;
    /* One file with all reasons at once where the kernel has it: status and the reasons one by one may disagree. */
    bool listed = has_file(search->io, folder, "freq0/throttle/reasons");
    io_file_init(&gt->throttled, "%s/freq0/throttle/%s", folder, listed ? "reasons" : "status");
    (void)snprintf(gt->reasons, sizeof gt->reasons, "%.319s/freq0/throttle/reason_", folder);
    return true;
}

static bool take_tile(void *context, const char *name)
{
    struct gt_search *search = context, inner = *search;
    if (!is_numbered(name, "tile"))
        return true;
    (void)snprintf(inner.folder, sizeof inner.folder, "%.255s/%.8s", search->folder, name);
    (void)search->io->operations->list(search->io, inner.folder, take_xe_gt, &inner);
    return true;
}

/* i915 shows a GT beyond the first on chips with a media GT of its own only (intel_gt.c). */
static bool take_i915_gt(void *context, const char *name)
{
    struct gt_search *search = context;
    char folder[FOLDER_MAX];
    (void)snprintf(folder, sizeof folder, "%.300s/%.8s", search->folder, name);
    if (!is_numbered(name, "gt") || !has_file(search->io, folder, "rps_act_freq_mhz"))
        return true;
    struct intel_gt *gt =
        add_gt(search, strcmp(name, "gt0") != 0, folder, "rps_act_freq_mhz", "rps_RP0_freq_mhz", "rc6_residency_ms");
    if (!gt)
        return false;
    io_file_init(&gt->throttled, "%s/throttle_reason_status", folder);
    (void)snprintf(gt->reasons, sizeof gt->reasons, "%.319s/throttle_reason_", folder);
    return true;
}

/* Kernels before 5.19 show the clock of the whole card alone. */
static bool take_card(void *context, const char *name)
{
    struct gt_search *search = context, inner = *search;
    if (!is_numbered(name, "card"))
        return true;
    (void)snprintf(inner.folder, sizeof inner.folder, "%.270s/%.16s/gt", search->folder, name);
    (void)search->io->operations->list(search->io, inner.folder, take_i915_gt, &inner);
    (void)snprintf(inner.folder, sizeof inner.folder, "%.270s/%.16s", search->folder, name);
    if (search->gts->count == 0 && has_file(search->io, inner.folder, "gt_act_freq_mhz"))
        (void)add_gt(search, false, inner.folder, "gt_act_freq_mhz", "gt_RP0_freq_mhz", "power/rc6_residency_ms");
    return false;
}

static void find(struct intel_gts *gts, struct io *io, const struct pci_display *display)
{
    struct gt_search search = {.io = io, .gts = gts};
    bool is_xe = strcmp(display->driver, "xe") == 0;
    intel_gt_close(gts, io);
    (void)snprintf(search.folder, sizeof search.folder, "%.255s%s", display->path, is_xe ? "" : "/drm");
    (void)io->operations->list(io, search.folder, is_xe ? take_tile : take_card, &search);
}

/* --- reading ---------------------------------------------------------------------------------------------------------- */

/* The clock that the chip runs at, never the one that was asked for. 0 is a GT that is parked. Of several tiles the fastest, as
 * i915 does for the whole card. */
static void sample_clock(struct intel_gts *gts, struct io *io, bool media, struct sample *sample, int metric)
{
    int error = -ENOENT;
    double most = -1;
    for (int i = 0; i < gts->count; i++) {
        struct intel_gt *gt = &gts->list[i];
        uint64_t mhz = 0;
        if (gt->media != media)
            continue;
        int result = io_file_u64(io, &gt->clock, &mhz);
        gt->has_clock = result == 0;
        gt->mhz = (double)mhz;
        gts->lost = gts->lost || result == -ENOENT || result == -ENODEV;
        if (result)
            error = result;
        else if (gt->mhz > most)
            most = gt->mhz;
    }
    if (most < 0)
        sample_unknown(sample, metric, io_reason(error));
    else
        sample_f64_within(sample, metric, most, 0, CLOCK_MOST);
}

/* Is "reason_NAME" one of the words? */
static bool is_listed(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *word = text; *word; word += strspn(word, " \n")) {
        size_t size = strcspn(word, " \n");
        if (size == 7 + length && strncmp(word, "reason_", 7) == 0 && strncmp(word + 7, name, length) == 0)
            return true;
        word += size;
    }
    return false;
}

static bool is_told(struct io *io, const struct intel_gt *gt, const char *name)
{
    char path[sizeof gt->reasons + 32];
    uint64_t value = 0;
    (void)snprintf(path, sizeof path, "%s%.24s", gt->reasons, name);
    return io_read_u64(io, path, 10, &value) == 0 && value != 0;
}

static int read_throttle(struct intel_gt *gt, struct io *io, uint64_t *throttle, uint64_t *raw)
{
    char text[512];
    long got = io_file_read(io, &gt->throttled, text, sizeof text);
    if (got < 0)
        return (int)got;
    if (strcmp(text, "0") == 0 || strcmp(text, "none") == 0)
        return 0;
    bool listed = strncmp(text, "reason_", 7) == 0, any = false;
    if (!listed && strcmp(text, "1") != 0)
        return -EPROTO;
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (listed ? is_listed(text, reasons[i].name) : is_told(io, gt, reasons[i].name)) {
            *throttle |= reasons[i].throttle;
            *raw |= UINT64_C(1) << reasons[i].raw_bit;
            any = true;
        }
    if (!any)
        *throttle |= THROTTLE_OTHER;
    return 0;
}

static void sample_throttle(struct intel_gts *gts, struct io *io, struct sample *sample)
{
    uint64_t throttle = 0, raw = 0;
    int error = -ENOENT;
    bool any = false;
    for (int i = 0; i < gts->count; i++) {
        int result = read_throttle(&gts->list[i], io, &throttle, &raw);
        any = any || result == 0;
        error = result ? result : error;
    }
    if (any) {
        sample_u64(sample, METRIC_THROTTLE, throttle);
        sample_u64(sample, METRIC_THROTTLE_RAW, raw);
        return;
    }
    sample_unknown(sample, METRIC_THROTTLE, io_reason(error));
    sample_unknown(sample, METRIC_THROTTLE_RAW, io_reason(error));
}

void intel_gt_sample(struct intel_gts *gts, struct io *io, const struct pci_display *display, struct sample *sample)
{
    if ((gts->count == 0 || gts->lost) && sample->mono_ns >= gts->retry_ns) {
        find(gts, io, display);
        gts->retry_ns = sample->mono_ns + (gts->count ? 1 : 10) * SECOND;
    }
    sample_clock(gts, io, false, sample, METRIC_GFX_CLOCK);
    sample_clock(gts, io, true, sample, METRIC_MEDIA_CLOCK);
    sample_throttle(gts, io, sample);
}

/* Where the time is not told, a clock is a GT that is not parked. */
static void look_at_idle(struct intel_gt *gt, struct io *io, uint64_t mono_ns)
{
    uint64_t idle_ms = 0;
    if (gt->idle_ns && mono_ns < gt->idle_ns + SECOND)
        return;
    if (io_file_u64(io, &gt->idle, &idle_ms) != 0) {
        gt->busy = gt->has_clock && gt->mhz > 0;
        gt->idle_ns = 0;
        return;
    }
    uint64_t elapsed_ms = (mono_ns - gt->idle_ns) / 1000000, rested_ms = idle_ms - gt->idle_ms;
    bool comparable = gt->idle_ns && idle_ms >= gt->idle_ms;
    gt->busy = comparable && rested_ms < elapsed_ms && (elapsed_ms - rested_ms) * IDLE_SHARE > elapsed_ms;
    gt->idle_ms = idle_ms;
    gt->idle_ns = mono_ns;
}

bool intel_gt_is_busy(struct intel_gts *gts, struct io *io, uint64_t mono_ns)
{
    bool busy = false;
    for (int i = 0; i < gts->count; i++) {
        look_at_idle(&gts->list[i], io, mono_ns);
        busy = busy || gts->list[i].busy;
    }
    return busy;
}

double intel_gt_maximum(const struct intel_gts *gts)
{
    double most = 0;
    for (int i = 0; i < gts->count; i++)
        if (!gts->list[i].media && gts->list[i].mhz_maximum > most)
            most = gts->list[i].mhz_maximum;
    return most;
}
