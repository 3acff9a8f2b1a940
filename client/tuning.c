/* How to run inference on an architecture: advice, looked up by name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "client/handle.h"
#include "shm/text.h"

enum maker { OTHER, AMD, NVIDIA, INTEL };

/* AMD by the digits of its gfx name read as hexadecimal, NVIDIA by ten times the compute capability, Intel by family. The first row
 * that fits holds; one without an upper end is the maker's default. */
struct row {
    enum maker maker;
    uint32_t first, last;
    const char *family;
    bool unified; /* an APU by name alone; a device's own pool overrules it */
    const char *precision;
    int32_t tile_min, tile_max, batch_cap;
};
#define DEFAULT 0, UINT32_MAX

static const struct row rows[] = {
    /* RDNA 3.5: Strix Point, Strix Halo, Krackan, all of them APUs. */
    {AMD, 0x1150, 0x1153, "rdna3_5", true, "fp16", 768, 2048, 8},
    /* RDNA 4: Navi 44, Navi 48. */
    {AMD, 0x1200, 0x1201, "rdna4", false, "fp16", 768, 2048, 16},
    /* RDNA 3: Navi 31, 32, 33; and Phoenix, which looks like one of them and is an APU. */
    {AMD, 0x1100, 0x1102, "rdna3", false, "fp16", 768, 2048, 16},
    {AMD, 0x1103, 0x1103, "rdna3", true, "fp16", 768, 2048, 8},
    /* RDNA 2: Navi 21 to 23 and 24; and the APUs Van Gogh, Rembrandt, Raphael. */
    {AMD, 0x1030, 0x1032, "rdna2", false, "fp16", 512, 1536, 8},
    {AMD, 0x1034, 0x1034, "rdna2", false, "fp16", 512, 1536, 8},
    {AMD, 0x1033, 0x1033, "rdna2", true, "fp16", 512, 1024, 4},
    {AMD, 0x1035, 0x1036, "rdna2", true, "fp16", 512, 1024, 4},
    /* CDNA: MI100 without fast bf16, MI200, MI300 (the MI300A is an APU, which only the pool tells), MI350. */
    {AMD, 0x908, 0x908, "cdna", false, "fp16", 768, 2048, 16},
    {AMD, 0x90A, 0x90A, "cdna", false, "bf16", 768, 2048, 32},
    {AMD, 0x942, 0x942, "cdna", false, "bf16", 768, 2048, 32},
    {AMD, 0x950, 0x950, "cdna", false, "bf16", 768, 2048, 32},
    {AMD, DEFAULT, "generic_amd", false, "fp16", 512, 1024, 4},

    /* Fast fp16 came with Volta, bf16 with Ampere. The second row of a family is its part with memory shared with the CPU. */
    {NVIDIA, 50, 52, "maxwell", false, "fp32", 512, 1024, 4},
    {NVIDIA, 53, 53, "maxwell", true, "fp16", 512, 1024, 4},
    {NVIDIA, 60, 61, "pascal", false, "fp32", 512, 1024, 4},
    {NVIDIA, 62, 62, "pascal", true, "fp16", 512, 1024, 4},
    {NVIDIA, 70, 70, "volta", false, "fp16", 768, 2048, 16},
    {NVIDIA, 72, 72, "volta", true, "fp16", 512, 1024, 4},
    {NVIDIA, 75, 75, "turing", false, "fp16", 512, 1536, 8},
    {NVIDIA, 80, 80, "ampere", false, "bf16", 768, 2048, 32},
    {NVIDIA, 87, 87, "ampere", true, "bf16", 768, 2048, 8},
    {NVIDIA, 86, 88, "ampere", false, "bf16", 768, 2048, 16},
    {NVIDIA, 89, 89, "ada", false, "bf16", 768, 2048, 16},
    {NVIDIA, 90, 90, "hopper", false, "bf16", 768, 2048, 32},
    {NVIDIA, 101, 101, "blackwell", true, "bf16", 768, 2048, 8},
    {NVIDIA, 100, 103, "blackwell", false, "bf16", 768, 2048, 32},
    {NVIDIA, 110, 110, "blackwell", true, "bf16", 768, 2048, 8},
    {NVIDIA, 121, 121, "blackwell", true, "bf16", 768, 2048, 8},
    {NVIDIA, 120, 120, "blackwell", false, "bf16", 768, 2048, 16},
    {NVIDIA, DEFAULT, "generic_nvidia", false, "fp16", 512, 1024, 4},

    /* bf16 came with the matrix engines of Xe-HPG, which Xe-LPG lacks. Xe2 is in cards and in APUs: the pool tells. */
    {INTEL, 0, 0, "xe_lp", true, "fp16", 512, 1024, 4},
    {INTEL, 0, 0, "xe_lpg", true, "fp16", 512, 1024, 4},
    {INTEL, 0, 0, "xe_lpg_plus", true, "bf16", 512, 1536, 4},
    {INTEL, 0, 0, "xe_hpg", false, "bf16", 768, 2048, 8},
    {INTEL, 0, 0, "xe_hpc", false, "bf16", 768, 2048, 32},
    {INTEL, 0, 0, "xe2_lpg", true, "bf16", 768, 2048, 8},
    {INTEL, 0, 0, "xe2_hpg", false, "bf16", 768, 2048, 8},
    {INTEL, 0, 0, "xe2", false, "bf16", 768, 2048, 8},
    {INTEL, 0, 0, "xe3_lpg", true, "bf16", 768, 2048, 8},
    {INTEL, 0, 0, "xe3", true, "bf16", 768, 2048, 8},
    {INTEL, DEFAULT, "generic_intel", false, "fp16", 512, 1024, 4},

    {OTHER, DEFAULT, "generic", false, "fp32", 512, 1024, 4},
};

