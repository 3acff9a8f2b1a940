#include "intel_node.h"

#include <errno.h>
#include <string.h>

enum { REGION_BYTES = 88 };

static uint32_t get32(const void *from, size_t at)
{
    uint32_t value;
    memcpy(&value, (const char *)from + at, sizeof value);
    return value;
}

static void *pointer(const void *from, size_t at)
{
    uint64_t value;
    memcpy(&value, (const char *)from + at, sizeof value);
    return (void *)(uintptr_t)value; /* NOLINT(performance-no-int-to-ptr): it is how the kernel is told */
}

static void put32(void *to, size_t at, uint32_t value) { memcpy((char *)to + at, &value, sizeof value); }

static void put64(void *to, size_t at, uint64_t value) { memcpy((char *)to + at, &value, sizeof value); }

/* class and instance, reserved or page size, then four numbers, in both drivers. */
static void put_region(void *to, const struct intel_node_region *region)
{
    memset(to, 0, REGION_BYTES);
    put32(to, 0, region->memory_class);
    put64(to, 8, region->total);
    put64(to, 16, region->used);
    put64(to, 24, region->visible_total);
    put64(to, 32, region->visible_used);
}

/* struct drm_xe_device_query: query at 8, size at 12, data at 16. */
static int answer_xe(const struct intel_node *node, void *argument)
{
    uint32_t size = node->xe_size ? node->xe_size : 8 + REGION_BYTES * node->count;
    if (get32(argument, 8) != 1)
        return -EINVAL;
    if (get32(argument, 12) == 0) {
        put32(argument, 12, size);
        return 0;
    }
    if (get32(argument, 12) != size)
        return -EINVAL;
    char *data = pointer(argument, 16);
    put32(data, 0, node->told_count ? node->told_count : node->count);
    for (uint32_t i = 0; i < node->count && 8 + REGION_BYTES * (i + 1) <= size; i++)
        put_region(data + 8 + (size_t)REGION_BYTES * i, &node->regions[i]);
    return 0;
}

/* struct drm_i915_query: count at 0, items at 8. An item: id at 0, length at 8, data at 16. */
static int answer_i915(const struct intel_node *node, void *argument)
{
    char *item = pointer(argument, 8);
    uint32_t size = 16 + REGION_BYTES * node->count;
    if (get32(argument, 0) != 1 || get32(item, 0) != 4)
        return -EINVAL;
    char *data = pointer(item, 16);
    if (get32(item, 8) < size || get32(data, 0) != 0) {
        put32(item, 8, (uint32_t)-EINVAL);
        return 0;
    }
    put32(data, 0, node->told_count ? node->told_count : node->count);
    for (uint32_t i = 0; i < node->count; i++)
        put_region(data + 16 + (size_t)REGION_BYTES * i, &node->regions[i]);
    put32(item, 8, size);
    return 0;
}

static int answer(void *context, unsigned long request, void *argument)
{
    struct intel_node *node = context;
    if (request == 0xc0406400UL) { /* DRM_IOCTL_VERSION */
        put32(argument, 0, 1);
        put32(argument, 4, 6);
        return 0;
    }
    if (node->interrupted > 0 && node->interrupted--)
        return -EINTR;
    if (node->error)
        return -node->error;
    if (request == 0xc0286440UL)
        return answer_xe(node, argument);
    return request == 0xc0106479UL ? answer_i915(node, argument) : -ENOTTY;
}

void intel_node_attach(struct intel_node *node, struct fault_io *fault)
{
    fault->ioctl = (struct fault_ioctl){.match = "/dev/dri/renderD", .answer = answer, .context = node};
}
