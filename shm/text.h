/* Bounded text. */
#ifndef GPUTAP_SHM_TEXT_H
#define GPUTAP_SHM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* printf into a message buffer; NULL or size 0 is allowed. */
void text_format(char *out, size_t size, const char *format, ...);
/* Copies UTF-8 from anywhere into a fixed field: NUL-padded, cut at a whole character, control characters and broken sequences
 * dropped. `length` bounds what is read of `text`, which need not be terminated. */
void text_copy(char *out, size_t size, const char *text, size_t length);
/* A field that somebody else wrote: terminated and valid UTF-8? */
bool text_valid(const char *field, size_t size);

#endif
