#include "broker/providers/fdinfo.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Names of all drivers: amdgpu (amdgpu_fdinfo.c), i915 and xe (classes of engines), and those of small GPUs. */
static const struct {
    const char *name;
    enum fdinfo_kind kind;
} engines[FDINFO_ENGINES] = {
    {"gfx", FDINFO_GFX},
    {"compute", FDINFO_COMPUTE},
    {"dma", FDINFO_COPY},
    {"dec", FDINFO_DECODE},
    {"enc", FDINFO_ENCODE},
    {"enc_1", FDINFO_ENCODE},
    {"jpeg", FDINFO_DECODE},
    {"vpe", FDINFO_MEDIA},
    {"uvd_enc", FDINFO_ENCODE},
    {"render", FDINFO_GFX},
    {"copy", FDINFO_COPY},
    {"video", FDINFO_MEDIA},
    {"video-enhance", FDINFO_MEDIA},
    {"rcs", FDINFO_GFX},
    {"ccs", FDINFO_COMPUTE},
    {"bcs", FDINFO_COPY},
    {"vcs", FDINFO_MEDIA},
    {"vecs", FDINFO_MEDIA},
    {"gpu", FDINFO_GFX},
    {"fragment", FDINFO_GFX},
    {"vertex-tiler", FDINFO_GFX},
    {"bin", FDINFO_GFX},
    {"3d", FDINFO_GFX},
    {"2d", FDINFO_GFX},
};

enum fdinfo_kind fdinfo_engine_kind(int engine)
{
    return engine >= 0 && engine < FDINFO_ENGINES ? engines[engine].kind : FDINFO_GFX;
}

static int engine_named(const char *name, size_t length)
{
    for (int i = 0; i < FDINFO_ENGINES; i++)
        if (strlen(engines[i].name) == length && strncmp(engines[i].name, name, length) == 0)
            return i;
    return -1;
}

/* --- one line ----------------------------------------------------------------------------------------------------------- */

struct line {
    const char *key;
    size_t key_length;
    const char *value; /* after the white space, up to the line's end */
    size_t value_length;
};

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* "key:<white space>value". The next line's start, NULL at the end. A line without a colon has an empty key. */
static const char *next_line(const char *text, struct line *out)
{
    size_t length = strcspn(text, "\n");
    const char *colon = memchr(text, ':', length), *end = text + length;
    memset(out, 0, sizeof *out);
    if (colon) {
        out->key = text;
        out->key_length = (size_t)(colon - text);
        out->value = colon + 1;
        while (out->value < end && is_blank(*out->value))
            out->value++;
        out->value_length = (size_t)(end - out->value);
        while (out->value_length > 0 && is_blank(out->value[out->value_length - 1]))
            out->value_length--;
    }
    return *end ? end + 1 : NULL;
}

static bool key_is(const struct line *line, const char *key)
{
    return line->key_length == strlen(key) && strncmp(line->key, key, line->key_length) == 0;
}

/* The rest of the key after a prefix, NULL for another key. */
static const char *key_after(const struct line *line, const char *prefix, size_t *length)
{
    size_t skipped = strlen(prefix);
    if (line->key_length <= skipped || strncmp(line->key, prefix, skipped) != 0)
        return NULL;
    *length = line->key_length - skipped;
    return line->key + skipped;
}

static void copy_value(const struct line *line, char *out, size_t size)
{
    size_t length = line->value_length < size - 1 ? line->value_length : size - 1;
    memcpy(out, line->value, length);
    out[length] = '\0';
}

/* A whole number and what follows it; false where there is none. */
static bool number(const struct line *line, uint64_t *value, char *unit, size_t unit_size)
{
    size_t at = 0;
    *value = 0;
    while (at < line->value_length && isdigit((unsigned char)line->value[at])) {
        unsigned digit = (unsigned)(line->value[at++] - '0');
        if (*value > (UINT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    if (at == 0)
        return false;
    while (at < line->value_length && is_blank(line->value[at]))
        at++;
    size_t length = line->value_length - at;
    if (length >= unit_size)
        return false;
    memcpy(unit, line->value + at, length);
    unit[length] = '\0';
    return true;
}

/* Without a unit it is bytes. kB is what kernels before 5.19 wrote for KiB. */
static bool bytes(const struct line *line, uint64_t *out)
{
    static const struct {
        const char *unit;
        unsigned shift;
    } units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"kB", 10}, {"MiB", 20}, {"GiB", 30}};
    char unit[8];
    uint64_t value;
    if (!number(line, &value, unit, sizeof unit))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].unit) == 0 && value <= UINT64_MAX >> units[i].shift) {
            *out = value << units[i].shift;
            return true;
        }
    return false;
}

/* --- memory --------------------------------------------------------------------------------------------------------------- */

/* What a driver says of one kind of memory, best first: total also counts what is shared with other clients or was never
 * touched (xpumanager issue 145: a browser with more than twice what the whole card used). */
enum memory_word { WORD_RESIDENT, WORD_MEMORY, WORD_TOTAL, WORD_COUNT };

struct memory_sums {
    bool said[2][WORD_COUNT];
    uint64_t sum[2][WORD_COUNT]; /* [0] video memory, [1] memory of the host */
};

