#include <stdio.h>
#include <string.h>

#include "broker/providers/amdgpu.h"
#include "broker/providers/kfd.h"
#include "broker/providers/specs.h"
#include "broker/providers/system.h"
#include "shm/text.h"

/* Processors that are APUs in every form (LLVM's table of AMDGPU processors); gfx942 is both. */
static bool is_apu_arch(const char *arch)
{
    static const char *const apus[] = {"gfx902",  "gfx909",  "gfx90c",  "gfx1013", "gfx1033", "gfx1035", "gfx1036",
                                       "gfx1037", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"};
    for (size_t i = 0; i < sizeof apus / sizeof apus[0]; i++)
        if (strcmp(arch, apus[i]) == 0)
            return true;
    return false;
}

static uint64_t read_number(struct io *io, const struct amdgpu_device *device, const char *name)
{
    char path[320];
    uint64_t value = 0;
    (void)snprintf(path, sizeof path, "%.255s/%.48s", device->display.path, name);
    return io_read_u64(io, path, 10, &value) == 0 ? value : 0;
}

static bool read_text(struct io *io, const struct amdgpu_device *device, const char *name, char *out, size_t size)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%.255s/%.48s", device->display.path, name);
    return io_read_text(io, path, out, size) > 0;
}

/* Without the driver's own word: kfd offers an APU's host memory as its memory bank (kernel 6.10 and later), and there are
 * processors that exist as APUs only. */
static uint32_t guess_pool(struct io *io, const struct amdgpu_device *device, const struct kfd_facts *kfd)
{
    uint64_t vram = read_number(io, device, "mem_info_vram_total"), gtt = read_number(io, device, "mem_info_gtt_total");
    if (is_apu_arch(device->facts.arch) || (kfd && kfd->memory_bytes && kfd->memory_bytes == gtt && gtt != vram))
        return POOL_UNIFIED;
    return POOL_DISCRETE;
}

static uint64_t host_memory(struct io *io)
{
    char text[8192];
    uint64_t bytes = 0;
    if (io_read_text(io, "/proc/meminfo", text, sizeof text) < 0 || !system_meminfo_bytes(text, "MemTotal", &bytes))
        return 0;
    return bytes;
}

void amdgpu_describe_asleep(struct amdgpu_device *device, struct io *io)
{
    struct layout_device *facts = &device->facts;
    struct kfd_facts kfd;
    char text[64];
    pci_describe(io, &device->display, facts);
    (void)pci_amd_name(io, &device->display, facts->name, sizeof facts->name);
    if (read_text(io, device, "unique_id", text, sizeof text))
        provider_text(facts->uuid, sizeof facts->uuid, text);
    bool have_kfd = kfd_find(io, &device->display, &kfd);
    if (have_kfd) {
        kfd_arch(kfd.gfx_target_version, facts->arch, sizeof facts->arch);
        facts->kfd_index = kfd.index;
        facts->compute_units = kfd.compute_units;
        facts->vram_bus_bits = kfd.memory_bus_bits;
    }
    facts->pool = guess_pool(io, device, have_kfd ? &kfd : NULL);
    device->host_memory = host_memory(io);
    specs_complete(facts);
}

/* The hwmon channel in1 is the northbridge's voltage, which the driver shows on APUs only (amdgpu_pm.c: "only APUs have
 * vddnb"). */
static bool has_northbridge(struct io *io, const struct amdgpu_device *device)
{
    char path[400], label[32];
    (void)snprintf(path, sizeof path, "%.319s/in1_label", device->hwmon.folder);
    return device->hwmon.folder[0] && io_read_text(io, path, label, sizeof label) > 0 && strcmp(label, "vddnb") == 0;
}

static double clock_maximum(struct io *io, const struct amdgpu_device *device, const char *name)
{
    char text[2048];
    return read_text(io, device, name, text, sizeof text) ? amdgpu_clock_maximum(text) : 0;
}

void amdgpu_describe_awake(struct amdgpu_device *device, struct io *io)
{
    struct layout_device *facts = &device->facts;
    struct amdgpu_drm_facts drm;
    if (has_northbridge(io, device))
        facts->pool = POOL_UNIFIED;
    if (amdgpu_drm_describe(io, device->display.render_minor, &drm)) {
        if (drm.name[0])
            provider_text(facts->name, sizeof facts->name, drm.name);
        if (!facts->driver_version[0])
            provider_text(facts->driver_version, sizeof facts->driver_version, drm.driver_version);
        facts->pool = drm.unified ? POOL_UNIFIED : POOL_DISCRETE;
        facts->compute_units = drm.compute_units ? drm.compute_units : facts->compute_units;
        facts->vram_bus_bits = drm.memory_bus_bits ? drm.memory_bus_bits : facts->vram_bus_bits;
        provider_text(facts->vram_type, sizeof facts->vram_type, drm.memory_type);
        if (!facts->arch[0])
            provider_text(facts->arch, sizeof facts->arch, drm.arch);
    }
    memcpy(facts->limits, device->hwmon.limits, sizeof facts->limits);
    facts->limits[LIMIT_GFX_CLOCK_MAX] = clock_maximum(io, device, "pp_dpm_sclk");
    facts->limits[LIMIT_MEMORY_CLOCK_MAX] = clock_maximum(io, device, "pp_dpm_mclk");
    facts->tgp = device->hwmon.power_default;
    specs_complete(facts);
    device->facts_complete = true;
    device->facts_changed = true;
}
