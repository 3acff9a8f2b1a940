/* One style of line on stderr: "gputap-bridge: [warning: |error: ]text". */
#ifndef GPUTAP_BRIDGE_LOG_H
#define GPUTAP_BRIDGE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO };

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void log_line(enum log_level level, const char *format, ...);

/* Where libwebsockets sends its own lines; only its errors are kept. */
void log_from_lws(int level, const char *line);

#endif