static bool starts(const char *text, size_t length, const char *with)
{
    return length >= strlen(with) && strncmp(text, with, strlen(with)) == 0;
}

/* vram, vram0, local0 are the card's own; gtt, system0, stolen-system0, memory the host's. -1: neither. */
static int pool_of(const char *region, size_t length)
{
    if (starts(region, length, "vram") || starts(region, length, "local"))
        return 0;
    if (starts(region, length, "gtt") || starts(region, length, "system") || starts(region, length, "stolen") ||
        starts(region, length, "memory"))
        return 1;
    return -1;
}

static void take_memory(const struct line *line, enum memory_word word, const char *region, size_t length, struct memory_sums *sums)
{
    uint64_t value;
    int pool = pool_of(region, length);
    if (pool < 0 || !bytes(line, &value))
        return;
    sums->said[pool][word] = true;
    sums->sum[pool][word] = value > UINT64_MAX - sums->sum[pool][word] ? UINT64_MAX : sums->sum[pool][word] + value;
}

static bool best_word(const struct memory_sums *sums, int pool, uint64_t *out)
{
    for (int word = 0; word < WORD_COUNT; word++)
        if (sums->said[pool][word]) {
            *out = sums->sum[pool][word];
            return true;
        }
    return false;
}

/* --- keys ----------------------------------------------------------------------------------------------------------------- */

static void take_engine(const struct line *line, struct fdinfo *out)
{
    static const struct {
        const char *prefix;
        int what;
    } words[] = {{"drm-engine-capacity-", 1}, {"drm-engine-", 0}, {"drm-cycles-", 2}, {"drm-total-cycles-", 3}};
    char unit[8];
    uint64_t value;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length;
        const char *name = key_after(line, words[i].prefix, &length);
        int engine = name ? engine_named(name, length) : -1;
        if (engine < 0 || !number(line, &value, unit, sizeof unit))
            continue;
        struct fdinfo_engine *to = &out->engines[engine];
        if (words[i].what == 0 && strcmp(unit, "ns") == 0) {
            to->has_time = true;
            to->time_ns = value;
        } else if (words[i].what == 1) {
            to->capacity = value <= 1024 ? (uint32_t)value : 0;
        } else if (words[i].what == 2) {
            to->has_cycles = true;
            to->cycles = value;
        } else if (words[i].what == 3) {
            to->total_cycles = value;
        }
        return;
    }
}

/* "gfx0:\t12.34%" of amdgpu before Linux 5.19. Of several rings of a name the busiest counts. */
static void take_old_share(const struct line *line, struct fdinfo *out)
{
    size_t length = line->key_length;
    while (length > 0 && isdigit((unsigned char)line->key[length - 1]))
        length--;
    int engine = length < line->key_length ? engine_named(line->key, length) : -1;
    char text[16], *end;
    copy_value(line, text, sizeof text);
    double share = strtod(text, &end);
    if (engine < 0 || end == text || strcmp(end, "%") != 0 || !(share >= 0 && share <= 100))
        return;
    struct fdinfo_engine *to = &out->engines[engine];
    to->share = !to->has_share || share > to->share ? share : to->share;
    to->has_share = true;
}

static void take_line(const struct line *line, struct fdinfo *out, struct memory_sums *sums)
{
    static const struct {
        const char *prefix;
        enum memory_word word;
    } memories[] = {{"drm-resident-", WORD_RESIDENT}, {"drm-memory-", WORD_MEMORY}, {"drm-total-", WORD_TOTAL}};
    char unit[8];
    size_t length;
    if (key_is(line, "drm-driver")) {
        copy_value(line, out->driver, sizeof out->driver);
    } else if (key_is(line, "drm-pdev") || key_is(line, "pdev")) {
        copy_value(line, out->pdev, sizeof out->pdev);
    } else if (key_is(line, "drm-client-id")) {
        out->has_client = number(line, &out->client, unit, sizeof unit);
        out->has_own_id = true;
    } else if (key_is(line, "pasid")) { /* all that kernels before 5.19 tell */
        out->has_client = out->has_own_id ? out->has_client : number(line, &out->client, unit, sizeof unit);
    } else if (key_is(line, "vram mem") || key_is(line, "gtt mem")) {
        take_memory(line, WORD_MEMORY, line->key, line->key_length - strlen(" mem"), sums);
    } else {
        for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) {
            const char *region = key_after(line, memories[i].prefix, &length);
            if (region && !starts(region, length, "cycles-"))
                take_memory(line, memories[i].word, region, length, sums);
        }
        take_engine(line, out);
        take_old_share(line, out);
    }
}

bool fdinfo_parse(const char *text, struct fdinfo *out)
{
    struct memory_sums sums = {0};
    struct line line;
    memset(out, 0, sizeof *out);
    while (text) {
        text = next_line(text, &line);
        if (line.key_length > 0)
            take_line(&line, out, &sums);
    }
    out->has_vram = best_word(&sums, 0, &out->vram);
    out->has_gtt = best_word(&sums, 1, &out->gtt);
    return out->driver[0] || out->pdev[0];
}
