/* How benchmarks speak: candidates are interleaved in every round, and the median of the rounds' ratios is printed with its spread.
 * Nothing fails for slowness. */
#ifndef GPUTAP_TESTS_REPORT_H
#define GPUTAP_TESTS_REPORT_H

#include <stdio.h>
#include <stdlib.h>

enum { REPORT_MAX_ROUNDS = 4096 };

static inline int report_compare(const void *a, const void *b)
{
    double l = *(const double *)a, r = *(const double *)b;
    return (l > r) - (l < r);
}

/* Sorts `over` by the way; `under` is left as it is, for further rows. */
static inline void report_ratio(const char *name, double *over, const double *under, int count, const char *target)
{
    static double ratios[REPORT_MAX_ROUNDS];
    for (int i = 0; i < count; i++)
        ratios[i] = over[i] / under[i];
    qsort(ratios, (size_t)count, sizeof ratios[0], report_compare);
    qsort(over, (size_t)count, sizeof over[0], report_compare);
    double low = ratios[count / 10], middle = ratios[count / 2], high = ratios[count * 9 / 10];
    int digits = middle >= 0.1 ? 2 : 5;
    printf("%-58s %*.*f  (p10 %.*f, p90 %.*f; %.0f ns)  target %s%s\n", name, digits + 4, digits, middle, digits, low, digits, high,
           over[count / 2], target, high > 2 * low ? "  [noisy]" : "");
}

#endif
