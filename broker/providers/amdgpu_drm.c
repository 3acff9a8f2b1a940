/* What the driver says of a card through libdrm. Which cards there are is not asked here: drmGetDevices2 lists nodes, not cards (it
 * shows a partition as a device and none of a driver without nodes), needs /dev/dri in every container, and tells nothing
 * that sysfs does not. */
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "broker/providers/amdgpu.h"
#include "shm/text.h"

/* Not in the header of libdrm 2.4.114. */
enum { VRAM_TYPE_LPDDR4 = 11, VRAM_TYPE_LPDDR5 = 12, VRAM_TYPE_HBM3E = 13, FAMILY_GC_11_0_1 = 148 };

static const char *memory_type(uint32_t type)
{
    switch (type) {
    case AMDGPU_VRAM_TYPE_DDR2: return "DDR2";
    case AMDGPU_VRAM_TYPE_DDR3: return "DDR3";
    case AMDGPU_VRAM_TYPE_DDR4: return "DDR4";
    case AMDGPU_VRAM_TYPE_DDR5: return "DDR5";
    case AMDGPU_VRAM_TYPE_GDDR3: return "GDDR3";
    case AMDGPU_VRAM_TYPE_GDDR4: return "GDDR4";
    case AMDGPU_VRAM_TYPE_GDDR5: return "GDDR5";
    case AMDGPU_VRAM_TYPE_GDDR6: return "GDDR6";
    case AMDGPU_VRAM_TYPE_HBM: return "HBM";
    case VRAM_TYPE_HBM3E: return "HBM3E";
    case VRAM_TYPE_LPDDR4: return "LPDDR4";
    case VRAM_TYPE_LPDDR5: return "LPDDR5";
    default: return "";
    }
}

/* Families of one processor each: Van Gogh, Yellow Carp (Rembrandt), Phoenix. */
static const char *arch_of(uint32_t family)
{
    switch (family) {
    case AMDGPU_FAMILY_VGH: return "gfx1033";
    case AMDGPU_FAMILY_YC: return "gfx1035";
    case FAMILY_GC_11_0_1: return "gfx1103";
    default: return "";
    }
}

static void ask(amdgpu_device_handle handle, struct amdgpu_drm_facts *out)
{
    struct drm_amdgpu_info_device facts;
    memset(&facts, 0, sizeof facts);
    const char *name = amdgpu_get_marketing_name(handle);
    provider_text(out->name, sizeof out->name, name);
    if (amdgpu_query_info(handle, AMDGPU_INFO_DEV_INFO, sizeof facts, &facts) != 0)
        return;
    out->unified = (facts.ids_flags & AMDGPU_IDS_FLAGS_FUSION) != 0;
    out->compute_units = facts.cu_active_number;
    out->memory_bus_bits = facts.vram_bit_width;
    out->memory_type = memory_type(facts.vram_type);
    out->arch = arch_of(facts.family);
}

bool amdgpu_drm_describe(struct io *io, int render_minor, struct amdgpu_drm_facts *out)
{
    char path[64];
    memset(out, 0, sizeof *out);
    out->memory_type = "";
    out->arch = "";
    (void)snprintf(path, sizeof path, "/dev/dri/renderD%d", render_minor);
    /* libdrm asks the kernel itself, past our table of operations: not below a root. */
    if (io->root[0] || render_minor < 0 || !io_exists(io, path))
        return false;
    int fd = io->operations->open(io, path, O_RDWR);
    if (fd < 0)
        return false;
    uint32_t major = 0, minor = 0;
    amdgpu_device_handle handle = NULL;
    bool found = amdgpu_device_initialize(fd, &major, &minor, &handle) == 0;
    if (found) {
        ask(handle, out);
        text_format(out->driver_version, sizeof out->driver_version, "drm %u.%u", major, minor);
        (void)amdgpu_device_deinitialize(handle);
    }
    io->operations->close(io, fd);
    return found;
}
