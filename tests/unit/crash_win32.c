/* Crashes in the middle of a test, so that tests/wine.sh can show that it would notice: by the handler of tests/unit/cunit_win32,
 * and with "unhandled" left to the system. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "tests/unit/check.h"

static volatile uintptr_t nowhere = 16;

static void write_to_nowhere(void) { *(volatile int *)nowhere = 1; }

static void unhandled(void)
{
    SetUnhandledExceptionFilter(NULL);
    write_to_nowhere();
}

TESTS({"handled", write_to_nowhere}, {"unhandled", unhandled})
