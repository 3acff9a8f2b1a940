/* Reading any ring of the segment record by record, with every lost one counted. A cursor's `next` is the place in its epoch (0 =
 * the first record that the broker published), `attach` names the epoch. got + lost == next - where it began, always. */
#ifndef GPUTAP_CLIENT_CURSOR_H
#define GPUTAP_CLIENT_CURSOR_H

#include "client/handle.h"

/* Finds the ring that a cursor reads: 1, 0 where this segment has none, or a negative code. */
typedef int (*cursor_source)(gputap *tap, const struct pass *pass, int device, struct ring *out);

/* Where a record was found. */
struct cursor_found {
    struct pass pass; /* held when the record was taken; ask again after reading more of the mapping */
    struct ring ring;
    bool same_clock;
};

int cursor_start(gputap *tap, gputap_cursor *cursor, cursor_source source, int start);
/* The record at the cursor, which stays there until cursor_advance: 1, 0 if there is none yet, or a negative code. */
int cursor_find(gputap *tap, gputap_cursor *cursor, cursor_source source, uint64_t *out, struct cursor_found *found);

static inline void cursor_advance(gputap_cursor *cursor)
{
    cursor->got++;
    cursor->next++;
}

#endif