struct name {
    enum maker maker;
    uint32_t number; /* 0 = none was understood */
    char text[16];   /* small letters, without what follows a colon */
};

/* 86 of "86", "86a" and "8.6"; 0 of anything else. */
static uint32_t capability(const char *text)
{
    char *end;
    unsigned long major, minor;
    if (!isdigit((unsigned char)text[0]))
        return 0;
    major = strtoul(text, &end, 10);
    if (major >= 1000)
        return 0;
    if (*end != '.')
        return !*end || (isalpha((unsigned char)*end) && !end[1]) ? (uint32_t)major : 0;
    if (!isdigit((unsigned char)end[1]))
        return 0;
    minor = strtoul(end + 1, &end, 10);
    return minor < 10 && major < 100 && !*end ? (uint32_t)(major * 10 + minor) : 0;
}

static void understand(const char *arch, struct name *out)
{
    size_t length = strcspn(arch, ":");
    char *end;
    memset(out, 0, sizeof *out);
    text_copy(out->text, sizeof out->text, arch, length);
    for (char *at = out->text; *at; at++)
        *at = *at == '-' ? '_' : (char)tolower((unsigned char)*at);
    const char *text = out->text;
    if (strncmp(text, "gfx", 3) == 0) {
        unsigned long digits = isxdigit((unsigned char)text[3]) ? strtoul(text + 3, &end, 16) : 0;
        out->maker = AMD;
        out->number = digits > 0 && digits < 0x100000 && !*end ? (uint32_t)digits : 0;
    } else if (strncmp(text, "sm", 2) == 0 || isdigit((unsigned char)text[0])) {
        out->number = capability(strncmp(text, "sm_", 3) == 0 ? text + 3 : strncmp(text, "sm", 2) == 0 ? text + 2 : text);
        out->maker = out->number ? NVIDIA : OTHER;
    } else if (strncmp(text, "xe", 2) == 0)
        out->maker = INTEL;
}

static const struct row *find_row(const struct name *name)
{
    const struct row *row = rows;
    for (;; row++) { /* the last row fits the rest */
        bool by_number = row->maker != INTEL && name->number >= row->first && name->number <= row->last;
        bool by_family = row->maker == INTEL && (row->last == UINT32_MAX || strcmp(row->family, name->text) == 0);
        if (row->maker == name->maker && (by_number || by_family))
            return row;
    }
}

static int deliver(const gputap *tap, const struct name *name, int pool, gputap_tuning_info *out)
{
    const struct row *row = find_row(name);
    gputap_tuning_info known = {.tile_min = row->tile_min, .tile_max = row->tile_max, .batch_cap = row->batch_cap};
    known.known = row->last != UINT32_MAX;
    known.unified = pool == POOL_UNKNOWN ? row->unified : pool == POOL_UNIFIED;
    text_format(known.arch, sizeof known.arch, "%s", name->text);
    text_format(known.family, sizeof known.family, "%s", row->family);
    text_format(known.precision, sizeof known.precision, "%s", row->precision);
    return client_copy_sized(tap, out, out->size, &known, sizeof known);
}

int gputap_tuning(const char *arch, gputap_tuning_info *out)
{
    struct name name;
    if (!arch || !out)
        return GPUTAP_EINVAL;
    understand(arch, &name);
    return deliver(NULL, &name, POOL_UNKNOWN, out);
}

static enum maker maker_of(const char *vendor)
{
    return strcmp(vendor, "amd") == 0 ? AMD : strcmp(vendor, "nvidia") == 0 ? NVIDIA : strcmp(vendor, "intel") == 0 ? INTEL : OTHER;
}

int gputap_device_tuning(gputap *tap, int device, gputap_tuning_info *out)
{
    gputap_device facts = GPUTAP_DEVICE_INIT;
    struct name name;
    if (!tap || !out)
        return GPUTAP_EINVAL;
    int result = gputap_device_info(tap, device, &facts);
    if (result != GPUTAP_OK)
        return result;
    understand(facts.arch, &name);
    if (name.maker == OTHER)
        name.maker = maker_of(facts.vendor);
    return deliver(tap, &name, (int)facts.pool, out);
}
