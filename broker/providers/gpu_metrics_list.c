/* Version 1.9: after the header a count, and then so many attributes: an encoding (unit, type, id and number of instances), and
 * the instances themselves, packed. */
#include <errno.h>
#include <string.h>

#include "broker/providers/gpu_metrics.h"

enum { LIST_HEADER = 8, LIST_MOST = 1024, UNIT_WHOLE_SPEED = 6 /* AMDGPU_METRICS_UNIT_SPEED_1: GT/s, not tenths */ };

static uint64_t encoding_at(const unsigned char *at, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void take_attribute(uint64_t encoding, const unsigned char *at, struct gpu_metrics *out)
{
    unsigned id = (unsigned)(encoding >> 10 & 0x3ff), unit = (unsigned)(encoding >> 24 & 0xff),
             count = (unsigned)(encoding & 0x3ff);
    const struct gpu_metrics_row *known = gpu_metrics_attribute(id);
    if (!known || count > 255)
        return;
    struct gpu_metrics_row row = *known;
    row.type = (uint8_t)(encoding >> 20 & 0xf);
    row.count = (uint8_t)count;
    if (row.field == GM_LINK_SPEED && unit == UNIT_WHOLE_SPEED)
        row.worth = 1;
    gpu_metrics_take(&row, at, out);
}

/* Walks the list with encodings of `width` bytes; true if it ends where the table does. Takes the values only if told to. */
static bool walk(const unsigned char *bytes, size_t size, size_t width, bool take, struct gpu_metrics *out)
{
    uint64_t count = encoding_at(bytes + 4, 4);
    size_t at = LIST_HEADER;
    if (count > LIST_MOST)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (size - at < width)
            return false;
        uint64_t encoding = encoding_at(bytes + at, width);
        size_t instance = gpu_metrics_width((enum gpu_metrics_type)(encoding >> 20 & 0xf)), length = instance * (encoding & 0x3ff);
        at += width;
        if (instance == 0 || length > size - at)
            return false;
        if (take)
            take_attribute(encoding, bytes + at, out);
        at += length;
    }
    return at == size;
}

/* An early revision had encodings of 32 bits: the width is the one with which the walk ends at the table's end. */
int gpu_metrics_parse_list(const unsigned char *bytes, size_t size, struct gpu_metrics *out)
{
    if (size < LIST_HEADER)
        return -EPROTO;
    for (size_t width = 8; width >= 4; width -= 4)
        if (walk(bytes, size, width, false, out)) {
            (void)walk(bytes, size, width, true, out);
            return 0;
        }
    return -EPROTO;
}
