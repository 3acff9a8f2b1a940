/* Memory, fits, the report after an allocation failed, and tuning. */
#include <math.h>

#include "tests/unit/check.h"
#include "tests/unit/client/fixture.h"

#define GIB (UINT64_C(1) << 30)
#define UNKNOWN UINT64_MAX

static struct fixture f;
static gputap *tap;

static void begin(uint32_t pool)
{
    fixture_start(&f);
    fixture_lock(&f);
    fixture_segment(&f, 2, "ab");
    struct layout_device entry = fixture_entry('a');
    entry.pool = pool;
    snprintf(entry.vendor, sizeof entry.vendor, "amd");
    snprintf(entry.arch, sizeof entry.arch, "gfx942");
    fixture_device(&f, 0, &entry);
    tap = fixture_open(0);
}

static void end(void)
{
    gputap_close(tap);
    fixture_end(&f);
}

static void know(struct layout_snapshot *sample, int metric, uint64_t bytes)
{
    if (bytes == UNKNOWN)
        return;
    sample->metrics[metric].u64 = bytes;
    metrics_set_valid(sample->valid, metric);
}

static void publish_memory(uint64_t vram_total, uint64_t vram_used, uint64_t gtt_total, uint64_t gtt_used)
{
    struct layout_snapshot sample = fixture_sample(97, 0);
    memset(sample.valid, 0, sizeof sample.valid);
    metrics_set_valid(sample.valid, METRIC_GFX_BUSY);
    know(&sample, METRIC_VRAM_TOTAL, vram_total);
    know(&sample, METRIC_VRAM_USED, vram_used);
    know(&sample, METRIC_GTT_TOTAL, gtt_total);
    know(&sample, METRIC_GTT_USED, gtt_used);
    fixture_publish(&f, 0, &sample);
}

static void publish_host(uint64_t total, uint64_t available)
{
    struct layout_snapshot sample = fixture_sample(0, 0);
    memset(sample.valid, 0, sizeof sample.valid);
    know(&sample, HOST_METRIC_MEMORY_TOTAL, total);
    know(&sample, HOST_METRIC_MEMORY_AVAILABLE, available);
    fixture_publish_host(&f, &sample);
}

static gputap_memory_info memory(void)
{
    gputap_memory_info m = GPUTAP_MEMORY_INIT;
    CU_ASSERT_EQUAL(gputap_memory(tap, 0, &m), GPUTAP_OK);
    return m;
}

static void a_card_has_what_its_vram_has(void)
{
    begin(POOL_DISCRETE);
    publish_memory(24 * GIB, 20 * GIB, 64 * GIB, GIB);
    publish_host(128 * GIB, 100 * GIB);
    gputap_memory_info m = memory();
    CU_ASSERT(m.pool == GPUTAP_POOL_DISCRETE && m.vram_total == 24 * GIB && m.vram_used == 20 * GIB && m.vram_free == 4 * GIB);
    CU_ASSERT(m.gtt_free == 63 * GIB && m.host_total == 128 * GIB && m.host_available == 100 * GIB);
    CU_ASSERT(m.effective_free == 4 * GIB && m.own == UNKNOWN && m.others == UNKNOWN);
    CU_ASSERT(m.age_ns < UINT64_C(60000000000));
    end();
}

static void an_apu_has_vram_and_what_gtt_and_host_both_have(void)
{
    begin(POOL_UNIFIED);
    publish_memory(GIB / 2, GIB / 4, 62 * GIB, 2 * GIB);
    publish_host(64 * GIB, 50 * GIB);
    CU_ASSERT_EQUAL(memory().effective_free, 50 * GIB + GIB / 4); /* the host is the narrower */
    publish_host(128 * GIB, 90 * GIB);
    CU_ASSERT_EQUAL(memory().effective_free, 60 * GIB + GIB / 4); /* GTT is */
    publish_memory(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN);           /* neither carve-out nor GTT: the host alone */
    CU_ASSERT_EQUAL(memory().effective_free, 90 * GIB);
    publish_host(UNKNOWN, UNKNOWN);
    CU_ASSERT_EQUAL(memory().effective_free, UNKNOWN);
    publish_memory(GIB, 0, UNKNOWN, UNKNOWN); /* and not GIB: what is mapped is not known */
    CU_ASSERT_EQUAL(memory().effective_free, UNKNOWN);
    end();
}

