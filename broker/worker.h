/* The worker's side: `gputapd --worker PROVIDER`, one source of numbers in a process that may hang or crash. */
#ifndef GPUTAP_BROKER_WORKER_H
#define GPUTAP_BROKER_WORKER_H

#include "broker/options.h"

/* Serves ticks on descriptor 3 until the broker is gone. Returns the exit code. */
int worker_run(const struct options *options);

#endif
