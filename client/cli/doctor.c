/* gputap doctor: everything that somebody would have to ask before helping. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/handle.h"

static const char *provider_state(uint32_t state)
{
    static const char *const texts[] = {"starting", "running", "absent", "failed", "off"};
    return state < sizeof texts / sizeof texts[0] ? texts[state] : "unknown";
}

static void print_place(const struct handle_place *place, bool read)
{
    struct region_identity identity;
    const char *text;
    int checked = place_check(place->path, place->trust), held = lock_held(place->path);
    int segment = region_lookup(place->path, PLACE_SEGMENT, &identity, NULL);
    if (checked == REGION_EUNTRUSTED)
        text = "belongs to another user: not trusted (set GPUTAP_DIR to read it all the same)";
    else if (checked == REGION_EPERM || segment == REGION_EPERM || held == REGION_EPERM)
        text = "permission denied (is this user in the broker's group?)";
    else if (checked != REGION_OK)
        text = "not there";
    else if (segment != REGION_OK)
        text = held == 1 ? "a broker is starting" : "no segment";
    else
        text = held == 1 ? "a broker lives here" : "segment of a dead broker";
    printf("  %s %-44s %s\n", read ? "*" : " ", place->path, text);
}

static void print_places(gputap *tap)
{
    const char *directory = getenv("GPUTAP_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
    struct mapping *mapping = handle_current(tap);
    printf("paths (user id %lu, GPUTAP_DIR %s, XDG_RUNTIME_DIR %s)\n", terminal_user(),
           directory && directory[0] ? directory : "not set", runtime && runtime[0] ? runtime : "not set");
    for (int i = 0; i < tap->place_count; i++)
        print_place(&tap->places[i], mapping && word_get(&mapping->place) == (uint64_t)i);
}

/* What a broker that is gone counted as alive died with it. */
static const char *alive_text(int bits) { return bits & GPUTAP_STATUS_DEAD ? "were alive at its last word" : "alive"; }

static void print_broker(gputap *tap, int bits)
{
    gputap_host host = GPUTAP_HOST_INIT;
    gputap_stats stats = GPUTAP_STATS_INIT;
    struct mapping *mapping = handle_current(tap);
    char period[32], publish[32];
    printf("broker\n  state        %s%s\n", print_status(bits),
           bits & GPUTAP_STATUS_SIMULATED ? ", simulated devices were asked for" : "");
    if (gputap_host_info(tap, &host) == GPUTAP_OK)
        printf("  version      %s, pid %u (this program is %s)\n", host.broker_version, host.broker_pid, gputap_version());
    printf("  period       %s, tick %llu\n", print_duration(period, sizeof period, (double)gputap_period(tap) / 1e9),
           (unsigned long long)gputap_tick(tap));
    if (gputap_broker_stats(tap, &stats) == GPUTAP_OK) {
        double ticks = stats.ticks ? (double)stats.ticks : 1;
        printf("  cost a tick  %.0f us broker, %.0f us workers, CPU; publishing took %s\n",
               (double)stats.broker_cpu_ns / ticks / 1e3, (double)stats.workers_cpu_ns / ticks / 1e3,
               (snprintf(publish, sizeof publish, "%.0f us", (double)stats.publish_ns / 1e3), publish));
        printf("  losses       %llu of %llu ticks missed, %llu samples late, %llu bad messages, %llu times re-created\n",
               (unsigned long long)stats.missed_ticks, (unsigned long long)stats.ticks, (unsigned long long)stats.late_samples,
               (unsigned long long)stats.bad_messages, (unsigned long long)stats.recreated);
        printf("  workers      %llu %s, %llu restarts, %llu killed, %llu abandoned\n", (unsigned long long)stats.workers_alive,
               alive_text(bits), (unsigned long long)stats.worker_restarts, (unsigned long long)stats.workers_killed,
               (unsigned long long)stats.workers_abandoned);
    }
    printf("  clock        %s\n", mapping && word_get(&mapping->same_clock)
                                      ? "same time namespace and boot: ages by the monotonic clock"
                                      : "another time namespace or boot: ages by the wall clock");
}

static void print_providers(gputap *tap)
{
    int count = gputap_provider_count(tap);
    printf("providers\n");
    for (int i = 0; i < count; i++) {
        gputap_provider provider = GPUTAP_PROVIDER_INIT;
        if (gputap_provider_info(tap, i, &provider) != GPUTAP_OK)
            continue;
        printf("  %-10s %-9s %u device%s%s%s", provider.name, provider_state(provider.state), provider.devices,
               provider.devices == 1 ? "" : "s", provider.message[0] ? "; " : "", provider.message);
        if (provider.restarts || provider.hung)
            printf("; %u restarts, hung %u times", provider.restarts, provider.hung);
        printf("\n");
    }
}

