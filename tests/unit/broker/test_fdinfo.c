/* What drivers tell of a DRM client, line by line, and lines that lie. */
#include <math.h>
#include <string.h>

#include "broker/providers/fdinfo.h"
#include "tests/unit/check.h"

static struct fdinfo info;

static const struct fdinfo_engine *engine(const char *name)
{
    /* by what the text of a one-engine file fills */
    static struct fdinfo one;
    char text[96];
    snprintf(text, sizeof text, "drm-driver: x\ndrm-engine-%s: 1 ns\n", name);
    CU_ASSERT_TRUE_FATAL(fdinfo_parse(text, &one));
    for (int i = 0; i < FDINFO_ENGINES; i++)
        if (one.engines[i].has_time)
            return &info.engines[i];
    CU_FAIL_FATAL("no such engine");
    return NULL;
}

static void amdgpu_with_a_space_before_the_tab(void)
{
    CU_ASSERT_TRUE(fdinfo_parse("pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t1121\ndrm-driver:\tamdgpu\ndrm-client-id:\t217\n"
                                "drm-pdev:\t0000:03:00.0\npasid:\t32771\ndrm-memory-vram:\t2068 KiB\ndrm-memory-gtt: \t8192 KiB\n"
                                "drm-memory-cpu: \t4 KiB\nname:\tfirefox\ndrm-engine-gfx:\t107322799 ns\ndrm-engine-enc_1:\t5 ns\n",
                                &info));
    CU_ASSERT_STRING_EQUAL(info.driver, "amdgpu");
    CU_ASSERT_STRING_EQUAL(info.pdev, "0000:03:00.0");
    CU_ASSERT_TRUE(info.has_vram && info.has_gtt);
    CU_ASSERT_EQUAL(info.vram, 2117632);
    CU_ASSERT_EQUAL(info.gtt, 8388608);
    CU_ASSERT_EQUAL(engine("gfx")->time_ns, 107322799);
    CU_ASSERT_EQUAL(engine("enc_1")->time_ns, 5);
    CU_ASSERT_FALSE(engine("compute")->has_time); /* left out while zero */
}

static void the_client_id_is_not_the_pasid(void)
{
    CU_ASSERT_TRUE(fdinfo_parse("drm-driver:\tamdgpu\npasid:\t32771\ndrm-client-id:\t217\n", &info));
    CU_ASSERT_EQUAL(info.client, 217);
    CU_ASSERT_TRUE(fdinfo_parse("drm-driver:\tamdgpu\ndrm-client-id:\t217\npasid:\t32771\n", &info));
    CU_ASSERT_EQUAL(info.client, 217);
}

static void amdgpu_of_old_kernels(void)
{
    CU_ASSERT_TRUE(fdinfo_parse("pdev:\t0000:0c:00.0\npasid:\t32769\nvram mem:\t1024 kB\ngtt mem:\t512 kB\ncpu mem:\t7 kB\n"
                                "gfx0:\t12.34%\ngfx1:\t2.00%\ndec0:\t100.0%\nenc0:\t101.0%\n",
                                &info));
    CU_ASSERT_STRING_EQUAL(info.pdev, "0000:0c:00.0");
    CU_ASSERT_EQUAL(info.client, 32769);
    CU_ASSERT_EQUAL(info.vram, 1048576);
    CU_ASSERT_EQUAL(info.gtt, 524288);
    CU_ASSERT_TRUE(engine("gfx")->has_share && engine("gfx")->share == 12.34);
    CU_ASSERT_EQUAL(engine("dec")->share, 100);
    CU_ASSERT_FALSE(engine("enc")->has_share);
}

static void xe_counts_cycles(void)
{
    CU_ASSERT_TRUE(fdinfo_parse("drm-driver:\txe\ndrm-client-id:\t9\ndrm-pdev:\t0000:03:00.0\ndrm-total-system:\t0\n"
                                "drm-shared-system:\t0\ndrm-active-system:\t0\ndrm-resident-system:\t0\ndrm-purgeable-system:\t0\n"
                                "drm-total-vram0:\t192 MiB\ndrm-shared-vram0:\t0\ndrm-resident-vram0:\t128 MiB\n"
                                "drm-cycles-rcs:\t28257900\ndrm-total-cycles-rcs:\t7655183225\ndrm-cycles-vcs:\t0\n"
                                "drm-total-cycles-vcs:\t7655183225\ndrm-engine-capacity-vcs:\t2\n",
                                &info));
    CU_ASSERT_EQUAL(info.vram, UINT64_C(128) << 20);
    CU_ASSERT_EQUAL(info.gtt, 0);
    CU_ASSERT_TRUE(engine("rcs")->has_cycles && !engine("rcs")->has_time);
    CU_ASSERT_EQUAL(engine("rcs")->cycles, 28257900);
    CU_ASSERT_EQUAL(engine("rcs")->total_cycles, UINT64_C(7655183225));
    CU_ASSERT_EQUAL(engine("vcs")->capacity, 2);
}

