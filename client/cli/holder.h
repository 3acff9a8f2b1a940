/* A session for a shell script. A holder process has the session for as long as the shell lives; `gputap annotate` tells it what to
 * do, a packet a request, over a socket in a folder that only its user can enter. Both ends are one program. */
#ifndef GPUTAP_CLI_HOLDER_H
#define GPUTAP_CLI_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "gputap.h"

#define HOLDER_VARIABLE "GPUTAP_ANNOTATE"

enum { HOLDER_MAGIC = 0x48305447, HOLDER_DEVICES = 16, HOLDER_PATH_MAX = 100 };
enum holder_request_type { HOLDER_BEGIN = 1, HOLDER_STEP = 2, HOLDER_END = 3, HOLDER_CLOSE = 4 };

struct holder_request {
    uint32_t magic, type;
    uint64_t span; /* of STEP and END; of BEGIN the parent */
    double value, max;
    char job[48], node[32], name[64];
    int32_t device_count; /* 0 = all */
    int32_t reserved;
    char devices[HOLDER_DEVICES][48]; /* ids: each handle has numbers of its own */
};

struct holder_reply {
    uint32_t magic;
    int32_t result; /* of the call, GPUTAP_E... */
    uint64_t span;
    int32_t slot; /* of the session; -1 = no broker has it */
    uint32_t generation;
    int32_t usage_count;
    int32_t reserved;
    char message[256];
    gputap_usage usage[GPUTAP_SPAN_DEVICES];
    char ids[GPUTAP_SPAN_DEVICES][48]; /* of the usages' devices */
};

struct holder_place {
    char folder[HOLDER_PATH_MAX], path[HOLDER_PATH_MAX + 8];
    int socket;
    int shell; /* descriptor that tells of the shell's end, -1 = there is none of that kind */
    long pid;  /* of the shell */
};

/* --- holder.c: what a request does */
void holder_answer(gputap *tap, const struct holder_request *request, struct holder_reply *reply);

/* --- holder_posix.c */
/* Makes folder and socket, and finds the shell: `pid`, or with 0 our parent. False after saying why not. */
bool holder_prepare(struct holder_place *place, long pid);
/* In this process: false. In a new one that is nobody's child and holds nothing but the place: true. False with *failed set where
 * there can be none. */
bool holder_detach(struct holder_place *place, bool *failed);
/* Answers until the shell has ended or HOLDER_CLOSE came, then removes the place. */
void holder_serve(struct holder_place *place, gputap *tap);
void holder_remove(struct holder_place *place);
/* One request to the holder at that socket. False after saying why not. */
bool holder_ask(const char *path, const struct holder_request *request, struct holder_reply *reply);

#endif
