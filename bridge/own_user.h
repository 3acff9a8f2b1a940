/* Whose sessions the bridge shows without being asked to. */
#ifndef GPUTAP_BRIDGE_OWN_USER_H
#define GPUTAP_BRIDGE_OWN_USER_H

#include <stdint.h>

uint32_t own_user(void);

#endif
