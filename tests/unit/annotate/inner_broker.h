/* A broker's control socket and sessions in a thread of the test, with a segment in a private folder that the library finds. */
#ifndef GPUTAP_TESTS_INNER_BROKER_H
#define GPUTAP_TESTS_INNER_BROKER_H

#include <pthread.h>

#include "broker/control.h"
#include "tests/unit/merge/sessions_fixture.h"

struct inner_broker {
    char base[64];
    struct sessions_fixture fixture;
    struct control control;
    struct lock lock;
    pthread_t thread;
    pthread_mutex_t mutex; /* held by the thread while it works: for looking at sessions */
    shm_word32 stop, paused;
    bool running;
};

/* A place for brokers to come: GPUTAP_DIR and GPUTAP_INSTANCE point to it. */
void inner_place(struct inner_broker *broker);
void inner_remove(struct inner_broker *broker);
/* Starts one with two devices, after `stop` again another. */
void inner_start(struct inner_broker *broker);
/* `killed`: as by SIGKILL, nothing is said or removed. */
void inner_stop(struct inner_broker *broker, bool killed);
void inner_pause(struct inner_broker *broker, bool paused);
/* The next event of a type within a second; type 0 in the answer if none came. */
struct layout_event inner_event(struct inner_broker *broker, enum event_type type);
void inner_sleep_ms(int ms);

#endif
