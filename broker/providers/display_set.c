#include "broker/providers/display_set.h"

#include <string.h>

static uint32_t next_generation(struct display_set *set, const char *id)
{
    for (int i = 0; i < set->seen_count; i++)
        if (strcmp(set->seen[i].id, id) == 0)
            return ++set->seen[i].generation;
    if (set->seen_count < PROVIDER_MAX_DEVICES) {
        memcpy(set->seen[set->seen_count].id, id, sizeof set->seen[0].id);
        set->seen[set->seen_count++].generation = 1;
    }
    return 1;
}

/* The old entry of that display if it is still the same device under the same driver, and was not lost in between. */
static struct display_entry *surviving(struct display_entry *old, int count, const struct pci_display *display)
{
    for (int i = 0; i < count; i++)
        if (old[i].state && !old[i].lost && strcmp(old[i].display.id, display->id) == 0 &&
            strcmp(old[i].display.driver, display->driver) == 0 && old[i].display.device == display->device)
            return &old[i];
    return NULL;
}

static bool any_lost(const struct display_set *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->entries[i].lost)
            return true;
    return false;
}

/* Fills set->entries anew from `found`, taking over from `old` what stays. */
static void rebuild(struct display_set *set, struct provider_context *context, const struct display_hooks *hooks,
                    struct display_entry *old, int old_count, const struct pci_display *found, int found_count)
{
    set->count = 0;
    for (int i = 0; i < found_count; i++) {
        struct display_entry *entry = &set->entries[set->count], *before = surviving(old, old_count, &found[i]);
        if (!provider_wants(context, found[i].id))
            continue;
        *entry = (struct display_entry){.display = found[i]};
        entry->state = before ? before->state : hooks->open(context, &found[i]);
        if (!entry->state)
            continue;
        entry->generation = before ? before->generation : next_generation(set, found[i].id);
        if (before)
            before->state = NULL;
        set->count++;
    }
    for (int i = 0; i < old_count; i++)
        if (old[i].state)
            hooks->close(context, old[i].state);
}

bool display_set_refresh(struct display_set *set, struct provider_context *context, const struct display_hooks *hooks)
{
    static struct display_entry old[PROVIDER_MAX_DEVICES];
    static struct pci_display found[PROVIDER_MAX_DEVICES];
    struct pci_display *known = found; /* only their folders are looked at */
    for (int i = 0; i < set->count; i++)
        known[i] = set->entries[i].display;
    uint64_t fingerprint;
    if (pci_fingerprint(context->io, known, set->count, &fingerprint) < 0)
        return false; /* what is known stays known */
    if (set->announced && fingerprint == set->fingerprint && !any_lost(set))
        return false;
    int found_count = pci_displays(context->io, hooks->driver, found, PROVIDER_MAX_DEVICES, &context->beyond);
    if (found_count < 0)
        return false;
    int old_count = set->count;
    memcpy(old, set->entries, sizeof old);
    rebuild(set, context, hooks, old, old_count, found, found_count);
    for (int i = 0; i < set->count; i++)
        found[i] = set->entries[i].display;
    /* One that cannot be taken now is taken at the next look, which then looks again. */
    set->announced = pci_fingerprint(context->io, found, set->count, &set->fingerprint) == 0;
    return true;
}

void display_set_close(struct display_set *set, struct provider_context *context, const struct display_hooks *hooks)
{
    for (int i = 0; i < set->count; i++)
        hooks->close(context, set->entries[i].state);
    set->count = 0;
}
