/* What went wrong, kept for the thread that it happened to. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/handle.h"

struct last_failure {
    const gputap *tap;
    char text[512];
};
static _Thread_local struct last_failure failure_of_open;
static _Thread_local struct last_failure failure_of_handle;

int client_fail(const gputap *tap, int code, const char *format, ...)
{
    struct last_failure *failure = tap ? &failure_of_handle : &failure_of_open;
    va_list args;
    va_start(args, format);
    failure->tap = tap;
    (void)vsnprintf(failure->text, sizeof failure->text, format, args);
    va_end(args);
    return code;
}

int client_fail_absent(gputap *tap)
{
    char text[480];
    handle_describe_absence(tap, text, sizeof text);
    return client_fail(tap, GPUTAP_ENOBROKER, "%s", text);
}

int client_fail_busy(const gputap *tap)
{
    return client_fail(tap, GPUTAP_EAGAIN, "overwritten while it was read, %d times in a row", HANDLE_RETRIES);
}

int client_fail_device(const gputap *tap, int code, int device)
{
    if (code == GPUTAP_EINVAL)
        return client_fail(tap, code, "%d is not a device number", device);
    return client_fail(tap, code, "device %d does not exist, or is no more", device);
}

int client_copy_sized(const gputap *tap, void *out, uint32_t caller_size, const void *known, size_t known_size)
{
    if (caller_size < 8)
        return client_fail(tap, GPUTAP_ESIZE, "set member size before the call");
    memcpy((char *)out + sizeof caller_size, (const char *)known + sizeof caller_size,
           (caller_size < known_size ? caller_size : known_size) - sizeof caller_size);
    if (caller_size > known_size)
        memset((char *)out + known_size, 0, caller_size - known_size);
    return GPUTAP_OK;
}

const char *gputap_message(const gputap *tap)
{
    const struct last_failure *failure = tap ? &failure_of_handle : &failure_of_open;
    return failure->tap == tap ? failure->text : "";
}

const char *gputap_strerror(int error)
{
    switch (error) {
    case GPUTAP_OK: return "no error";
    case GPUTAP_EINVAL: return "an argument is out of its range";
    case GPUTAP_ENOBROKER: return "no broker found";
    case GPUTAP_ENODEV: return "no such device";
    case GPUTAP_EPERM: return "not permitted";
    case GPUTAP_EVERSION: return "the broker's segment is of another version";
    case GPUTAP_ECORRUPT: return "the broker's segment is damaged";
    case GPUTAP_EAGAIN: return "overwritten while it was read";
    case GPUTAP_EEMPTY: return "nothing was sampled yet";
    case GPUTAP_ETIMEDOUT: return "timed out";
    case GPUTAP_ENOMEM: return "out of memory";
    case GPUTAP_ESYSTEM: return "a system call failed";
    case GPUTAP_ESIZE: return "a buffer or a sized struct is too small";
    case GPUTAP_EFORKED: return "the session is the parent process's";
    case GPUTAP_EDETACHED: return "no session is attached";
    case GPUTAP_EFULL: return "too many spans are open";
    default: return error > 0 ? "no error" : "unknown error";
    }
}

const char *gputap_reason_text(int reason) { return metrics_reason_text((unsigned)reason); }
const char *gputap_state_text(int state) { return metrics_state_text((unsigned)state); }
const char *gputap_pool_text(int pool) { return metrics_pool_text((unsigned)pool); }
const char *gputap_version(void) { return GPUTAP_PROJECT_VERSION; }
