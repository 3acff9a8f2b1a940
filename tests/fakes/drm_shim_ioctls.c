/* The answers of the drivers. Layouts come from libdrm's headers; those of xe, which older ones lack, are its uapi's
 * (include/uapi/drm/xe_drm.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <amdgpu_drm.h>
#include <drm.h>
#include <i915_drm.h>

#include "drm_shim.h"

#define NR_OF(request) ((request)&0xff)
#define DRIVER_NR(nr) (DRM_COMMAND_BASE + (nr))
enum { XE_DEVICE_QUERY = 0, XE_QUERY_MEM_REGIONS = 1 };

struct xe_device_query {
    uint64_t extensions;
    uint32_t query, size;
    uint64_t data, reserved[2];
};

struct xe_mem_region {
    uint16_t mem_class, instance;
    uint32_t min_page_size;
    uint64_t total_size, used, cpu_visible_size, cpu_visible_used, reserved[6];
};

struct xe_mem_regions {
    uint32_t count, pad;
    struct xe_mem_region regions[SHIM_REGIONS];
};

static bool is_driver(const struct shim_gpu *gpu, const char *name) { return strcmp(gpu->driver, name) == 0; }

void shim_request_name(const struct shim_gpu *gpu, unsigned long request, const void *argument, char name[24])
{
    unsigned long nr = NR_OF(request);
    (void)snprintf(name, 24, "ioctl:%lx", nr);
    if (nr == NR_OF(DRM_IOCTL_VERSION))
        (void)snprintf(name, 24, "version");
    else if (nr == NR_OF(DRM_IOCTL_GET_CLIENT))
        (void)snprintf(name, 24, "client");
    else if (is_driver(gpu, "amdgpu") && nr == DRIVER_NR(DRM_AMDGPU_INFO)) {
        const struct drm_amdgpu_info *info = argument;
        if (info->query == AMDGPU_INFO_SENSOR)
            (void)snprintf(name, 24, "sensor:%x", info->sensor_info.type);
        else
            (void)snprintf(name, 24, "info:%x", info->query);
    } else if (is_driver(gpu, "i915") && nr == DRIVER_NR(DRM_I915_QUERY))
        (void)snprintf(name, 24, "query:0");
    else if (is_driver(gpu, "xe") && nr == DRIVER_NR(XE_DEVICE_QUERY))
        (void)snprintf(name, 24, "query:%x", ((const struct xe_device_query *)argument)->query);
}

/* --- every driver ----------------------------------------------------------------------------------------------------------- */

static void put_text(char *to, size_t *length, const char *value)
{
    if (to && *length > 0)
        memcpy(to, value, *length < strlen(value) ? *length : strlen(value));
    *length = strlen(value);
}

static int answer_version(const struct shim_gpu *gpu, struct drm_version *out)
{
    out->version_major = gpu->major;
    out->version_minor = gpu->minor;
    out->version_patchlevel = 0;
    put_text(out->name, &out->name_len, gpu->driver);
    put_text(out->date, &out->date_len, "20240101");
    put_text(out->desc, &out->desc_len, "fake GPU");
    return 0;
}

/* --- amdgpu ----------------------------------------------------------------------------------------------------------------- */

static int give(const struct drm_amdgpu_info *info, const void *answer, size_t size)
{
    memcpy((void *)(uintptr_t)info->return_pointer, answer, size < info->return_size ? size : info->return_size);
    return 0;
}

static int give_u64(const struct drm_amdgpu_info *info, uint64_t value) { return give(info, &value, sizeof value); }

static int give_sensor(const struct drm_amdgpu_info *info, const struct shim_sensor *list, int count, uint32_t type, bool firmware)
{
    for (int i = 0; i < count; i++)
        if (list[i].type == type) {
            struct drm_amdgpu_info_firmware version = {.ver = list[i].value, .feature = 1};
            if (list[i].error)
                return list[i].error;
            return firmware ? give(info, &version, sizeof version) : give(info, &list[i].value, sizeof list[i].value);
        }
    return EINVAL;
}

static int give_device(const struct drm_amdgpu_info *info, const struct shim_gpu *gpu)
{
    struct drm_amdgpu_info_device device = {
        .device_id = gpu->device,
        .external_rev = gpu->external_rev,
        .pci_rev = gpu->revision,
        .family = gpu->family,
        .num_shader_engines = 1,
        .num_shader_arrays_per_engine = 1,
        .gpu_counter_freq = 100000,
        .max_engine_clock = 2900000,
        .max_memory_clock = 1000000,
        .cu_active_number = gpu->compute_units,
        .ids_flags = gpu->flags,
        .virtual_address_offset = 0x200000,
        .virtual_address_max = 0x800000000000,
        .virtual_address_alignment = 4096,
        .gart_page_size = 4096,
        .vram_type = gpu->vram_type,
        .vram_bit_width = gpu->vram_bits,
        .high_va_offset = 0xffff800000000000,
        .high_va_max = 0xffffffffffe00000,
    };
    return give(info, &device, sizeof device);
}

static int give_memory(const struct drm_amdgpu_info *info, const struct shim_gpu *gpu)
{
    struct drm_amdgpu_memory_info memory = {
        .vram = {gpu->vram.total, gpu->vram.total, gpu->vram.used, gpu->vram.total},
        .cpu_accessible_vram = {gpu->visible.total, gpu->visible.total, gpu->visible.used, gpu->visible.total},
        .gtt = {gpu->gtt.total, gpu->gtt.total, gpu->gtt.used, gpu->gtt.total},
    };
    return give(info, &memory, sizeof memory);
}

