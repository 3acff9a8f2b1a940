/* What the readers of sessions, events and usage share. */
#ifndef GPUTAP_CLIENT_SESSIONS_H
#define GPUTAP_CLIENT_SESSIONS_H

#include "client/handle.h"
#include "shm/usage.h"

union session_words {
    struct layout_session entry;
    uint64_t words[sizeof(struct layout_session) / 8];
};

/* The handle's number of every slot of a mapping, -1 where it has none. */
struct slot_numbers {
    int16_t of[LAYOUT_MAX_DEVICES];
};

/* --- devices.c */
void devices_numbers(const gputap *tap, const struct mapping *mapping, struct slot_numbers *out);

/* A slot somebody wrote. */
static inline int slot_number(const struct slot_numbers *numbers, uint32_t slot)
{
    return slot < LAYOUT_MAX_DEVICES ? numbers->of[slot] : -1;
}

/* --- sessions.c */
/* A mask of slots as numbers of the handle. Returns how many, 0 for all devices, -1 where none of them has a number. */
int session_devices(const struct slot_numbers *numbers, uint64_t mask, int16_t out[LAYOUT_SPAN_DEVICES]);
/* Progress that somebody wrote: both 0 where one is no number. */
void session_progress(double value, double max, double *out_value, double *out_max);

/* --- usage.c */
void usage_public(const struct layout_usage *usage, int device, gputap_usage *out);
/* The broker's monotonic clock now, 0 where it cannot be told. Of a pass that is held afterwards. */
uint64_t pass_now(const struct pass *pass);

#endif
