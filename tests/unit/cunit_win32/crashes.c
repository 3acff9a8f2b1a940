/* A crash ends the program with a line and a code of failure: left to the system it might show a dialogue, and even end with 0. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdio.h>

void cunit_watch_crashes(void);

static LONG WINAPI crashed(EXCEPTION_POINTERS *pointers)
{
    printf("crashed: exception 0x%08lx at %p\n", pointers->ExceptionRecord->ExceptionCode,
           pointers->ExceptionRecord->ExceptionAddress);
    TerminateProcess(GetCurrentProcess(), 70);
    return EXCEPTION_EXECUTE_HANDLER;
}

void cunit_watch_crashes(void)
{
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    SetUnhandledExceptionFilter(crashed);
}
