#ifndef GPUTAP_BROKER_BROKER_H
#define GPUTAP_BROKER_BROKER_H

#include "broker/options.h"

/* Runs the broker until SIGTERM or SIGINT. Returns the exit code. */
int broker_run(const struct options *options);

#endif
