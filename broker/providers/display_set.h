/* The displays that a provider looks after, from one discovery to the next. */
#ifndef GPUTAP_BROKER_PROVIDERS_DISPLAY_SET_H
#define GPUTAP_BROKER_PROVIDERS_DISPLAY_SET_H

#include "broker/providers/pci.h"

struct display_entry {
    struct pci_display display;
    uint32_t generation; /* grows when it was away and is back */
    bool lost;           /* set by the provider: a read found it gone */
    void *state;         /* the provider's own */
};

struct display_set {
    struct display_entry entries[PROVIDER_MAX_DEVICES];
    int count;
    bool announced;
    uint64_t fingerprint;
    struct {
        char id[48];
        uint32_t generation;
    } seen[PROVIDER_MAX_DEVICES]; /* also those that are away */
    int seen_count;
};

struct display_hooks {
    const char *driver;                                                                 /* NULL = any */
    void *(*open)(struct provider_context *context, const struct pci_display *display); /* state of a new entry, or NULL */
    void (*close)(struct provider_context *context, void *state);
};

/* Looks again. True if entries came, went or changed hands: states of those that stayed are kept, the others closed. */
bool display_set_refresh(struct display_set *set, struct provider_context *context, const struct display_hooks *hooks);
void display_set_close(struct display_set *set, struct provider_context *context, const struct display_hooks *hooks);

#endif
