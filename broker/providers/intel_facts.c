#include <stdio.h>
#include <string.h>

#include "broker/providers/intel.h"
#include "shm/text.h"

/* Device numbers by family, from include/drm/intel/pciids.h of the kernel; names of the architectures as xe_pci.c and Intel's
 * manuals have them. A range may hold numbers that no device has. */
static const struct family {
    uint32_t first, last;
    const char *arch;
    bool unified; /* part of a processor */
} families[] = {
    {0x5690, 0x56cf, "xe-hpg", false},     /* DG2, ATS-M */
    {0xe200, 0xe22f, "xe2-hpg", false},    /* BMG */
    {0x0b69, 0x0b6e, "xe-hpc", false},     /* PVC */
    {0x0bd4, 0x0be5, "xe-hpc", false},     /* PVC */
    {0x4905, 0x4909, "xe-lp", false},      /* DG1 */
    {0x674c, 0x6750, "xe3p-xpc", false},   /* CRI */
    {0x6420, 0x64bf, "xe2-lpg", true},     /* LNL */
    {0xb080, 0xb0bf, "xe3-lpg", true},     /* PTL */
    {0xfd80, 0xfd81, "xe3-lpg", true},     /* WCL */
    {0x7d51, 0x7d51, "xe-lpg-plus", true}, /* ARL-H, before the range it lies in */
    {0x7dd1, 0x7dd1, "xe-lpg-plus", true}, /* ARL-H */
    {0x7d40, 0x7dd5, "xe-lpg", true},      /* MTL, ARL-U, ARL-S */
    {0xb640, 0xb640, "xe-lpg", true},      /* ARL-S */
    {0x9a40, 0x9af8, "xe-lp", true},       /* TGL */
    {0x4c80, 0x4c9a, "xe-lp", true},       /* RKL */
    {0x4626, 0x462a, "xe-lp", true},       /* ADL-P */
    {0x4680, 0x46d4, "xe-lp", true},       /* ADL-S, ADL-P, ADL-N */
    {0xa720, 0xa7ad, "xe-lp", true},       /* RPL */
    {0x8a50, 0x8a71, "gen11", true},       /* ICL */
    {0x4541, 0x4571, "gen11", true},       /* EHL */
    {0x4e51, 0x4e71, "gen11", true},       /* JSL */
    {0x1902, 0x193d, "gen9", true},        /* SKL */
    {0x0a84, 0x0a84, "gen9", true},        /* BXT */
    {0x1a84, 0x1a85, "gen9", true},        /* BXT */
    {0x5a84, 0x5a85, "gen9", true},        /* APL */
    {0x3184, 0x3185, "gen9", true},        /* GLK */
    {0x5902, 0x593b, "gen9", true},        /* KBL */
    {0x87c0, 0x87ca, "gen9", true},        /* AML */
    {0x3e90, 0x3ea9, "gen9", true},        /* CFL, WHL */
    {0x9b21, 0x9bf6, "gen9", true},        /* CML */
    {0x1602, 0x163e, "gen8", true},        /* BDW */
    {0x22b0, 0x22b3, "gen8", true},        /* CHV */
};

bool intel_is_driver(const char *driver) { return strcmp(driver, "i915") == 0 || strcmp(driver, "xe") == 0; }

static const struct family *find_family(uint32_t device)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (device >= families[i].first && device <= families[i].last)
            return &families[i];
    return NULL;
}

/* The graphics of a processor are always function 0 of device 2 of its own bus. */
static uint32_t guess_pool(const struct family *family, const struct pci_display *display)
{
    if (family)
        return family->unified ? POOL_UNIFIED : POOL_DISCRETE;
    return strcmp(display->id, "0000:00:02.0") == 0 ? POOL_UNIFIED : POOL_UNKNOWN;
}

void intel_describe_asleep(struct intel_device *device, struct io *io, const struct pci_display *display)
{
    struct layout_device *facts = &device->facts;
    const struct family *family = find_family(display->device);
    pci_describe(io, display, facts);
    provider_text(facts->arch, sizeof facts->arch, family ? family->arch : "");
    facts->pool = guess_pool(family, display);
}

/* What the board is made for; 0 is a board that does not say (A380). xe has it on the rail of the chip. */
static double rated_power(struct io *io, const struct hwmon *hwmon)
{
    for (int rail = 1; rail <= 2 && hwmon->folder[0]; rail++) {
        char path[400];
        uint64_t microwatts;
        (void)snprintf(path, sizeof path, "%.319s/power%d_rated_max", hwmon->folder, rail);
        if (io_read_u64(io, path, 10, &microwatts) == 0 && microwatts > 0 && microwatts < UINT64_C(3000000000))
            return (double)microwatts / 1e6;
    }
    return 0;
}

void intel_describe_awake(struct intel_device *device, struct io *io)
{
    struct layout_device *facts = &device->facts;
    if (!device->memory_error) {
        if (device->memory.has_vram || device->memory.system_total > 0)
            facts->pool = device->memory.has_vram ? POOL_DISCRETE : POOL_UNIFIED;
        if (!facts->driver_version[0])
            provider_text(facts->driver_version, sizeof facts->driver_version, device->memory.driver_version);
    }
    memcpy(facts->limits, device->hwmon.limits, sizeof facts->limits);
    facts->limits[LIMIT_GFX_CLOCK_MAX] = intel_gt_maximum(&device->gts);
    double rated = rated_power(io, &device->hwmon);
    facts->tgp = rated > 0 ? rated : facts->tgp;
    device->facts_complete = true;
    device->facts_changed = true;
}
