#include "tests/unit/annotate/inner_broker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MUST(condition)                                                                                                            \
    do {                                                                                                                           \
        if (!(condition)) {                                                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, strerror(errno));                                   \
            exit(1);                                                                                                               \
        }                                                                                                                          \
    } while (0)

void inner_sleep_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static void *serve(void *context)
{
    struct inner_broker *broker = context;
    static struct pollfd entries[CONTROL_ENTRIES];
    while (!word32_get(&broker->stop)) {
        if (word32_get(&broker->paused)) {
            inner_sleep_ms(1);
            continue;
        }
        pthread_mutex_lock(&broker->mutex);
        uint64_t now_ns = clock_mono_ns();
        control_tend(&broker->control, now_ns);
        int count = control_poll_entries(&broker->control, entries, now_ns);
        if (poll(entries, (nfds_t)count, 1) > 0)
            control_handle(&broker->control, entries, count, clock_mono_ns());
        if (sessions_publish(&broker->fixture.sessions, clock_mono_ns()))
            segment_wake(&broker->fixture.publisher.writer);
        segment_beat(&broker->fixture.publisher.writer);
        pthread_mutex_unlock(&broker->mutex);
    }
    return NULL;
}

void inner_place(struct inner_broker *broker)
{
    memset(broker, 0, sizeof *broker);
    snprintf(broker->base, sizeof broker->base, "/tmp/gputap-unit-XXXXXX");
    MUST(mkdtemp(broker->base) != NULL);
    MUST(setenv("GPUTAP_DIR", broker->base, 1) == 0 && setenv("GPUTAP_INSTANCE", "t", 1) == 0);
    MUST(pthread_mutex_init(&broker->mutex, NULL) == 0);
}

static const char *folder_of(struct inner_broker *broker)
{
    static char folder[128];
    snprintf(folder, sizeof folder, "%s/t", broker->base);
    return folder;
}

void inner_start(struct inner_broker *broker)
{
    char message[256];
    int64_t holder;
    const char *folder = folder_of(broker);
    MUST(mkdir(folder, 0755) == 0 || errno == EEXIST);
    broker->lock = (struct lock)LOCK_NONE;
    MUST(lock_take(folder, 0644, -1, &broker->lock, &holder, message, sizeof message) == REGION_OK);
    sessions_start_in(&broker->fixture, folder, 2);
    control_init(&broker->control, &broker->fixture.sessions, 10000000);
    control_listen(&broker->control, folder, -1);
    MUST(broker->control.listener >= 0);
    word32_set(&broker->stop, 0);
    MUST(pthread_create(&broker->thread, NULL, serve, broker) == 0);
    broker->running = true;
}

/* What the kernel does for a killed process: descriptors and mappings go, files stay. */
static void die(struct control *control)
{
    for (int i = 0; i < CONTROL_MAX_CLIENTS; i++) {
        struct control_client *client = &control->clients[i];
        const int fds[] = {client->socket, client->bell, client->process};
        for (int j = 0; client->state != CLIENT_FREE && j < 3; j++)
            if (fds[j] >= 0)
                close(fds[j]);
        if (client->state != CLIENT_FREE && client->memory)
            sealed_unmap(client->memory, CLIENT_MEMORY_BYTES);
    }
    close(control->listener);
}

void inner_stop(struct inner_broker *broker, bool killed)
{
    if (!broker->running)
        return;
    word32_set(&broker->stop, 1);
    pthread_join(broker->thread, NULL);
    if (killed)
        die(&broker->control);
    else
        control_close(&broker->control);
    sessions_stop(&broker->fixture);
    lock_release(&broker->lock);
    broker->running = false;
}

void inner_pause(struct inner_broker *broker, bool paused)
{
    word32_set(&broker->paused, paused);
    inner_sleep_ms(5);
}

struct layout_event inner_event(struct inner_broker *broker, enum event_type type)
{
    struct layout_event event;
    for (int wait = 0; wait < 1000; wait++) {
        pthread_mutex_lock(&broker->mutex);
        bool any = sessions_event(&broker->fixture, &event);
        pthread_mutex_unlock(&broker->mutex);
        if (any && event.type == (uint32_t)type)
            return event;
        if (!any)
            inner_sleep_ms(1);
    }
    return (struct layout_event){0};
}

void inner_remove(struct inner_broker *broker)
{
    static const char *const names[] = {PLACE_SEGMENT, PLACE_LOCK, PLACE_OWNER, PLACE_CONTROL};
    char path[256];
    inner_stop(broker, false);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder_of(broker), names[i]);
        unlink(path);
    }
    rmdir(folder_of(broker));
    MUST(rmdir(broker->base) == 0);
    pthread_mutex_destroy(&broker->mutex);
}
