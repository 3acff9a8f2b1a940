/* A broker's sessions over a private segment, and a client's memory, in one process. */
#ifndef GPUTAP_TESTS_SESSIONS_FIXTURE_H
#define GPUTAP_TESTS_SESSIONS_FIXTURE_H

#include "broker/sessions.h"

struct sessions_fixture {
    char folder[128];
    struct options options;
    struct publisher publisher;
    struct devices devices;
    struct sessions sessions;
    uint64_t next_event; /* of the segment's ring */
};

/* A segment in a private folder, with `devices` devices. */
void sessions_start(struct sessions_fixture *f, uint32_t devices);
void sessions_end(struct sessions_fixture *f);
/* The same in a folder that somebody else makes and removes. */
void sessions_start_in(struct sessions_fixture *f, const char *folder, uint32_t devices);
void sessions_stop(struct sessions_fixture *f);
/* One sample of every device, now at `mono_ns`. */
void sessions_sample(struct sessions_fixture *f, uint64_t mono_ns, double watts, uint64_t vram);
/* The next event in the segment; false if there is none. */
bool sessions_event(struct sessions_fixture *f, struct layout_event *out);
void sessions_mirror(struct sessions_fixture *f, int slot, struct layout_session *out);

/* A client: memory as it would get it, and what the library writes there. */
struct fake_client {
    uint64_t memory[CLIENT_MEMORY_BYTES / 8];
    struct client_memory view;
    int slot;
};
void fake_attach(struct sessions_fixture *f, struct fake_client *client, const char *label);
void fake_show(struct fake_client *client, int index, const struct layout_span *span);
void fake_say(struct fake_client *client, enum event_type type, const struct layout_span *span, uint64_t mono_ns);
struct layout_span fake_span(uint64_t id, const char *name, uint64_t start_ns);

#endif
