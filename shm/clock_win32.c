#include "shm/win32.h"

#include <bcrypt.h>
#include <stdlib.h>
#include <string.h>
#include <winternl.h>

#include "shm/metrics.h"

uint64_t clock_mono_ns(void)
{
    static shm_word ticks_a_second;
    LARGE_INTEGER now, frequency;
    uint64_t rate = word_peek(&ticks_a_second);
    if (rate == 0) {
        if (!QueryPerformanceFrequency(&frequency)) /* cannot fail since Windows XP */
            abort();
        rate = (uint64_t)frequency.QuadPart;
        word_poke(&ticks_a_second, rate);
    }
    if (!QueryPerformanceCounter(&now))
        abort();
    uint64_t ticks = (uint64_t)now.QuadPart;
    return ticks / rate * 1000000000u + ticks % rate * 1000000000u / rate;
}

/* The tick count costs a load, but is of another base, and drifts: so the two are compared once a second. */
uint64_t clock_mono_coarse_ns(void)
{
    static shm_word base, compared;
    uint64_t tick = GetTickCount64() * 1000000u, last = word_peek(&compared);
    if (last != 0 && tick - last < 1000000000u)
        return tick + word_peek(&base);
    uint64_t now = clock_mono_ns();
    word_poke(&base, now - tick);
    word_poke(&compared, tick);
    return now;
}

uint64_t clock_real_ns(void)
{
    FILETIME time;
    GetSystemTimePreciseAsFileTime(&time);
    uint64_t ticks = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime; /* 100 ns since 1601 */
    return (ticks - UINT64_C(116444736000000000)) * 100u;
}

/* One performance counter for all processes of a boot. */
uint64_t clock_namespace(void) { return UINT64_C(0x5150435F57494E); }

/* The loader's count of boots, at its documented place in the page that every process has (KUSER_SHARED_DATA, ntddk.h); where there
 * is none (before Windows 10, and under Wine) the time of the boot, which is the same for all as long as nobody sets the clock. */
static uint64_t boot_of_machine(void)
{
    SYSTEM_TIMEOFDAY_INFORMATION info;
    uint64_t boot = *(const volatile uint32_t *)(uintptr_t)0x7FFE02C4;
    if (boot == 0 && NtQuerySystemInformation(SystemTimeOfDayInformation, &info, sizeof info, NULL) == 0)
        memcpy(&boot, &info, sizeof boot);
    return boot;
}

/* Which machine, and which of its boots. */
void clock_boot_id(uint8_t out[16])
{
    wchar_t guid[64] = L"";
    DWORD size = sizeof guid - sizeof guid[0];
    uint64_t words[2] = {0, boot_of_machine()};
    memset(out, 0, 16);
    if (words[1] == 0 || RegGetValueW(HKEY_LOCAL_MACHINE, L"SOFTWARE\\Microsoft\\Cryptography", L"MachineGuid",
                                      RRF_RT_REG_SZ | RRF_SUBKEY_WOW6464KEY, NULL, guid, &size) != ERROR_SUCCESS)
        return;
    words[0] = metrics_hash(guid, size);
    memcpy(out, words, sizeof words);
}

void platform_random(void *out, size_t size)
{
    if (BCryptGenRandom(NULL, out, (ULONG)size, BCRYPT_USE_SYSTEM_PREFERRED_RNG) != 0)
        abort();
}
