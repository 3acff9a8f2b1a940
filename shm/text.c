#include "shm/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void text_format(char *out, size_t size, const char *format, ...)
{
    if (!out || size == 0)
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out, size, format, args);
    va_end(args);
}

/* Length of the well-formed UTF-8 character at `at`, 0 if it is broken. Overlong forms and surrogates are broken. */
static size_t character_length(const unsigned char *at, size_t left)
{
    if (at[0] < 0x80)
        return 1;
    size_t length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    if (at[0] < 0xC2 || at[0] > 0xF4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) || (at[0] == 0xF0 && at[1] < 0x90) ||
        (at[0] == 0xF4 && at[1] > 0x8F))
        return 0;
    return length;
}

/* Characters that a terminal or a page would act on rather than show: C0, DEL, C1, and those that turn the direction of text. */
static bool acts(const unsigned char *at, size_t length)
{
    if (length == 1)
        return at[0] < 0x20 || at[0] == 0x7F;
    if (length == 2)
        return at[0] == 0xC2 && at[1] < 0xA0;
    bool embeds = at[0] == 0xE2 && at[1] == 0x80 && at[2] >= 0xAA && at[2] <= 0xAE;   /* U+202A to U+202E */
    bool isolates = at[0] == 0xE2 && at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9; /* U+2066 to U+2069 */
    return length == 3 && (embeds || isolates);
}

void text_copy(char *out, size_t size, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t used = 0;
    memset(out, 0, size);
    for (size_t i = 0; i < length && at[i];) {
        size_t step = character_length(at + i, length - i);
        if (step == 0 || acts(at + i, step)) {
            i += step ? step : 1;
            continue;
        }
        if (used + step >= size)
            return;
        memcpy(out + used, at + i, step);
        used += step;
        i += step;
    }
}

bool text_valid(const char *field, size_t size)
{
    const unsigned char *at = (const unsigned char *)field;
    for (size_t i = 0; i < size;) {
        if (at[i] == 0)
            return true;
        size_t step = character_length(at + i, size - i);
        if (step == 0 || acts(at + i, step))
            return false;
        i += step;
    }
    return false;
}