static void what_is_unknown_is_not_zero(void)
{
    begin(POOL_DISCRETE);
    gputap_memory_info m = GPUTAP_MEMORY_INIT;
    int64_t margin = 77;
    CU_ASSERT_EQUAL(gputap_memory(tap, 0, &m), GPUTAP_EEMPTY);
    publish_memory(24 * GIB, UNKNOWN, UNKNOWN, UNKNOWN);
    m = memory();
    CU_ASSERT(m.vram_total == 24 * GIB && m.vram_used == UNKNOWN && m.vram_free == UNKNOWN && m.effective_free == UNKNOWN);
    CU_ASSERT(m.gtt_total == UNKNOWN && m.host_total == UNKNOWN && m.host_available == UNKNOWN);
    CU_ASSERT_EQUAL(gputap_fits(tap, 0, 1, &margin), GPUTAP_EEMPTY);
    CU_ASSERT_EQUAL(margin, 77);
    end();
}

static void fits_says_by_how_much(void)
{
    begin(POOL_DISCRETE);
    int64_t margin = 0;
    publish_memory(8 * GIB, 5 * GIB, UNKNOWN, UNKNOWN);
    CU_ASSERT_EQUAL(gputap_fits(tap, 0, 2 * GIB, &margin), 1);
    CU_ASSERT_EQUAL(margin, (int64_t)GIB);
    CU_ASSERT_EQUAL(gputap_fits(tap, 0, 3 * GIB, NULL), 1);
    CU_ASSERT_EQUAL(gputap_fits(tap, 0, 3 * GIB + 1, &margin), 0);
    CU_ASSERT_EQUAL(margin, -1);
    CU_ASSERT_EQUAL(gputap_fits(tap, 0, UINT64_MAX, &margin), 0);
    CU_ASSERT_EQUAL(margin, -INT64_MAX);
    struct layout_snapshot old = fixture_sample(97, GIB);
    know(&old, METRIC_VRAM_TOTAL, 8 * GIB);
    old.mono_ns -= UINT64_C(60000000000);
    old.real_ns -= UINT64_C(60000000000);
    fixture_publish(&f, 0, &old);
    CU_ASSERT_EQUAL(gputap_fits(tap, 0, 1, &margin), GPUTAP_ENOBROKER); /* of a minute ago: nobody knows now */
    publish_memory(8 * GIB, 9 * GIB, UNKNOWN, UNKNOWN);                 /* more used than there is */
    CU_ASSERT_EQUAL(gputap_fits(tap, 0, 1, &margin), 0);
    CU_ASSERT_EQUAL(margin, -1);
    end();
}

static void bad_arguments_are_refused(void)
{
    begin(POOL_DISCRETE);
    publish_memory(8 * GIB, 5 * GIB, UNKNOWN, UNKNOWN);
    gputap_memory_info m = GPUTAP_MEMORY_INIT;
    gputap_tuning_info tuning = GPUTAP_TUNING_INIT;
    char text[8];
    CU_ASSERT(gputap_memory(NULL, 0, &m) == GPUTAP_EINVAL && gputap_memory(tap, 0, NULL) == GPUTAP_EINVAL);
    CU_ASSERT(gputap_memory(tap, GPUTAP_HOST, &m) == GPUTAP_EINVAL && gputap_memory(tap, 5, &m) == GPUTAP_ENODEV);
    CU_ASSERT(gputap_fits(NULL, 0, 1, NULL) == GPUTAP_EINVAL && gputap_fits(tap, 5, 1, NULL) == GPUTAP_ENODEV);
    CU_ASSERT(gputap_oom_report(tap, 0, NULL, 5) == GPUTAP_EINVAL && gputap_oom_report(NULL, 0, text, 5) == GPUTAP_EINVAL);
    CU_ASSERT(gputap_oom_report(tap, 5, text, sizeof text) == GPUTAP_ENODEV);
    CU_ASSERT(gputap_tuning(NULL, &tuning) == GPUTAP_EINVAL && gputap_tuning("gfx942", NULL) == GPUTAP_EINVAL);
    CU_ASSERT(gputap_device_tuning(tap, 5, &tuning) == GPUTAP_ENODEV && gputap_device_tuning(NULL, 0, &tuning) == GPUTAP_EINVAL);
    m.size = 3;
    tuning.size = 0;
    CU_ASSERT(gputap_memory(tap, 0, &m) == GPUTAP_ESIZE && gputap_tuning("gfx942", &tuning) == GPUTAP_ESIZE);
    end();
}

