/* Waking by two named events a region, even and odd, since no call of Windows waits on a word across processes. Both stay set until
 * they are reset, so that one set wakes all. The event of parity p means: the word has come to a value of parity p. Whoever waits
 * for the word to leave v waits for the event of v + 1; the writer, come to v, resets that one before it sets the one of v. A
 * waiter that is overtaken by two steps between its look at the word and its wait sleeps until the third, or until its time is
 * over. */
#include <stdio.h>
#include <stdlib.h>

#include "shm/win32.h"

struct wake {
    shm_word32 users;
    HANDLE events[2]; /* by parity */
};

static HANDLE open_event(const wchar_t *scope, const struct region_identity *identity, int parity, bool create)
{
    wchar_t name[128];
    struct win32_access access;
    _snwprintf(name, sizeof name / sizeof name[0], L"%ls\\gputap/wake/%llx-%llx/%ls", scope, (unsigned long long)identity->device,
               (unsigned long long)identity->inode, parity ? L"odd" : L"even");
    if (!create) {
        HANDLE event = OpenEventW(SYNCHRONIZE | EVENT_MODIFY_STATE, FALSE, name);
        return event ? event : OpenEventW(SYNCHRONIZE, FALSE, name);
    }
    if (!win32_access_open(&access, WIN32_MAY_WAIT))
        return NULL;
    HANDLE event = CreateEventW(&access.attributes, TRUE, FALSE, name);
    win32_access_close(&access);
    return event;
}

struct wake *wake_open(const struct region_identity *identity, bool create)
{
    static const wchar_t *const scopes[] = {L"Global", L"Local"};
    struct wake *wake = calloc(1, sizeof *wake);
    if (!wake)
        return NULL;
    word32_set(&wake->users, 1);
    for (int i = 0; i < 2; i++) {
        wake->events[0] = open_event(scopes[i], identity, 0, create);
        wake->events[1] = wake->events[0] ? open_event(scopes[i], identity, 1, create) : NULL;
        if (wake->events[1])
            return wake;
        if (wake->events[0])
            CloseHandle(wake->events[0]);
    }
    free(wake);
    return NULL;
}

struct wake *wake_share(struct wake *wake)
{
    word32_add(&wake->users, 1);
    return wake;
}

void wake_release(struct wake *wake)
{
    if (!wake || word32_add(&wake->users, UINT32_MAX) != 1)
        return;
    CloseHandle(wake->events[0]);
    CloseHandle(wake->events[1]);
    free(wake);
}

void wake_all(shm_word32 *word)
{
    bool found;
    struct wake *wake = range_wake(word, &found);
    if (!wake) {
        WakeByAddressAll((void *)word); /* a word of this process alone */
        return;
    }
    uint32_t value = word32_get(word);
    ResetEvent(wake->events[(value + 1) & 1]);
    SetEvent(wake->events[value & 1]);
    wake_release(wake);
}

static DWORD milliseconds(uint64_t ns)
{
    uint64_t ms = ns / 1000000u + (ns % 1000000u != 0);
    return ms < INFINITE ? (DWORD)ms : INFINITE - 1;
}

/* A region whose writer has no events: of another system, looked at through a file that both have. */
static void look_often(const shm_word32 *word, uint32_t expected, uint64_t timeout_ns)
{
    uint64_t start = clock_mono_ns();
    while (word32_get(word) == expected && clock_mono_ns() - start < timeout_ns)
        Sleep(timeout_ns < 2000000u ? 1 : 2);
}

void wake_wait(const shm_word32 *word, uint32_t expected, uint64_t timeout_ns)
{
    bool found;
    struct wake *wake = range_wake(word, &found);
    if (wake) {
        if (word32_get(word) == expected)
            WaitForSingleObject(wake->events[(expected + 1) & 1], milliseconds(timeout_ns));
        wake_release(wake);
    } else if (found) {
        look_often(word, expected, timeout_ns);
    } else {
        WaitOnAddress((volatile void *)(uintptr_t)word, &expected, sizeof expected, milliseconds(timeout_ns));
    }
}
