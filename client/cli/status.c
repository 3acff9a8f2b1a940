#include <string.h>

#include "client/cli/cli.h"

static void print_epoch(gputap *tap)
{
    uint8_t epoch[16];
    if (gputap_epoch(tap, epoch) != GPUTAP_OK)
        return;
    printf("epoch     ");
    for (int i = 0; i < 16; i++)
        printf("%02x", epoch[i]);
    printf("\n");
}

static void print_broker(gputap *tap, int bits)
{
    gputap_host host = GPUTAP_HOST_INIT;
    char directory[1024], age[32], period[32];
    printf("broker    %s", print_status(bits));
    if (gputap_host_info(tap, &host) == GPUTAP_OK)
        printf(", pid %u, version %s", host.broker_pid, host.broker_version);
    printf("%s\n", bits & GPUTAP_STATUS_SIMULATED ? ", SIMULATED devices" : "");
    if (gputap_directory(tap, directory, sizeof directory) == GPUTAP_OK)
        printf("folder    %s\n", directory);
    printf("period    %s, tick %llu", print_duration(period, sizeof period, (double)gputap_period(tap) / 1e9),
           (unsigned long long)gputap_tick(tap));
    printf(", newest sample %s old\n", print_duration(age, sizeof age, cli_newest_age(tap)));
    print_epoch(tap);
    if (host.hostname[0])
        printf("host      %s, %s, %u threads, %s, Linux %s\n", host.hostname, host.cpu_name, host.cpu_threads, host.os,
               host.kernel);
}

static void print_devices(gputap *tap)
{
    int count = gputap_device_count(tap);
    if (count == 0)
        printf("no GPU was found (gputap doctor says why; gputapd --simulate MODEL makes one up)\n");
    for (int i = 0; i < count; i++) {
        gputap_device device = GPUTAP_DEVICE_INIT;
        char name[128];
        if (gputap_device_info(tap, i, &device) != GPUTAP_OK)
            printf("GPU %-5d gone\n", i);
        else
            printf("GPU %-5d %s, %s, %s%s%s\n", i, print_device_name(name, sizeof name, &device), device.id,
                   gputap_state_text((int)device.state), device.arch[0] ? ", " : "", device.arch);
    }
}

int cli_status(const struct cli *cli)
{
    gputap *tap;
    int result = cli_open(cli, &tap);
    if (result != EXIT_FINE)
        return result;
    int bits = cli_settled_status(tap);
    print_broker(tap, bits);
    print_devices(tap);
    gputap_close(tap);
    return bits & GPUTAP_STATUS_RUNNING ? EXIT_FINE : EXIT_FAILED;
}
