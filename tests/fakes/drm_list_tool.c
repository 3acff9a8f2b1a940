/* What libdrm sees on this machine, a line a fact: the tests of tests/fakes/drm_shim.c compare it with what they described.
 *
 *   device SLOT CARD RENDER        of drmGetDevices2
 *   amdgpu RENDER HANDLE NAME      amdgpu_device_initialize: the number of the handle among the different ones
 *   memory RENDER VRAM GTT         amdgpu_query_info
 *   driver RENDER NAME             drmGetVersion
 *   region RENDER CLASS INSTANCE TOTAL USED
 *                                  of i915 and xe */
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <i915_drm.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xf86drm.h>

enum { MAX_DEVICES = 16, MAX_REGIONS = 8 };

static amdgpu_device_handle handles[MAX_DEVICES];
static int handle_count;

static int number_of(amdgpu_device_handle handle)
{
    for (int i = 0; i < handle_count; i++)
        if (handles[i] == handle)
            return i;
    handles[handle_count] = handle;
    return handle_count++;
}

static void show_amdgpu(int fd, const char *render)
{
    uint32_t major, minor;
    amdgpu_device_handle handle;
    struct drm_amdgpu_memory_info memory;
    int error = amdgpu_device_initialize(fd, &major, &minor, &handle);
    if (error) {
        printf("amdgpu %s error %d\n", render, error);
        return;
    }
    const char *name = amdgpu_get_marketing_name(handle);
    printf("amdgpu %s %d %s\n", render, number_of(handle), name ? name : "-");
    if (amdgpu_query_info(handle, AMDGPU_INFO_MEMORY, sizeof memory, &memory) == 0)
        printf("memory %s %" PRIu64 " %" PRIu64 "\n", render, (uint64_t)memory.vram.total_heap_size,
               (uint64_t)memory.gtt.total_heap_size);
}

static void show_i915(int fd, const char *render)
{
    struct drm_i915_query_item item = {.query_id = DRM_I915_QUERY_MEMORY_REGIONS};
    struct drm_i915_query query = {.num_items = 1, .items_ptr = (uintptr_t)&item};
    if (drmIoctl(fd, DRM_IOCTL_I915_QUERY, &query) != 0 || item.length <= 0) {
        printf("region %s none %d\n", render, item.length);
        return;
    }
    struct drm_i915_query_memory_regions *regions = calloc(1, (size_t)item.length);
    if (!regions)
        exit(1);
    item.data_ptr = (uintptr_t)regions;
    if (drmIoctl(fd, DRM_IOCTL_I915_QUERY, &query) == 0)
        for (uint32_t i = 0; i < regions->num_regions; i++) {
            const struct drm_i915_memory_region_info *region = &regions->regions[i];
            printf("region %s %u %u %" PRIu64 " %" PRIu64 "\n", render, region->region.memory_class, region->region.memory_instance,
                   (uint64_t)region->probed_size, (uint64_t)(region->probed_size - region->unallocated_size));
        }
    free(regions);
}

/* DRM_IOCTL_XE_DEVICE_QUERY with DRM_XE_DEVICE_QUERY_MEM_REGIONS, which older headers lack (include/uapi/drm/xe_drm.h). */
static void show_xe(int fd, const char *render)
{
    uint64_t answer[1 + MAX_REGIONS * 11] = {0};
    struct {
        uint64_t extensions;
        uint32_t query, size;
        uint64_t data, reserved[2];
    } query = {.query = 1};
    unsigned long request = DRM_IOWR(DRM_COMMAND_BASE, query);
    if (drmIoctl(fd, request, &query) != 0 || query.size > sizeof answer)
        return;
    query.data = (uintptr_t)answer;
    if (drmIoctl(fd, request, &query) != 0)
        return;
    for (uint32_t i = 0; i < (uint32_t)answer[0]; i++) {
        const uint64_t *region = &answer[1 + i * 11];
        printf("region %s %u %u %" PRIu64 " %" PRIu64 "\n", render, (unsigned)(region[0] & 0xffff),
               (unsigned)(region[0] >> 16 & 0xffff), region[1], region[2]);
    }
}

static void show_node(const char *node)
{
    const char *render = strrchr(node, '/') + 1;
    int fd = open(node, O_RDWR | O_CLOEXEC);
    drmVersionPtr version = fd < 0 ? NULL : drmGetVersion(fd);
    if (!version) {
        printf("driver %s error %d\n", render, errno);
        return;
    }
    printf("driver %s %s\n", render, version->name);
    if (strcmp(version->name, "amdgpu") == 0)
        show_amdgpu(fd, render);
    else if (strcmp(version->name, "i915") == 0)
        show_i915(fd, render);
    else if (strcmp(version->name, "xe") == 0)
        show_xe(fd, render);
    drmFreeVersion(version);
    (void)close(fd);
}

int main(void)
{
    drmDevicePtr devices[MAX_DEVICES];
    int count = drmGetDevices2(0, devices, MAX_DEVICES);
    for (int i = 0; i < count; i++) {
        const drmPciBusInfo *at = devices[i]->bustype == DRM_BUS_PCI ? devices[i]->businfo.pci : NULL;
        printf("device %04x:%02x:%02x.%x %s %s\n", at ? at->domain : 0, at ? at->bus : 0, at ? at->dev : 0, at ? at->func : 0,
               devices[i]->nodes[DRM_NODE_PRIMARY], devices[i]->nodes[DRM_NODE_RENDER]);
        if (devices[i]->available_nodes & 1 << DRM_NODE_RENDER)
            show_node(devices[i]->nodes[DRM_NODE_RENDER]);
    }
    if (count > 0)
        drmFreeDevices(devices, count);
    return 0;
}
