#include "bridge/buffer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned char *buffer_data(const struct buffer *buffer) { return buffer->memory + BUFFER_HEADROOM; }

void buffer_clear(struct buffer *buffer)
{
    buffer->length = 0;
    buffer->failed = false;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->memory);
    *buffer = (struct buffer){0};
}

/* Room for `more` bytes, or false. */
static bool buffer_room(struct buffer *buffer, size_t more)
{
    if (buffer->failed || more > SIZE_MAX / 4 - buffer->length) {
        buffer->failed = true;
        return false;
    }
    size_t wanted = buffer->length + more;
    if (buffer->memory && wanted <= buffer->capacity)
        return true;
    size_t capacity = buffer->capacity ? buffer->capacity : 512;
    while (capacity < wanted)
        capacity *= 2;
    unsigned char *memory = realloc(buffer->memory, capacity + BUFFER_HEADROOM);
    if (!memory) {
        buffer->failed = true;
        return false;
    }
    buffer->memory = memory;
    buffer->capacity = capacity;
    return true;
}

void buffer_put(struct buffer *buffer, const void *bytes, size_t length)
{
    if (!buffer_room(buffer, length) || length == 0)
        return;
    memcpy(buffer_data(buffer) + buffer->length, bytes, length);
    buffer->length += length;
}

void buffer_text(struct buffer *buffer, const char *text) { buffer_put(buffer, text, strlen(text)); }

void buffer_u64(struct buffer *buffer, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    buffer_put(buffer, digits + at, sizeof digits - at);
}

void buffer_i64(struct buffer *buffer, int64_t value)
{
    if (value < 0)
        buffer_put(buffer, "-", 1);
    buffer_u64(buffer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void buffer_f64(struct buffer *buffer, double value, int decimals)
{
    static const uint64_t scales[] = {10, 100, 1000, 10000, 100000, 1000000};
    const int last = (int)(sizeof scales / sizeof scales[0]) - 1;
    if (!isfinite(value)) {
        buffer_text(buffer, "null");
        return;
    }
    int digits = decimals < 0 ? 0 : decimals > last ? last : decimals;
    double scaled = round(fabs(value) * (double)scales[digits]);
    if (scaled >= 9007199254740992.0) {
        buffer_format(buffer, "%.15g", value);
        return;
    }
    uint64_t fixed = (uint64_t)scaled, fraction = fixed % scales[digits];
    if (value < 0 && fixed != 0)
        buffer_put(buffer, "-", 1);
    buffer_u64(buffer, fixed / scales[digits]);
    if (fraction == 0)
        return;
    int places = digits + 1;
    for (; fraction % 10 == 0; fraction /= 10)
        places--;
    char text[8] = ".";
    for (int i = places; i > 0; i--, fraction /= 10)
        text[i] = (char)('0' + fraction % 10);
    buffer_put(buffer, text, (size_t)places + 1);
}

void buffer_format(struct buffer *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !buffer_room(buffer, (size_t)length + 1))
        return;
    va_start(args, format);
    vsnprintf((char *)buffer_data(buffer) + buffer->length, (size_t)length + 1, format, args);
    va_end(args);
    buffer->length += (size_t)length;
}

static int take_json(const char *bytes, size_t length, void *context)
{
    struct buffer *buffer = context;
    buffer_put(buffer, bytes, length);
    return buffer->failed ? -1 : 0;
}

void buffer_json(struct buffer *buffer, json_t *document)
{
    if (!document || json_dump_callback(document, take_json, buffer, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) != 0)
        buffer->failed = true;
    json_decref(document);
}
