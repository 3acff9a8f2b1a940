/* A text that grows, with room in front for a WebSocket header. The first failed allocation sticks until buffer_clear. */
#ifndef GPUTAP_BRIDGE_BUFFER_H
#define GPUTAP_BRIDGE_BUFFER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFER_HEADROOM 32

struct buffer {
    unsigned char *memory;
    size_t length, capacity; /* of the text, without the headroom */
    bool failed;
};

unsigned char *buffer_data(const struct buffer *buffer);
void buffer_clear(struct buffer *buffer);
void buffer_free(struct buffer *buffer);

void buffer_put(struct buffer *buffer, const void *bytes, size_t length);
void buffer_text(struct buffer *buffer, const char *text);
void buffer_u64(struct buffer *buffer, uint64_t value);
void buffer_i64(struct buffer *buffer, int64_t value);
/* Rounded to one digit more than `decimals`, as document_number does; null where it is not finite. */
void buffer_f64(struct buffer *buffer, double value, int decimals);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void buffer_format(struct buffer *buffer, const char *format, ...);
/* Takes the reference; NULL counts as a failure. */
void buffer_json(struct buffer *buffer, json_t *document);

#endif
