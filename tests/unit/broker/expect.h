/* What a whole sample must be: these metrics with these values, and no others. */
#ifndef GPUTAP_TESTS_EXPECT_H
#define GPUTAP_TESTS_EXPECT_H

#include "probe.h"
#include "tree.h"

struct expected {
    int metric;
    double value;
};

/* Lays a dump out in a new tree and samples it once with that provider: probe.count and probe.result tell how it went. False, and
 * no tree, where there is no such dump. */
bool expect_dump(struct tree *tree, struct probe *probe, const char *dump, const char *provider);

/* Prints each difference; false if there is one. What it takes two looks for may be not sampled yet; all else that is unknown must
 * be so for want of support. */
bool expect_exactly(const struct probe *probe, const struct expected *expected, size_t count);

#define EXPECT_EXACTLY(probe, ...)                                                                                                 \
    do {                                                                                                                           \
        const struct expected list[] = {__VA_ARGS__};                                                                              \
        CU_ASSERT_TRUE(expect_exactly(probe, list, sizeof list / sizeof list[0]));                                                 \
    } while (0)

#endif
