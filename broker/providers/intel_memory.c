#include "broker/providers/intel_memory.h"

#include <drm.h>
#include <errno.h>
#include <fcntl.h>
#include <i915_drm.h>
#include <stdio.h>
#include <string.h>

#include "shm/text.h"

enum { REGION_MOST = 16, ASK_MOST = 4 };

/* libdrm of Debian 12 has no xe_drm.h. These are the sizes and places of include/uapi/drm/xe_drm.h of Linux 6.8 and later. */
struct xe_query {
    uint64_t extensions;
    uint32_t query, size;
    uint64_t data;
    uint64_t reserved[2];
};
struct xe_region {
    uint16_t memory_class, instance;
    uint32_t page_size;
    uint64_t total, used; /* used is 0 without CAP_PERFMON */
    uint64_t visible_total, visible_used;
    uint64_t reserved[6];
};
struct xe_regions {
    uint32_t count, padding;
    struct xe_region regions[REGION_MOST];
};
_Static_assert(sizeof(struct xe_query) == 40 && sizeof(struct xe_region) == 88, "layout of xe_drm.h");
enum { XE_QUERY_MEMORY_REGIONS = 1, XE_CLASS_SYSTEM = 0, XE_CLASS_VRAM = 1 };
#define XE_DEVICE_QUERY DRM_IOWR(DRM_COMMAND_BASE, struct xe_query)

/* Interrupted requests are to be made again (libdrm's drmIoctl), but not for ever. */
static int ask(struct io *io, int fd, unsigned long request, void *argument)
{
    int result = -EAGAIN;
    for (int i = 0; i < ASK_MOST && (result == -EINTR || result == -EAGAIN); i++)
        result = io->operations->ioctl(io, fd, request, argument);
    return result < 0 ? result : 0;
}

static void add(uint64_t *sum, uint64_t value) { *sum = *sum + value < *sum ? UINT64_MAX : *sum + value; }

static int query_xe(struct io *io, int fd, struct intel_memory *out)
{
    struct xe_regions answer;
    struct xe_query query = {.query = XE_QUERY_MEMORY_REGIONS}; /* size 0 asks for the size, which must then be met exactly */
    int error = ask(io, fd, XE_DEVICE_QUERY, &query);
    if (error)
        return error;
    if (query.size < offsetof(struct xe_regions, regions) || query.size > sizeof answer)
        return -EPROTO;
    memset(&answer, 0, sizeof answer);
    query.data = (uint64_t)(uintptr_t)&answer;
    error = ask(io, fd, XE_DEVICE_QUERY, &query);
    if (error)
        return error;
    if (answer.count > (query.size - offsetof(struct xe_regions, regions)) / sizeof answer.regions[0])
        return -EPROTO;
    for (uint32_t i = 0; i < answer.count; i++) {
        const struct xe_region *region = &answer.regions[i];
        if (region->memory_class == XE_CLASS_SYSTEM) {
            add(&out->system_total, region->total);
            add(&out->system_used, region->used);
        } else if (region->memory_class == XE_CLASS_VRAM) {
            out->has_vram = true;
            add(&out->vram_total, region->total);
            add(&out->vram_used, region->used);
            add(&out->visible_total, region->visible_total);
            add(&out->visible_used, region->visible_used);
        }
    }
    /* The driver itself holds some of each: nothing at all in use is what is told to those who may not know. */
    out->used_known = out->vram_used > 0;
    out->system_used_known = out->system_used > 0 || out->used_known;
    return 0;
}

/* Less left than there is: what is in use. More left than there is makes no sense, and is seen as such later. */
static uint64_t in_use(uint64_t total, uint64_t left) { return left <= total ? total - left : UINT64_MAX; }

static int query_i915(struct io *io, int fd, struct intel_memory *out)
{
    union {
        struct drm_i915_query_memory_regions head;
        uint64_t words[(sizeof(struct drm_i915_query_memory_regions) + REGION_MOST * sizeof(struct drm_i915_memory_region_info)) /
                       sizeof(uint64_t)];
    } answer;
    memset(&answer, 0, sizeof answer);
    struct drm_i915_query_item item = {
        .query_id = DRM_I915_QUERY_MEMORY_REGIONS, .length = (int32_t)sizeof answer, .data_ptr = (uint64_t)(uintptr_t)&answer};
    struct drm_i915_query query = {.num_items = 1, .items_ptr = (uint64_t)(uintptr_t)&item};
    int error = ask(io, fd, DRM_IOCTL_I915_QUERY, &query);
    if (error || item.length < 0)
        return error ? error : item.length;
    if (answer.head.num_regions > REGION_MOST)
        return -EPROTO;
    for (uint32_t i = 0; i < answer.head.num_regions; i++) {
        struct drm_i915_memory_region_info region;
        memcpy(&region, (const char *)&answer + offsetof(struct drm_i915_query_memory_regions, regions) + i * sizeof region,
               sizeof region);
        if (region.region.memory_class == I915_MEMORY_CLASS_SYSTEM)
            add(&out->system_total, region.probed_size); /* what is left of it is always all of it */
        if (region.region.memory_class != I915_MEMORY_CLASS_DEVICE)
            continue;
        /* Older kernels know of no memory that the CPU cannot see, since they load on no card that has such (i915_drm.h). */
        bool tells_visible = region.probed_cpu_visible_size != 0;
        out->has_vram = true;
        add(&out->vram_total, region.probed_size);
        add(&out->vram_used, in_use(region.probed_size, region.unallocated_size));
        add(&out->visible_total, tells_visible ? region.probed_cpu_visible_size : region.probed_size);
        add(&out->visible_used, tells_visible ? in_use(region.probed_cpu_visible_size, region.unallocated_cpu_visible_size)
                                              : in_use(region.probed_size, region.unallocated_size));
    }
    out->used_known = out->vram_used > 0; /* all of it left: without CAP_PERFMON, or on kernels that do not count */
    return 0;
}

static void read_version(struct io *io, int fd, struct intel_memory *out)
{
    struct drm_version version;
    memset(&version, 0, sizeof version);
    if (ask(io, fd, DRM_IOCTL_VERSION, &version) == 0)
        text_format(out->driver_version, sizeof out->driver_version, "drm %d.%d", version.version_major, version.version_minor);
}

/* An open node does not keep the card awake by itself: opening takes no runtime reference, and each request of xe takes one for
 * its own time (xe_drm_ioctl). It would show this process as one that uses the GPU, though, so it is closed again. */
int intel_memory_query(struct io *io, const struct pci_display *display, struct intel_memory *out)
{
    char path[64];
    memset(out, 0, offsetof(struct intel_memory, driver_version)); /* which stays as it is */
    if (display->render_minor < 0)
        return -ENOENT;
    (void)snprintf(path, sizeof path, "/dev/dri/renderD%d", display->render_minor);
    int fd = io->operations->open(io, path, O_RDWR);
    if (fd < 0)
        return fd;
    int error = strcmp(display->driver, "xe") == 0 ? query_xe(io, fd, out) : query_i915(io, fd, out);
    if (!error && !out->driver_version[0])
        read_version(io, fd, out);
    io->operations->close(io, fd);
    return error;
}