static int answer_amdgpu(const struct shim_gpu *gpu, const struct drm_amdgpu_info *info)
{
    static const char zeros[1024];
    struct drm_amdgpu_info_vram_gtt sizes = {gpu->vram.total, gpu->visible.total, gpu->gtt.total};
    uint32_t one = 1;
    switch (info->query) {
    case AMDGPU_INFO_ACCEL_WORKING: return give(info, &one, sizeof one);
    case AMDGPU_INFO_DEV_INFO: return give_device(info, gpu);
    case AMDGPU_INFO_MEMORY: return gpu->vram.total || gpu->gtt.total ? give_memory(info, gpu) : EINVAL;
    case AMDGPU_INFO_VRAM_GTT: return give(info, &sizes, sizeof sizes);
    case AMDGPU_INFO_VRAM_USAGE: return give_u64(info, gpu->vram.used);
    case AMDGPU_INFO_VIS_VRAM_USAGE: return give_u64(info, gpu->visible.used);
    case AMDGPU_INFO_GTT_USAGE: return give_u64(info, gpu->gtt.used);
    case AMDGPU_INFO_SENSOR: return give_sensor(info, gpu->sensors, gpu->sensor_count, info->sensor_info.type, false);
    case AMDGPU_INFO_FW_VERSION: return give_sensor(info, gpu->firmware, gpu->firmware_count, info->query_fw.fw_type, true);
    case AMDGPU_INFO_READ_MMR_REG:
    case AMDGPU_INFO_HW_IP_INFO:
    case AMDGPU_INFO_HW_IP_COUNT: return give(info, zeros, sizeof zeros);
    default: return EINVAL;
    }
}

/* --- i915 and xe ------------------------------------------------------------------------------------------------------------ */

/* The length says what is asked: 0 asks for the size needed (i915_query.c). */
static int answer_i915_item(const struct shim_gpu *gpu, struct drm_i915_query_item *item)
{
    size_t size =
        sizeof(struct drm_i915_query_memory_regions) + (size_t)gpu->region_count * sizeof(struct drm_i915_memory_region_info);
    if (item->query_id != DRM_I915_QUERY_MEMORY_REGIONS || gpu->region_count == 0) {
        item->length = -EINVAL;
        return 0;
    }
    if (item->length > 0 && (size_t)item->length < size) {
        item->length = -EINVAL;
        return 0;
    }
    if (item->length > 0) {
        struct drm_i915_query_memory_regions *out = (void *)(uintptr_t)item->data_ptr;
        memset(out, 0, size);
        out->num_regions = (uint32_t)gpu->region_count;
        for (int i = 0; i < gpu->region_count; i++) {
            const struct shim_region *region = &gpu->regions[i];
            out->regions[i].region.memory_class = region->class_of;
            out->regions[i].region.memory_instance = region->instance;
            out->regions[i].probed_size = region->total;
            out->regions[i].unallocated_size = region->unused;
            out->regions[i].probed_cpu_visible_size = region->visible;
            out->regions[i].unallocated_cpu_visible_size = region->visible_unused;
        }
    }
    item->length = (int)size;
    return 0;
}

static int answer_i915(const struct shim_gpu *gpu, const struct drm_i915_query *query)
{
    struct drm_i915_query_item *items = (void *)(uintptr_t)query->items_ptr;
    for (uint32_t i = 0; i < query->num_items; i++)
        (void)answer_i915_item(gpu, &items[i]);
    return 0;
}

static int answer_xe(const struct shim_gpu *gpu, struct xe_device_query *query)
{
    struct xe_mem_regions out = {.count = (uint32_t)gpu->region_count};
    uint32_t size = (uint32_t)(offsetof(struct xe_mem_regions, regions) + (size_t)gpu->region_count * sizeof out.regions[0]);
    if (query->query != XE_QUERY_MEM_REGIONS)
        return EINVAL;
    if (query->size == 0) {
        query->size = size;
        return 0;
    }
    if (query->size != size)
        return EINVAL;
    for (int i = 0; i < gpu->region_count; i++)
        out.regions[i] = (struct xe_mem_region){.mem_class = gpu->regions[i].class_of,
                                                .instance = gpu->regions[i].instance,
                                                .min_page_size = 4096,
                                                .total_size = gpu->regions[i].total,
                                                .used = gpu->regions[i].total - gpu->regions[i].unused,
                                                .cpu_visible_size = gpu->regions[i].visible,
                                                .cpu_visible_used = gpu->regions[i].visible - gpu->regions[i].visible_unused};
    memcpy((void *)(uintptr_t)query->data, &out, size);
    return 0;
}

int shim_answer(const struct shim_gpu *gpu, unsigned long request, void *argument)
{
    unsigned long nr = NR_OF(request);
    if (nr == NR_OF(DRM_IOCTL_VERSION))
        return answer_version(gpu, argument);
    if (nr == NR_OF(DRM_IOCTL_GET_CLIENT)) {
        ((struct drm_client *)argument)->auth = 1;
        return 0;
    }
    if (is_driver(gpu, "amdgpu") && nr == DRIVER_NR(DRM_AMDGPU_INFO))
        return answer_amdgpu(gpu, argument);
    if (is_driver(gpu, "i915") && nr == DRIVER_NR(DRM_I915_QUERY))
        return answer_i915(gpu, argument);
    if (is_driver(gpu, "xe") && nr == DRIVER_NR(XE_DEVICE_QUERY))
        return answer_xe(gpu, argument);
    return nr < DRM_COMMAND_BASE ? EACCES : EINVAL;
}