static void the_report_names_pools_holders_and_the_last_seconds(void)
{
    begin(POOL_UNIFIED);
    publish_memory(GIB / 2, GIB / 4, 62 * GIB, 2 * GIB);
    publish_host(64 * GIB, 50 * GIB);
    struct layout_session session = fixture_session_entry("ComfyUI");
    session.gauge_count = 2;
    session.gauges[0] =
        (struct layout_gauge){.updated_ns = 1, .device = 0, .allocated = GIB, .reserved = 3 * GIB, .dynamic = UNKNOWN};
    session.gauges[1] = (struct layout_gauge){.updated_ns = 1, .device = 1, .allocated = 7 * GIB};
    fixture_session(&f, 3, &session);
    char text[4096];
    int length = gputap_oom_report(tap, 0, text, sizeof text);
    CU_ASSERT_EQUAL(length, (int)strlen(text));
    static const char *const parts[] = {"GPU 0  Card a, gfx942  dev:a\n",
                                        "VRAM       total 0.50 GiB, used 0.25 GiB, free 0.25 GiB\n",
                                        "GTT        total 62.00 GiB, used 2.00 GiB, free 60.00 GiB\n",
                                        "host       total 64.00 GiB, used 14.00 GiB, free 50.00 GiB\n",
                                        "free for work on it: 50.25 GiB (unified pool)",
                                        "ComfyUI (python3, pid 4321): allocated 1.00 GiB, reserved 3.00 GiB\n",
                                        "the last seconds:\n    0.0 s  - GiB  97 % busy  - W\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(text, parts[i])) {
            printf("\n%s lacks %s", text, parts[i]);
            CU_FAIL("a part is missing");
        }
    CU_ASSERT_PTR_NULL(strstr(text, "7.00 GiB"));
    char small[20];
    memset(small, 'x', sizeof small);
    CU_ASSERT_EQUAL(gputap_oom_report(tap, 0, small, 10), length);
    CU_ASSERT(memcmp(small, text, 9) == 0 && small[9] == '\0' && small[10] == 'x');
    CU_ASSERT_EQUAL(gputap_oom_report(tap, 0, NULL, 0), length);
    end();
}

static bool says(const char *text, const char *part)
{
    if (strstr(text, part))
        return true;
    printf("\n%s lacks %s", text, part);
    return false;
}

static void the_report_names_processes_where_somebody_looks_for_them(void)
{
    begin(POOL_DISCRETE);
    publish_memory(8 * GIB, 5 * GIB, UNKNOWN, UNKNOWN);
    char text[4096];
    CU_ASSERT(gputap_oom_report(tap, 0, text, sizeof text) > 0);
    CU_ASSERT_PTR_NULL(strstr(text, "as the drivers tell"));
    struct layout_process rows[20];
    for (uint32_t i = 0; i < 20; i++)
        rows[i] = fixture_process(100 + i, 1000, (20 - i) * GIB / 16, "worker");
    rows[1].flags = PROCESS_PARTIAL;
    rows[1].sharers = 2;
    rows[2].vram = UNKNOWN;
    snprintf(rows[2].container, sizeof rows[2].container, "0123456789ab");
    struct layout_process_table table = fixture_process_table(rows, 20);
    table.others = 3;
    table.hidden = 2;
    fixture_processes(&f, 0, &table);
    CU_ASSERT(gputap_oom_report(tap, 0, text, sizeof text) > 0);
    CU_ASSERT(says(text, "held, as the drivers tell:\n  worker (pid 100, user 1000): VRAM 1.25 GiB, GTT 0.00 GiB\n"));
    CU_ASSERT(says(text, "(pid 101, user 1000): at least VRAM 1.19 GiB, GTT 0.00 GiB, shared with 2 more\n"));
    CU_ASSERT(says(text, "(pid 102, user 1000, container 0123456789ab): VRAM unknown,"));
    CU_ASSERT_PTR_NULL(strstr(text, "pid 116"));
    CU_ASSERT(says(text, "  7 more processes, which hold less\n  2 processes of other users, which could not be read\n"));
    end();
}

/* --- tuning */

