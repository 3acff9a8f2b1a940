#ifndef GPUTAP_BROKER_LOG_H
#define GPUTAP_BROKER_LOG_H

/* One line on stderr, "gputapd: ...". */
void log_line(const char *format, ...);

#endif
