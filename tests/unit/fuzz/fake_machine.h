/* A machine whose every file holds bytes of a fuzzer's input: one display device, its sensors, two processes that hold it. */
#ifndef GPUTAP_TESTS_FAKE_MACHINE_H
#define GPUTAP_TESTS_FAKE_MACHINE_H

#include "broker/io.h"

enum { FAKE_FILES = 512 };

struct fake_machine {
    struct io io; /* hand this one out */
    const uint8_t *data;
    size_t size;
    uint32_t salt; /* another one, other contents */
    uint64_t now_ns;
    const char *driver;
    char paths[FAKE_FILES][256];
};

void fake_machine_init(struct fake_machine *machine, const char *driver, const uint8_t *data, size_t size);

#endif