/* Names of the metrics for which `matches` says yes, behind a title. */
static void print_group(gputap *tap, int device, const char *title, bool (*matches)(gputap *, int, int, const void *),
                        const void *want)
{
    const gputap_metric *info;
    int found = 0;
    for (int metric = 0; (info = gputap_metric_info(device, metric)) != NULL; metric++)
        if (matches(tap, device, metric, want))
            printf("%s%s", found++ ? ", " : title, info->name);
    if (found)
        printf("\n");
}

static bool has_reason(gputap *tap, int device, int metric, const void *want)
{
    return gputap_reason(tap, device, metric) == *(const int *)want;
}

static bool has_source(gputap *tap, int device, int metric, const void *want)
{
    char source[32];
    return gputap_source(tap, device, metric, source, sizeof source) == GPUTAP_OK && strcmp(source, want) == 0;
}

static void print_metrics(gputap *tap, int device)
{
    char title[64];
    int providers = gputap_provider_count(tap);
    for (int i = 0; i < providers; i++) {
        gputap_provider provider = GPUTAP_PROVIDER_INIT;
        if (gputap_provider_info(tap, i, &provider) != GPUTAP_OK)
            continue;
        snprintf(title, sizeof title, "  from %s: ", provider.name);
        print_group(tap, device, title, has_source, provider.name);
    }
    for (int reason = GPUTAP_REASON_NOT_SAMPLED; reason <= GPUTAP_REASON_STALE; reason++) {
        snprintf(title, sizeof title, "  unknown, %s: ", gputap_reason_text(reason));
        print_group(tap, device, title, has_reason, &reason);
    }
}

static void print_devices(gputap *tap)
{
    int count = gputap_device_count(tap);
    for (int i = 0; i < count; i++) {
        gputap_device device = GPUTAP_DEVICE_INIT;
        char name[128];
        if (gputap_device_info(tap, i, &device) != GPUTAP_OK) {
            printf("GPU %d is gone\n", i);
            continue;
        }
        printf("GPU %d: %s\n  id %s, state %s, pool %s, driver %s%s%s\n", i, print_device_name(name, sizeof name, &device),
               device.id, gputap_state_text((int)device.state), gputap_pool_text((int)device.pool),
               device.driver[0] ? device.driver : "unknown", device.driver_version[0] ? " " : "", device.driver_version);
        print_metrics(tap, i);
        doctor_explain(tap, i, &device);
    }
    if (count == 0)
        printf("no GPU was found; gputapd --simulate MODEL makes one up\n");
    printf("host\n");
    print_metrics(tap, GPUTAP_HOST);
}

static const char *no_permission_advice(gputap *tap)
{
    int count = gputap_device_count(tap);
    for (int device = GPUTAP_HOST; device < count; device++)
        for (int metric = 0; gputap_metric_info(device, metric); metric++)
            if (gputap_reason(tap, device, metric) == GPUTAP_REASON_NO_PERMISSION)
                return "permissions\n  the broker may not read everything: run it as root, or in the groups that own the device "
                       "files\n";
    return "";
}

int cli_doctor(const struct cli *cli)
{
    gputap *tap;
    char message[512];
    int result = gputap_open(&tap, cli->instance, 0);
    snprintf(message, sizeof message, "%s", gputap_message(NULL));
    if (result == GPUTAP_EINVAL) {
        fprintf(stderr, "gputap: %s\n", message);
        return EXIT_USAGE;
    }
    if (result != GPUTAP_OK && gputap_open(&tap, cli->instance, GPUTAP_OPEN_DETACHED) != GPUTAP_OK) {
        fprintf(stderr, "gputap: %s\n", gputap_message(NULL));
        return EXIT_FAILED;
    }
    print_places(tap);
    if (result != GPUTAP_OK) {
        fprintf(stderr, "gputap: %s\n", message);
        gputap_close(tap);
        return EXIT_FAILED;
    }
    int bits = cli_settled_status(tap);
    print_broker(tap, bits);
    print_providers(tap);
    print_devices(tap);
    fputs(no_permission_advice(tap), stdout);
    gputap_close(tap);
    return bits & GPUTAP_STATUS_RUNNING ? EXIT_FINE : EXIT_FAILED;
}
