/* The calls of CUnit that tests/unit/check.h and the tests make, for a system that has no package of it. Included once a program.
 */
#ifndef GPUTAP_TESTS_CUNIT_WIN32_H
#define GPUTAP_TESTS_CUNIT_WIN32_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUE_SUCCESS = 0, CU_BRM_VERBOSE = 2, CUNIT_MOST_TESTS = 256 };

static struct {
    const char *suite;
    struct {
        const char *name;
        void (*run)(void);
    } tests[CUNIT_MOST_TESTS];
    unsigned count, failed;
    bool failing;  /* the test that runs */
    jmp_buf leave; /* it, after a fatal failure */
} cunit;
typedef int CU_pSuite;

void cunit_watch_crashes(void); /* crashes.c */

static inline int CU_initialize_registry(void)
{
    cunit_watch_crashes();
    return CUE_SUCCESS;
}
static inline void CU_cleanup_registry(void) { cunit.count = 0; }
static inline void CU_basic_set_mode(int mode) { (void)mode; }
static inline unsigned CU_get_number_of_tests_failed(void) { return cunit.failed; }

static inline CU_pSuite CU_add_suite(const char *name, void *before, void *after)
{
    (void)before, (void)after;
    cunit.suite = name;
    return 0;
}

static inline void CU_add_test(CU_pSuite suite, const char *name, void (*run)(void))
{
    (void)suite;
    if (cunit.count == CUNIT_MOST_TESTS) {
        printf("more than %d tests\n", CUNIT_MOST_TESTS);
        exit(1);
    }
    cunit.tests[cunit.count].name = name;
    cunit.tests[cunit.count++].run = run;
}

static inline void CU_basic_run_tests(void)
{
    printf("\nSuite: %s\n", cunit.suite);
    for (volatile unsigned i = 0; i < cunit.count; i++) {
        cunit.failing = false;
        printf("  Test: %s ...", cunit.tests[i].name);
        if (setjmp(cunit.leave) == 0)
            cunit.tests[i].run();
        printf(cunit.failing ? "FAILED\n" : "passed\n");
        cunit.failed += cunit.failing;
    }
}

static inline void cunit_check(bool holds, const char *text, const char *file, int line, bool fatal)
{
    if (holds)
        return;
    printf("\n    %s:%d  - %s\n", file, line, text);
    cunit.failing = true;
    if (fatal)
        longjmp(cunit.leave, 1);
}

#define CUNIT_CHECK(holds, text, fatal) cunit_check(holds, text, __FILE__, __LINE__, fatal)
#define CU_ASSERT(value) CUNIT_CHECK(!!(value), #value, false)
#define CU_ASSERT_TRUE(value) CUNIT_CHECK(!!(value), #value, false)
#define CU_ASSERT_FALSE(value) CUNIT_CHECK(!(value), "not " #value, false)
#define CU_ASSERT_EQUAL(a, b) CUNIT_CHECK((a) == (b), #a " == " #b, false)
#define CU_ASSERT_NOT_EQUAL(a, b) CUNIT_CHECK((a) != (b), #a " != " #b, false)
#define CU_ASSERT_PTR_EQUAL(a, b) CUNIT_CHECK((const void *)(a) == (const void *)(b), #a " == " #b, false)
#define CU_ASSERT_PTR_NULL(value) CUNIT_CHECK((value) == NULL, #value " == NULL", false)
#define CU_ASSERT_PTR_NOT_NULL(value) CUNIT_CHECK((value) != NULL, #value " != NULL", false)
#define CU_ASSERT_STRING_EQUAL(a, b) CUNIT_CHECK(strcmp(a, b) == 0, #a " equals " #b, false)
#define CU_ASSERT_DOUBLE_EQUAL(a, b, by) CUNIT_CHECK((a) - (b) <= (by) && (b) - (a) <= (by), #a " near " #b, false)
#define CU_ASSERT_FATAL(value) CUNIT_CHECK(!!(value), #value, true)
#define CU_ASSERT_TRUE_FATAL(value) CUNIT_CHECK(!!(value), #value, true)
#define CU_ASSERT_EQUAL_FATAL(a, b) CUNIT_CHECK((a) == (b), #a " == " #b, true)
#define CU_ASSERT_PTR_NOT_NULL_FATAL(value) CUNIT_CHECK((value) != NULL, #value " != NULL", true)
#define CU_FAIL(text) CUNIT_CHECK(false, text, false)

#endif