static void i915_has_regions_by_name(void)
{
    CU_ASSERT_TRUE(
        fdinfo_parse("drm-driver: i915\ndrm-pdev: 0000:00:02.0\ndrm-client-id: 4\ndrm-total-system0: 5 MiB\n"
                     "drm-resident-system0: 3 MiB\ndrm-total-local0: 4 GiB\ndrm-resident-local0: 1 GiB\n"
                     "drm-total-stolen-system0: 1 KiB\ndrm-resident-stolen-system0: 1 KiB\ndrm-engine-render: 25662044495 ns\n"
                     "drm-engine-video-enhance: 0 ns\n",
                     &info));
    CU_ASSERT_EQUAL(info.vram, UINT64_C(1) << 30);
    CU_ASSERT_EQUAL(info.gtt, (UINT64_C(3) << 20) + 1024);
    CU_ASSERT_EQUAL(engine("render")->time_ns, UINT64_C(25662044495));
    CU_ASSERT_TRUE(engine("video-enhance")->has_time);
}

/* Resident before total: a browser had more than twice of what the card used (xpumanager issue 145). */
static void resident_is_believed_before_total_and_plain_bytes_need_no_unit(void)
{
    CU_ASSERT_TRUE(
        fdinfo_parse("drm-driver: x\ndrm-total-vram: 7692 MiB\ndrm-memory-vram: 100 KiB\ndrm-resident-vram: 4096\n", &info));
    CU_ASSERT_EQUAL(info.vram, 4096);
    CU_ASSERT_TRUE(fdinfo_parse("drm-driver: x\ndrm-total-vram: 7692 MiB\n", &info));
    CU_ASSERT_EQUAL(info.vram, UINT64_C(7692) << 20);
}

static void a_missing_key_is_unknown_and_not_zero(void)
{
    CU_ASSERT_TRUE(fdinfo_parse("drm-driver: nouveau\ndrm-pdev: 0000:01:00.0\n", &info));
    CU_ASSERT_FALSE(info.has_vram || info.has_gtt || info.has_client);
}

static void other_files_are_no_clients(void)
{
    CU_ASSERT_FALSE(fdinfo_parse("", &info));
    CU_ASSERT_FALSE(fdinfo_parse("pos:\t0\nflags:\t02\neventfd-count: 0\n", &info));
    CU_ASSERT_FALSE(fdinfo_parse("::::\n:\n", &info));
}

static void nonsense_costs_its_own_line_only(void)
{
    CU_ASSERT_TRUE(
        fdinfo_parse("drm-driver:\tamdgpu\ndrm-memory-vram:\t99999999999999999999999 KiB\ndrm-memory-gtt:\t1 parsec\n"
                     "drm-engine-gfx:\t-5 ns\ndrm-engine-compute:\t5 s\ndrm-engine-:\t1 ns\ndrm-engine-capacity-dec:\t99999\n"
                     "drm-memory-vram:\t18446744073709551615 KiB\ndrm-client-id:\tx\ndrm-engine-dma:\t7 ns\nno colon here\n"
                     "drm-engine-enc:",
                     &info));
    CU_ASSERT_FALSE(info.has_vram || info.has_gtt || info.has_client);
    CU_ASSERT_FALSE(engine("gfx")->has_time || engine("compute")->has_time || engine("enc")->has_time);
    CU_ASSERT_EQUAL(engine("dec")->capacity, 0);
    CU_ASSERT_EQUAL(engine("dma")->time_ns, 7);
}

static void kinds_of_engines(void)
{
    static const struct {
        const char *name;
        enum fdinfo_kind kind;
    } cases[] = {{"gfx", FDINFO_GFX},     {"render", FDINFO_GFX}, {"rcs", FDINFO_GFX},    {"compute", FDINFO_COMPUTE},
                 {"ccs", FDINFO_COMPUTE}, {"dma", FDINFO_COPY},   {"enc", FDINFO_ENCODE}, {"dec", FDINFO_DECODE},
                 {"jpeg", FDINFO_DECODE}, {"vcs", FDINFO_MEDIA}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CU_ASSERT_EQUAL(fdinfo_engine_kind((int)(engine(cases[i].name) - info.engines)), cases[i].kind);
}

TESTS({"amdgpu_with_a_space_before_the_tab", amdgpu_with_a_space_before_the_tab},
      {"the_client_id_is_not_the_pasid", the_client_id_is_not_the_pasid}, {"amdgpu_of_old_kernels", amdgpu_of_old_kernels},
      {"xe_counts_cycles", xe_counts_cycles}, {"i915_has_regions_by_name", i915_has_regions_by_name},
      {"resident_is_believed_before_total_and_plain_bytes_need_no_unit",
       resident_is_believed_before_total_and_plain_bytes_need_no_unit},
      {"a_missing_key_is_unknown_and_not_zero", a_missing_key_is_unknown_and_not_zero},
      {"other_files_are_no_clients", other_files_are_no_clients},
      {"nonsense_costs_its_own_line_only", nonsense_costs_its_own_line_only}, {"kinds_of_engines", kinds_of_engines})
