/* A test program in a few lines: a table of named tests, run by CUnit, each name saying the behaviour.
 *
 *     static void ring_keeps_order(void) { CU_ASSERT_EQUAL(1, 1); }
 *     TESTS({"ring_keeps_order", ring_keeps_order}, ...)
 *
 * A test that cannot run here calls SKIP("why") and returns; the program prints "skipped NAME: why" and counts it apart. */
#ifndef GPUTAP_TESTS_CHECK_H
#define GPUTAP_TESTS_CHECK_H

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check_test {
    const char *name;
    void (*run)(void);
};

static unsigned check_skips;

#define SKIP(why)                                                                                                                  \
    do {                                                                                                                           \
        printf("skipped %s: %s\n", __func__, why);                                                                                 \
        check_skips++;                                                                                                             \
        return;                                                                                                                    \
    } while (0)

static inline int check_main(const char *suite_name, const struct check_test *tests, size_t count, int argc, char **argv)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
    unsigned chosen = 0;
    for (size_t i = 0; i < count; i++)
        if (argc < 2 || strcmp(argv[1], tests[i].name) == 0) {
            CU_add_test(suite, tests[i].name, tests[i].run);
            chosen++;
        }
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_tests_failed();
    printf("%s: %u passed, %u failed, %u skipped\n", suite_name, chosen - failed - check_skips, failed, check_skips);
    CU_cleanup_registry();
    return failed || chosen == 0 ? 1 : 0;
}

#define TESTS(...)                                                                                                                 \
    int main(int argc, char **argv)                                                                                                \
    {                                                                                                                              \
        static const struct check_test tests[] = {__VA_ARGS__};                                                                    \
        setvbuf(stdout, NULL, _IONBF, 0);                                                                                          \
        return check_main(argv[0][0] ? argv[0] : "test", tests, sizeof tests / sizeof tests[0], argc, argv);                       \
    }

#endif
