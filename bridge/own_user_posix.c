#include <unistd.h>

#include "bridge/own_user.h"

uint32_t own_user(void) { return (uint32_t)geteuid(); }
