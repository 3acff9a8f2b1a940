#include "broker/log.h"

#include <stdarg.h>
#include <stdio.h>

void log_line(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "gputapd: %s\n", text);
}
