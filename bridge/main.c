/* gputap-bridge: brings one instance's telemetry to browsers. */
#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/assets.h"
#include "bridge/bridge.h"
#include "bridge/log.h"
#include "bridge/signals.h"

/* ComfyUI's page on the same machine, as its default port serves it. */
static const char *const default_origins[] = {"http://127.0.0.1:8188", "http://localhost:8188"};
static const char *origins[OPTIONS_LIST + 2];

static bool check_names(const struct options *options)
{
    struct guard_authority authority;
    for (size_t i = 0; i < options->hosts.count; i++)
        if (!guard_split(options->hosts.item[i], &authority)) {
            log_line(LOG_LEVEL_ERROR, "--allow-host %s: not a name, with or without :PORT", options->hosts.item[i]);
            return false;
        }
    for (size_t i = 0; i < options->origins.count; i++) {
        const char *scheme = strstr(options->origins.item[i], "://");
        if (!scheme || !guard_split(scheme + 3, &authority)) {
            log_line(LOG_LEVEL_ERROR, "--allow-origin %s: not an origin, such as http://127.0.0.1:8188", options->origins.item[i]);
            return false;
        }
    }
    return true;
}

static bool make_rules(struct bridge *bridge)
{
    const struct options *options = &bridge->options;
    struct guard_rules *rules = &bridge->rules;
    const char *why;
    if (!check_names(options))
        return false;
    rules->hosts = options->hosts.item;
    rules->host_count = options->hosts.count;
    for (size_t i = 0; i < options->origins.count; i++)
        origins[rules->origin_count++] = options->origins.item[i];
    for (size_t i = 0; i < sizeof default_origins / sizeof default_origins[0]; i++)
        origins[rules->origin_count++] = default_origins[i];
    rules->origins = origins;
    if (options->token_file && !guard_load_token(options->token_file, rules->token, &why)) {
        log_line(LOG_LEVEL_ERROR, "--token-file %s: %s", options->token_file, why);
        return false;
    }
    if (options->web && !assets_folder_ok(options->web, &why)) {
        log_line(LOG_LEVEL_ERROR, "--web %s: %s", options->web, why);
        return false;
    }
    return true;
}

static int run(struct bridge *bridge)
{
    const struct options *options = &bridge->options;
    int code = listeners_open(&bridge->listeners, options, bridge->rules.token[0] != '\0');
    if (code == 2)
        options_print_usage();
    if (code != 0)
        return code;
    signals_limit_files(1024 > options->connections + 128 ? 1024 : (unsigned)options->connections + 128);
    bridge->stop_fd = signals_catch();
    if (bridge->stop_fd < 0 || peers_init(&bridge->peers, options->connections, options->per_address) != 0) {
        log_line(LOG_LEVEL_ERROR, "out of memory or descriptors");
        return 1;
    }
    instance_socket_init(&bridge->socket);
    code = bridge_run(bridge);
    peers_free(&bridge->peers);
    buffer_free(&bridge->scratch);
    return code;
}

int main(int argc, char **argv)
{
    signals_standard_files();
    static struct bridge bridge;
    switch (options_parse(argc, argv, &bridge.options)) {
    case OPTIONS_DONE: return 0;
    case OPTIONS_USAGE: return 2;
    case OPTIONS_RUN: break;
    }
    if (!make_rules(&bridge))
        return 2;
    int error = gputap_open(&bridge.tap, bridge.options.instance, GPUTAP_OPEN_DETACHED);
    if (error != GPUTAP_OK) {
        const char *details = gputap_message(NULL);
        log_line(LOG_LEVEL_ERROR, "cannot read the instance: %s", *details ? details : gputap_strerror(error));
        return error == GPUTAP_EINVAL ? 2 : 1;
    }
    int code = run(&bridge);
    gputap_close(bridge.tap);
    return code;
}