static void advice(const char *arch, const char *family, int unified, const char *precision, int tile_min, int tile_max, int cap,
                   int known)
{
    gputap_tuning_info t = GPUTAP_TUNING_INIT;
    CU_ASSERT_EQUAL(gputap_tuning(arch, &t), GPUTAP_OK);
    bool right = strcmp(t.family, family) == 0 && t.unified == (uint32_t)unified && strcmp(t.precision, precision) == 0 &&
                 t.tile_min == tile_min && t.tile_max == tile_max && t.batch_cap == cap && t.known == (uint32_t)known;
    if (!right)
        printf("\n  %s: %s %u %s %d %d %d %u\n", arch, t.family, t.unified, t.precision, t.tile_min, t.tile_max, t.batch_cap,
               t.known);
    CU_ASSERT(right);
}

static void amd_by_its_gfx_name(void)
{
    static const char *const strix[] = {"gfx1150", "gfx1151", "gfx1152", "gfx1153"},
                             *const navi3[] = {"gfx1100", "gfx1101", "gfx1102"},
                             *const navi2[] = {"gfx1030", "gfx1031", "gfx1032", "gfx1034"},
                             *const apu2[] = {"gfx1033", "gfx1035", "gfx1036"}, *const navi4[] = {"gfx1200", "gfx1201"},
                             *const cdna[] = {"gfx90a", "gfx942", "gfx950"};
    for (size_t i = 0; i < 4; i++)
        advice(strix[i], "rdna3_5", 1, "fp16", 768, 2048, 8, 1);
    for (size_t i = 0; i < 3; i++)
        advice(navi3[i], "rdna3", 0, "fp16", 768, 2048, 16, 1);
    advice("gfx1103", "rdna3", 1, "fp16", 768, 2048, 8, 1);
    for (size_t i = 0; i < 4; i++)
        advice(navi2[i], "rdna2", 0, "fp16", 512, 1536, 8, 1);
    for (size_t i = 0; i < 3; i++)
        advice(apu2[i], "rdna2", 1, "fp16", 512, 1024, 4, 1);
    for (size_t i = 0; i < 2; i++)
        advice(navi4[i], "rdna4", 0, "fp16", 768, 2048, 16, 1);
    for (size_t i = 0; i < 3; i++)
        advice(cdna[i], "cdna", 0, "bf16", 768, 2048, 32, 1);
    advice("gfx908", "cdna", 0, "fp16", 768, 2048, 16, 1);
    advice("gfx906", "generic_amd", 0, "fp16", 512, 1024, 4, 0);
    advice("gfx1154", "generic_amd", 0, "fp16", 512, 1024, 4, 0);
}

static void names_are_taken_as_runtimes_write_them(void)
{
    gputap_tuning_info t = GPUTAP_TUNING_INIT;
    advice("gfx90a:sramecc+:xnack-", "cdna", 0, "bf16", 768, 2048, 32, 1);
    advice("GFX1151", "rdna3_5", 1, "fp16", 768, 2048, 8, 1);
    CU_ASSERT_EQUAL(gputap_tuning("gfx90a:sramecc+:xnack-", &t), GPUTAP_OK);
    CU_ASSERT_STRING_EQUAL(t.arch, "gfx90a");
    static const char *const odd[] = {"gfx", "gfxzz", "gfx11510", "gfx1151x", "gfx-1151", "gfx 1151", "gfx115100000000000000000"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        advice(odd[i], "generic_amd", 0, "fp16", 512, 1024, 4, 0);
    static const char *const nothing[] = {"",      ":",   "cpu", "sm", "sm_", "sm_x", "8.", "8.x", "8.6.1", "99999999999999999999",
                                          "smart", "\xff"};
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++)
        advice(nothing[i], "generic", 0, "fp32", 512, 1024, 4, 0);
}

static void nvidia_by_its_capability(void)
{
    advice("sm_52", "maxwell", 0, "fp32", 512, 1024, 4, 1);
    advice("6.1", "pascal", 0, "fp32", 512, 1024, 4, 1);
    advice("sm_70", "volta", 0, "fp16", 768, 2048, 16, 1);
    advice("7.5", "turing", 0, "fp16", 512, 1536, 8, 1);
    advice("sm_80", "ampere", 0, "bf16", 768, 2048, 32, 1);
    advice("sm_86", "ampere", 0, "bf16", 768, 2048, 16, 1);
    advice("8.6", "ampere", 0, "bf16", 768, 2048, 16, 1);
    advice("sm87", "ampere", 1, "bf16", 768, 2048, 8, 1);
    advice("sm_89", "ada", 0, "bf16", 768, 2048, 16, 1);
    advice("sm_90a", "hopper", 0, "bf16", 768, 2048, 32, 1);
    advice("10.0", "blackwell", 0, "bf16", 768, 2048, 32, 1);
    advice("sm_120", "blackwell", 0, "bf16", 768, 2048, 16, 1);
    advice("12.1", "blackwell", 1, "bf16", 768, 2048, 8, 1);
    advice("sm_35", "generic_nvidia", 0, "fp16", 512, 1024, 4, 0);
}

