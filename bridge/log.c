#include "bridge/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const marks[] = {"error: ", "warning: ", ""};
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "gputap-bridge: %s%s\n", marks[level], text);
}

/* A client can cause these at will, so they are no news of ours. */
static int is_about_a_client(const char *line)
{
    static const char *const about[] = {"malformed or absent conn hdr", "malformatted protocol list", "pcol name too long",
                                        "protocol list too long", "Ran out of header data space"};
    for (size_t i = 0; i < sizeof about / sizeof about[0]; i++)
        if (strstr(line, about[i]))
            return 1;
    return 0;
}

void log_from_lws(int level, const char *line)
{
    (void)level;
    if (!is_about_a_client(line))
        log_line(LOG_LEVEL_ERROR, "libwebsockets: %.*s", (int)strcspn(line, "\n"), line);
}
