/* Which segment a handle reads: the first place whose broker lives, else the newest dead one. */
#include <string.h>

#include "client/handle.h"
#include "shm/text.h"

struct choice {
    int place; /* -1 = none */
    bool live;
    struct region_identity identity;
    uint64_t modified_ns;
    bool starting;  /* a lock is held where no segment is yet */
    int denied;     /* place that may not be looked into, -1 = none */
    int denied_why; /* REGION_E... */
};

static bool look_at(const struct handle_place *place, struct region_identity *identity, uint64_t *modified_ns, int *held,
                    int *error)
{
    int result = place_check(place->path, place->trust);
    if (result == REGION_OK) {
        *held = lock_held(place->path);
        result = region_lookup(place->path, PLACE_SEGMENT, identity, modified_ns);
    }
    *error = result;
    return result == REGION_OK;
}

static void choose(const gputap *tap, struct choice *choice)
{
    memset(choice, 0, sizeof *choice);
    choice->place = choice->denied = -1;
    for (int i = 0; i < tap->place_count; i++) {
        struct region_identity identity;
        uint64_t modified_ns = 0;
        int held = 0, error;
        if (!look_at(&tap->places[i], &identity, &modified_ns, &held, &error)) {
            choice->starting = choice->starting || (error == REGION_ENOENT && held == 1);
            if (choice->denied < 0 && (error == REGION_EPERM || error == REGION_EUNTRUSTED)) {
                choice->denied = i;
                choice->denied_why = error;
            }
            continue;
        }
        if (held != 1 && choice->place >= 0 && modified_ns <= choice->modified_ns)
            continue;
        choice->place = i;
        choice->identity = identity;
        choice->modified_ns = modified_ns;
        choice->live = held == 1;
        if (choice->live)
            return;
    }
}

void handle_describe_absence(const gputap *tap, char *out, size_t size)
{
    char tried[320] = "";
    for (int i = 0; i < tap->place_count; i++) {
        size_t used = strlen(tried);
        text_format(tried + used, sizeof tried - used, "%s%s", i ? ", " : "", tap->places[i].path);
    }
    text_format(out, size, "no gputap broker is running (looked in %s); start it with: gputapd%s%s", tried,
                strcmp(tap->instance, "default") == 0 ? "" : " --instance ",
                strcmp(tap->instance, "default") == 0 ? "" : tap->instance);
}

static int describe_denied(const gputap *tap, const struct choice *choice, char *message, size_t size)
{
    const char *path = tap->places[choice->denied].path;
    if (choice->denied_why == REGION_EUNTRUSTED)
        text_format(message, size, "%s: belongs to another user, so it is not trusted (set GPUTAP_DIR to read it all the same)",
                    path);
    else
        text_format(message, size, "%s: permission denied", path);
    return GPUTAP_EPERM;
}

static void publish(gputap *tap, struct mapping *mapping, uint64_t now)
{
    struct mapping *old = handle_current(tap);
    const struct layout_header *header = mapping->view.header;
    word_set(&tap->beat, word_get(&header->beat));
    word_set(&tap->beat_seen, now);
    word_set(&tap->changes, word_get(&header->changes));
    word_set(&tap->current, (uint64_t)(uintptr_t)mapping);
    word_add(&tap->generation, 1);
    if (old)
        mapping_retire(old);
    word32_or(&tap->pending, GPUTAP_STATUS_CHANGED | (old ? GPUTAP_STATUS_RESTARTED : 0u));
}

static bool same_file(const struct region_identity *a, const struct region_identity *b)
{
    return a->device == b->device && a->inode == b->inode;
}

int handle_attach(gputap *tap, uint64_t now, char *message, size_t message_size)
{
    struct mapping *current = handle_current(tap), *mapping;
    struct choice choice;
    choose(tap, &choice);
    if (choice.place < 0) {
        if (choice.denied >= 0)
            return describe_denied(tap, &choice, message, message_size);
        handle_describe_absence(tap, message, message_size);
        if (choice.starting)
            text_format(message, message_size, "the broker of instance %s is just starting", tap->instance);
        return GPUTAP_ENOBROKER;
    }
    if (current) {
        bool same_place = word_get(&current->place) == (uint64_t)choice.place;
        /* Nothing newer, or only another dead one elsewhere: stay. */
        if ((same_place && same_file(&choice.identity, &current->identity)) || (!same_place && !choice.live))
            return GPUTAP_OK;
    }
    int result = mapping_open(tap, choice.place, &mapping, message, message_size);
    if (result != GPUTAP_OK)
        return result;
    devices_adopt(tap, mapping);
    publish(tap, mapping, now);
    return GPUTAP_OK;
}
