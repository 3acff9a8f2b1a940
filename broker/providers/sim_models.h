/* Names of simulated models, for the command line and its usage text. */
#ifndef GPUTAP_BROKER_PROVIDERS_SIM_MODELS_H
#define GPUTAP_BROKER_PROVIDERS_SIM_MODELS_H

#include <stddef.h>

/* Checks "MODEL" or "MODEL:COUNT" (count 1..64); on success 0, else -1 with a text that lists the models. */
int sim_check_spec(const char *spec, char *message, size_t size);
/* "static", "wave" or "workflow"? */
int sim_check_load(const char *load, char *message, size_t size);
/* The specs asked for by GPUTAP_SIM, GPUTAP_SIM_MODEL, GPUTAP_SIM_NUM_GPUS, as one "MODEL[:COUNT]" in out; 0 if none is asked for,
 * 1 if one is. Bad values fall back with one warning on stderr. */
int sim_from_environment(char *out, size_t size);
/* "mi300x, mi325x, ..." */
const char *sim_model_list(void);

#endif
