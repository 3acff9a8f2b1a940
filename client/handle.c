#include <stdlib.h>
#include <string.h>

#include "client/handle.h"
#include "shm/text.h"

/* The environment is read here and never again: another thread of the program may be changing it later. */
static void find_places(gputap *tap)
{
    struct handle_place *place = tap->places;
    for (int i = 0; tap->place_count < HANDLE_PLACES; i++) {
        if (!place_candidate(tap->instance, i, place->path, sizeof place->path, &place->trust))
            return;
        bool known = false;
        for (int j = 0; j < tap->place_count; j++)
            known = known || strcmp(tap->places[j].path, place->path) == 0;
        if (!known)
            place = &tap->places[++tap->place_count];
    }
}

int gputap_open(gputap **out, const char *instance, unsigned flags)
{
    if (!out)
        return client_fail(NULL, GPUTAP_EINVAL, "gputap_open: no place for the handle");
    *out = NULL;
    if (flags & ~(unsigned)GPUTAP_OPEN_DETACHED)
        return client_fail(NULL, GPUTAP_EINVAL, "gputap_open: unknown flags 0x%x", flags);
    if (!instance)
        instance = place_default_instance();
    if (!place_valid_instance(instance))
        return client_fail(NULL, GPUTAP_EINVAL, "bad instance name: 1 to 64 of A-Z a-z 0-9 . _ -, not starting with a dot");
    gputap *tap = calloc(1, sizeof *tap);
    if (!tap)
        return client_fail(NULL, GPUTAP_ENOMEM, "out of memory");
    text_format(tap->instance, sizeof tap->instance, "%s", instance);
    tap->time_namespace = clock_namespace();
    clock_boot_id(tap->boot_id);
    find_places(tap);
    if (tap->place_count == 0) {
        gputap_close(tap);
        return client_fail(NULL, GPUTAP_EINVAL, "GPUTAP_DIR must be an absolute path of at most %d bytes", PLACE_PATH_MAX - 80);
    }

    char message[480] = "";
    uint64_t now = clock_mono_ns();
    int result = handle_attach(tap, now, message, sizeof message);
    if (result != GPUTAP_OK && !(flags & GPUTAP_OPEN_DETACHED)) {
        gputap_close(tap);
        return client_fail(NULL, result, "%s", message);
    }
    word32_set(&tap->problem, (uint32_t)-result);
    word32_set(&tap->pending, 0); /* there was no call before to tell from */
    word_set(&tap->next_check, now + 50000000u);
    *out = tap;
    return GPUTAP_OK;
}

void gputap_close(gputap *tap)
{
    if (!tap)
        return;
    annotator_destroy(tap);
    for (struct mapping *mapping = tap->mappings, *next; mapping; mapping = next) {
        next = mapping->next;
        mapping_destroy(mapping);
    }
    for (int i = 0; i < HANDLE_MAX_NUMBERS / HANDLE_IDS_A_CHUNK; i++)
        free((void *)(uintptr_t)word_get(&tap->id_chunks[i]));
    free(tap);
}

int gputap_directory(gputap *tap, char *out, size_t size)
{
    if (!tap || !out)
        return GPUTAP_EINVAL;
    struct pass pass;
    uint64_t place;
    do {
        pass_begin(tap, &pass);
        place = pass.mapping ? word_get(&pass.mapping->place) : 0;
    } while (!pass_held(tap, &pass));
    const char *path = tap->places[place].path;
    if (size <= strlen(path))
        return client_fail(tap, GPUTAP_ESIZE, "%zu bytes are needed", strlen(path) + 1);
    text_format(out, size, "%s", path);
    return GPUTAP_OK;
}
