/* Prints the public header of metrics, or their reference page, from the table. Run by the build only. */
#include <stdio.h>
#include <string.h>

#include "shm/metrics.h"

static void print_enum(FILE *out, bool host, const char *name, const char *prefix, const char *comment)
{
    int count;
    const struct metric_info *table = metrics_table(host, &count);
    fprintf(out, "/* %s */\nenum %s {\n", comment, name);
    for (int i = 0; i < count; i++)
        fprintf(out, "    GPUTAP_%s%s = %d, /* %s%s%s: %s */\n", prefix, table[i].id, i, metrics_type_text(table[i].type),
                table[i].unit[0] ? ", " : "", table[i].unit, table[i].help);
    fprintf(out, "    GPUTAP_%sMETRIC_COUNT = %d\n};\n\n", prefix, count);
}

static void print_header(FILE *out)
{
    fputs("/* Generated from the metric table: do not edit. Included by gputap.h. */\n", out);
    fputs("#ifndef GPUTAP_METRICS_H\n#define GPUTAP_METRICS_H\n\n", out);
    print_enum(out, false, "gputap_metric_id", "", "Metrics of a device.");
    print_enum(out, true, "gputap_host_metric_id", "HOST_", "Metrics of the host (device GPUTAP_HOST).");
    fputs("#endif\n", out);
}

static void print_reference(FILE *out)
{
    for (int host = 0; host < 2; host++) {
        int count;
        const struct metric_info *table = metrics_table(host, &count);
        fprintf(out, "%s# %s\n\n| name | unit | type | kind | meaning | sources, best first |\n|---|---|---|---|---|---|\n",
                host ? "\n" : "", host ? "Host metrics" : "GPU metrics");
        for (int i = 0; i < count; i++)
            fprintf(out, "| `%s` | %s | %s | %s | %s | %s |\n", table[i].name, table[i].unit, metrics_type_text(table[i].type),
                    metrics_semantics_text(table[i].semantics), table[i].help, table[i].ladder);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    FILE *out = fopen(argv[2], "w");
    if (!out)
        return 1;
    if (strcmp(argv[1], "header") == 0)
        print_header(out);
    else
        print_reference(out);
    return fclose(out) == 0 ? 0 : 1;
}
