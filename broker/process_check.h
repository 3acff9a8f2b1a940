/* A table of processes as a worker sent it: bytes of a process that may run a vendor's library. */
#ifndef GPUTAP_BROKER_PROCESS_CHECK_H
#define GPUTAP_BROKER_PROCESS_CHECK_H

#include "shm/layout.h"

/* False for a table that cannot be true. Single numbers and texts that make no sense become unknown. */
bool process_table_check(struct layout_process_table *table);

#endif