static void intel_by_its_family(void)
{
    advice("xe_lp", "xe_lp", 1, "fp16", 512, 1024, 4, 1);
    advice("Xe-HPG", "xe_hpg", 0, "bf16", 768, 2048, 8, 1);
    advice("xe_hpc", "xe_hpc", 0, "bf16", 768, 2048, 32, 1);
    advice("xe2", "xe2", 0, "bf16", 768, 2048, 8, 1);
    advice("xe9", "generic_intel", 0, "fp16", 512, 1024, 4, 0);
}

static void the_pool_of_a_device_overrules_its_name(void)
{
    begin(POOL_UNIFIED); /* gfx942 with a unified pool is an MI300A */
    gputap_tuning_info t = GPUTAP_TUNING_INIT;
    CU_ASSERT_EQUAL(gputap_device_tuning(tap, 0, &t), GPUTAP_OK);
    CU_ASSERT(t.unified == 1 && t.known == 1 && t.batch_cap == 32 && strcmp(t.precision, "bf16") == 0 &&
              strcmp(t.family, "cdna") == 0);
    struct layout_device entry = fixture_entry('a');
    entry.pool = POOL_DISCRETE;
    snprintf(entry.arch, sizeof entry.arch, "gfx942");
    fixture_device(&f, 0, &entry);
    CU_ASSERT_EQUAL(gputap_device_tuning(tap, 0, &t), GPUTAP_OK);
    CU_ASSERT_EQUAL(t.unified, 0);
    entry.pool = POOL_UNKNOWN;
    snprintf(entry.arch, sizeof entry.arch, "gfx1035");
    fixture_device(&f, 0, &entry);
    CU_ASSERT_EQUAL(gputap_device_tuning(tap, 0, &t), GPUTAP_OK);
    CU_ASSERT_EQUAL(t.unified, 1);
    end();
}

static void without_an_architecture_the_vendor_speaks(void)
{
    begin(POOL_DISCRETE);
    static const char *const vendors[] = {"amd", "nvidia", "intel", "other", ""};
    static const char *const families[] = {"generic_amd", "generic_nvidia", "generic_intel", "generic", "generic"};
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++) {
        gputap_tuning_info t = GPUTAP_TUNING_INIT;
        struct layout_device entry = fixture_entry('a');
        snprintf(entry.vendor, sizeof entry.vendor, "%s", vendors[i]);
        fixture_device(&f, 0, &entry);
        CU_ASSERT_EQUAL(gputap_device_tuning(tap, 0, &t), GPUTAP_OK);
        CU_ASSERT_STRING_EQUAL(t.family, families[i]);
        CU_ASSERT_EQUAL(t.known, 0);
    }
    end();
}

TESTS({"a_card_has_what_its_vram_has", a_card_has_what_its_vram_has},
      {"an_apu_has_vram_and_what_gtt_and_host_both_have", an_apu_has_vram_and_what_gtt_and_host_both_have},
      {"what_is_unknown_is_not_zero", what_is_unknown_is_not_zero}, {"fits_says_by_how_much", fits_says_by_how_much},
      {"bad_arguments_are_refused", bad_arguments_are_refused},
      {"the_report_names_pools_holders_and_the_last_seconds", the_report_names_pools_holders_and_the_last_seconds},
      {"the_report_names_processes_where_somebody_looks_for_them", the_report_names_processes_where_somebody_looks_for_them},
      {"amd_by_its_gfx_name", amd_by_its_gfx_name},
      {"names_are_taken_as_runtimes_write_them", names_are_taken_as_runtimes_write_them},
      {"nvidia_by_its_capability", nvidia_by_its_capability}, {"intel_by_its_family", intel_by_its_family},
      {"the_pool_of_a_device_overrules_its_name", the_pool_of_a_device_overrules_its_name},
      {"without_an_architecture_the_vendor_speaks", without_an_architecture_the_vendor_speaks})
