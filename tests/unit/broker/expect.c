#include "expect.h"

#include <math.h>
#include <stdio.h>

bool expect_dump(struct tree *tree, struct probe *probe, const char *dump, const char *provider)
{
    tree_make(tree);
    if (!tree_from_dump(tree, dump)) {
        tree_remove(tree);
        return false;
    }
    if (probe_start(probe, provider, tree->root) == 0 && probe->count > 0)
        probe_sample(probe, 0);
    return true;
}

static const struct expected *find(const struct expected *expected, size_t count, int metric)
{
    for (size_t i = 0; i < count; i++)
        if (expected[i].metric == metric)
            return &expected[i];
    return NULL;
}

static bool is_unsupported(const struct probe *probe, int metric)
{
    unsigned reason = probe_reason(probe, metric);
    return !probe_known(probe, metric) && (reason == REASON_NOT_SUPPORTED || reason == REASON_NOT_SAMPLED);
}

bool expect_exactly(const struct probe *probe, const struct expected *expected, size_t count)
{
    int table_count;
    const struct metric_info *table = metrics_table(false, &table_count);
    bool all = true;
    for (int metric = 0; metric < table_count; metric++) {
        const struct expected *found = find(expected, count, metric);
        double value = metrics_as_double(&table[metric], probe->sample.values[metric]);
        bool good = found ? probe_known(probe, metric) && fabs(value - found->value) < 1e-6 : is_unsupported(probe, metric);
        if (!good)
            printf("%s: %s %.17g (reason %u), expected %s %.17g\n", table[metric].name,
                   probe_known(probe, metric) ? "known" : "unknown", value, probe_reason(probe, metric),
                   found ? "known" : "unknown", found ? found->value : 0);
        all = all && good;
    }
    return all;
}
