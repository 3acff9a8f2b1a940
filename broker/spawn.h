#ifndef GPUTAP_BROKER_SPAWN_H
#define GPUTAP_BROKER_SPAWN_H

#include <sys/types.h>

#include "broker/options.h"
#include "broker/worker_protocol.h"

/* Starts this program again as a worker of `provider`, with the far end of a new socket pair as its descriptor 3. Returns the
 * near end, non-blocking, the pid, and the worker's page of progress, mapped read-only; or -errno. `exclude` are ids that it must
 * leave alone, `only` the one that it may touch. */
int spawn_worker(const struct options *options, const char *provider, const char *const *exclude, int exclude_count,
                 const char *only, pid_t *pid, const struct worker_progress **progress);
void spawn_release(const struct worker_progress *progress);
/* Is the process waiting for a processor, rather than for a device? False also if it cannot be told. */
bool spawn_runnable(pid_t pid);

#endif
