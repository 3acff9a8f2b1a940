/* A broker in a few calls, for tests of the library: a private folder, its lock, a segment, samples. */
#ifndef GPUTAP_TESTS_CLIENT_FIXTURE_H
#define GPUTAP_TESTS_CLIENT_FIXTURE_H

#include "gputap.h"
#include "shm/segment.h"

struct fixture {
    char base[64];
    char folder[160]; /* of instance "t" */
    struct lock lock;
    struct segment_writer writer;
    bool open;              /* the writer is */
    struct region replaced; /* by fixture_replace, where regions are no files */
    uint64_t tick;
};

/* Makes the folders and points GPUTAP_DIR and GPUTAP_INSTANCE to them. */
void fixture_start(struct fixture *f);
void fixture_end(struct fixture *f);

void fixture_lock(struct fixture *f);
void fixture_unlock(struct fixture *f);
/* A new segment in the folder, as at the start of a broker: `devices` entries with ids "dev:<name>:<i>" for each character. */
void fixture_segment(struct fixture *f, uint32_t slots, const char *names);
/* As after kill -9: the mapping is dropped without a mark. */
void fixture_abandon(struct fixture *f);
/* Writes a device's table entry. */
void fixture_device(struct fixture *f, uint32_t slot, const struct layout_device *entry);
struct layout_device fixture_entry(char name);
void fixture_publish(struct fixture *f, uint32_t slot, const struct layout_snapshot *sample);
void fixture_publish_host(struct fixture *f, const struct layout_snapshot *sample);
void fixture_publish_coarse(struct fixture *f, uint32_t slot, const struct layout_coarse *record);
/* A sample now, with gfx_busy and vram_used known. */
struct layout_snapshot fixture_sample(double busy, uint64_t used);
void fixture_announce(struct fixture *f);
/* A session in a slot of the mirror, with what every session has. */
struct layout_session fixture_session_entry(const char *label);
void fixture_session(struct fixture *f, uint32_t slot, const struct layout_session *session);
/* A row of a table of processes, all of it known, and a table of a device slot with such rows, as of now. */
struct layout_process fixture_process(uint32_t pid, uint32_t uid, uint64_t vram, const char *comm);
struct layout_process_table fixture_process_table(const struct layout_process *rows, uint32_t count);
void fixture_processes(struct fixture *f, uint32_t slot, const struct layout_process_table *table);
/* An event; returns its ticket. */
uint64_t fixture_event(struct fixture *f, const struct layout_event *event);
/* Overwrites bytes of the segment file. */
void fixture_poke(struct fixture *f, size_t offset, const void *bytes, size_t count);
/* Replaces the segment file by other bytes. */
void fixture_replace(struct fixture *f, const void *bytes, size_t count);
void fixture_sleep_ms(int ms);
/* Opens instance t; the test fails where it does not open. */
gputap *fixture_open(unsigned flags);

#endif
