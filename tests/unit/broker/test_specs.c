/* Which card the table takes a PCI id for, and what it may tell where somebody knows better. */
#include "broker/providers/pci.h"
#include "broker/providers/specs.h"
#include "probe.h"
#include "tests/unit/check.h"
#include "tree.h"

static void expect(uint32_t vendor, uint32_t device, uint32_t revision, const char *known, const char *wanted)
{
    const struct specs *found = specs_find(vendor, device, revision, known);
    const char *name = found ? found->name : "none";
    if (strcmp(name, wanted) != 0)
        printf("%04x:%04x rev %02x \"%s\": %s instead of %s\n", vendor, device, revision, known, name, wanted);
    CU_ASSERT_STRING_EQUAL(name, wanted);
}

static void revision_tells_cards_of_one_id_apart(void)
{
    expect(PCI_VENDOR_AMD, 0x1586, 0xc1, "AMD GPU 1002:1586", "AMD Radeon 8060S Graphics");
    expect(PCI_VENDOR_AMD, 0x1586, 0xc2, "AMD GPU 1002:1586", "AMD Radeon 8050S Graphics");
    expect(PCI_VENDOR_AMD, 0x744c, 0xc8, "AMD Radeon RX 7900 XT/7900 XTX/7900M", "AMD Radeon RX 7900 XTX");
    expect(PCI_VENDOR_AMD, 0x744c, 0xcc, "AMD Radeon RX 7900 XT/7900 XTX/7900M", "AMD Radeon RX 7900 XT");
    expect(PCI_VENDOR_AMD, 0x744c, 0xcc, "AMD Radeon RX 7900 XTX", "AMD Radeon RX 7900 XT"); /* before the name */
    expect(PCI_VENDOR_AMD, 0x7590, 0xc1, "AMD GPU 1002:7590", "AMD Radeon RX 9060 XT LP");   /* only its name is known */
}

static void name_tells_them_apart_where_the_revision_does_not(void)
{
    expect(PCI_VENDOR_AMD, 0x744c, 0xee, "AMD Radeon RX 7900 XTX", "AMD Radeon RX 7900 XTX");
    expect(PCI_VENDOR_AMD, 0x744c, 0xee, "amd radeon rx 7900 xt", "AMD Radeon RX 7900 XT");
    expect(PCI_VENDOR_AMD, 0x7480, 0, "AMD Radeon RX 7600 XT", "AMD Radeon RX 7600 XT"); /* the longest */
    expect(PCI_VENDOR_AMD, 0x687f, 0xc1, "AMD Radeon RX Vega 64", "AMD Radeon RX Vega 64");
    expect(PCI_VENDOR_NVIDIA, 0x1e30, 0xa1, "Quadro RTX 8000", "NVIDIA Quadro RTX 8000");
}

static void no_answer_rather_than_a_wrong_one(void)
{
    expect(PCI_VENDOR_AMD, 0x744c, 0xee, "AMD Radeon RX 7900 XT/7900 XTX/7900M", "none"); /* a list of them all */
    expect(PCI_VENDOR_NVIDIA, 0x1e30, 0xa1, "NVIDIA Quadro RTX 6000/8000", "none");
    expect(PCI_VENDOR_AMD, 0x744c, 0xee, "AMD GPU 1002:744c", "none");
    expect(PCI_VENDOR_AMD, 0x73ff, 0xee, "AMD Radeon RX 6600T", "none"); /* not the RX 6600 */
    expect(PCI_VENDOR_AMD, 0x687f, 0xc1, "AMD Radeon RX Vega", "none");
    expect(PCI_VENDOR_AMD, 0x687f, 0xc1, "AMD Radeon RX Vega 56 or Vega 64", "none");
    expect(PCI_VENDOR_AMD, 0x7480, 0, "AMD GPU 1002:7480", "none"); /* a revision that could not be read is not 00 */
    expect(PCI_VENDOR_AMD, 0x7499, 0xc1, "AMD GPU 1002:7499", "none");
    expect(PCI_VENDOR_AMD, 0x6818, 0, "AMD Radeon HD 7800 Series", "none");
    expect(PCI_VENDOR_INTEL, 0x744c, 0xc8, "Radeon RX 7900 XTX", "none"); /* the id of another maker */
    expect(0, 0, 0, "", "none");
    expect(UINT32_MAX, UINT32_MAX, UINT32_MAX, "", "none");
}

static void id_of_one_card_needs_neither(void)
{
    expect(PCI_VENDOR_NVIDIA, 0x2684, 0xa1, "", "NVIDIA GeForce RTX 4090");
    expect(PCI_VENDOR_INTEL, 0xe20b, 0, "Intel GPU 8086:e20b", "Intel Arc B580");
    expect(PCI_VENDOR_AMD, 0x74a1, 0, "AMD GPU 1002:74a1", "AMD Instinct MI300X");
}

static void only_what_is_unknown_is_filled(void)
{
    struct layout_device facts = {.vendor_id = PCI_VENDOR_AMD, .device_id = 0x744c, .revision = 0xc8, .name = "known"};
    specs_complete(&facts);
    CU_ASSERT_STRING_EQUAL(facts.name, "known");
    CU_ASSERT_EQUAL(facts.tgp, 355);
    CU_ASSERT_EQUAL(facts.vram_bus_bits, 384);
    CU_ASSERT_STRING_EQUAL(facts.vram_type, "GDDR6");
    facts = (struct layout_device){
        .vendor_id = PCI_VENDOR_AMD, .device_id = 0x744c, .revision = 0xc8, .tgp = 327, .vram_bus_bits = 320, .vram_type = "told"};
    specs_complete(&facts);
    CU_ASSERT_EQUAL(facts.tgp, 327);
    CU_ASSERT_EQUAL(facts.vram_bus_bits, 320);
    CU_ASSERT_STRING_EQUAL(facts.vram_type, "told");
    facts = (struct layout_device){.vendor_id = PCI_VENDOR_AMD, .device_id = 0x1586, .revision = 0xc1};
    specs_complete(&facts);
    CU_ASSERT_EQUAL(facts.tgp, 0); /* shared with the processor: unknown */
    CU_ASSERT_STRING_EQUAL(facts.vram_type, "LPDDR5X");
}

static void card_of_a_driver_without_figures_has_those_of_the_table(void)
{
    struct tree tree;
    struct probe probe;
    tree_make(&tree);
    tree_amd_card(&tree);
    tree_delete(&tree, CARD "/hwmon/hwmon7/power1_cap_default");
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "amdgpu", tree.root), 0);
    CU_ASSERT_EQUAL(probe.devices[0].tgp, 355);
    CU_ASSERT_STRING_EQUAL(probe.devices[0].name, "AMD Radeon RX 7900 XTX");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_discover(&probe), 1);
    CU_ASSERT_EQUAL(probe.devices[0].tgp, 355); /* awake, the driver had none to tell */
    CU_ASSERT_STRING_EQUAL(probe.devices[0].vram_type, "GDDR6");
    probe_stop(&probe);
    tree_remove(&tree);
}

TESTS({"revision_tells_cards_of_one_id_apart", revision_tells_cards_of_one_id_apart},
      {"name_tells_them_apart_where_the_revision_does_not", name_tells_them_apart_where_the_revision_does_not},
      {"no_answer_rather_than_a_wrong_one", no_answer_rather_than_a_wrong_one},
      {"id_of_one_card_needs_neither", id_of_one_card_needs_neither},
      {"only_what_is_unknown_is_filled", only_what_is_unknown_is_filled},
      {"card_of_a_driver_without_figures_has_those_of_the_table", card_of_a_driver_without_figures_has_those_of_the_table})
