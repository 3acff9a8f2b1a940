/* The thread that waits for the broker. */
#ifndef GPUTAP_BRIDGE_WAITER_H
#define GPUTAP_BRIDGE_WAITER_H

#define WAITER_IDLE_MS 250 /* the service loop is woken at least this often */

/* For pthread_create; the argument is the hub. */
void *waiter_run(void *hub);

#endif
