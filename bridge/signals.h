#ifndef GPUTAP_BRIDGE_SIGNALS_H
#define GPUTAP_BRIDGE_SIGNALS_H

/* Returns a descriptor that becomes readable when the program is asked to end; -1 on failure. */
int signals_catch(void);
/* Lets the program have at least `wanted` open descriptors where its hard limit allows that, and no more than it needs: tables
 * are sized by the limit. */
void signals_limit_files(unsigned wanted);

/* Opens /dev/null for a standard descriptor that the process was started without, so that no socket or lock gets its number and the
 * log. */
void signals_standard_files(void);

#endif
