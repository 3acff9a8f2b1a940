#include "broker/broker.h"
#include "broker/worker.h"
#include "shm/platform.h"

int main(int argc, char **argv)
{
    static struct options options;
    process_open_standard_files();
    switch (options_parse(&options, argc, argv)) {
    case OPTIONS_EXIT_OK: return 0;
    case OPTIONS_EXIT_USAGE: return 2;
    case OPTIONS_RUN: break;
    }
    return options.worker ? worker_run(&options) : broker_run(&options);
}
