/* Which devices count as displays, and what the ground floor knows of them. */
#include <errno.h>
#include <math.h>

#include "broker/providers/hwmon.h"
#include "probe.h"
#include "tests/unit/check.h"
#include "tree.h"

static struct tree tree;
static struct probe probe;

static void pci(const char *slot, const char *class_code, const char *vendor, const char *device)
{
    char path[256], target[256];
    (void)snprintf(path, sizeof path, "/sys/devices/pci0000:00/%s/class", slot);
    tree_write(&tree, path, class_code);
    (void)snprintf(path, sizeof path, "/sys/devices/pci0000:00/%s/vendor", slot);
    tree_write(&tree, path, vendor);
    (void)snprintf(path, sizeof path, "/sys/devices/pci0000:00/%s/device", slot);
    tree_write(&tree, path, device);
    (void)snprintf(path, sizeof path, "/sys/devices/pci0000:00/%s/uevent", slot);
    tree_write(&tree, path, "MODALIAS=x\n");
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", slot);
    (void)snprintf(target, sizeof target, "../../../devices/pci0000:00/%s", slot);
    tree_link(&tree, path, target);
}

static void run(int count)
{
    CU_ASSERT_EQUAL_FATAL(probe_start(&probe, "drm", tree.root), 0);
    CU_ASSERT_EQUAL_FATAL(probe.count, count);
}

static void end(void)
{
    probe_stop(&probe);
    CU_ASSERT_EQUAL(fault_io_open_now(&probe.fault), 0);
    tree_remove(&tree);
}

static void only_gpus_are_displays(void)
{
    tree_make(&tree);
    pci("0000:83:00.0", "0x038000\n", "0x1002\n", "0x7550\n");
    pci("0000:01:00.0", "0x030000\n", "0x1a03\n", "0x2000\n"); /* ASPEED: a BMC */
    pci("0000:02:00.0", "0x030000\n", "0x102b\n", "0x0538\n"); /* Matrox: a BMC */
    pci("0000:00:02.0", "0x030000\n", "0x1234\n", "0x1111\n"); /* QEMU */
    pci("0000:00:03.0", "0x020000\n", "0x8086\n", "0x1533\n"); /* network */
    pci("0000:00:04.0", "0x120000\n", "0x8086\n", "0x7d1d\n"); /* an NPU */
    pci("0000:03:00.0", "0x120000\n", "0x1002\n", "0x74a1\n"); /* an Instinct module without display engine */
    pci("0000:43:00.0", "0x030200\n", "0x10de\n", "0x2684\n");
    pci("0000:c7:00.0", "0x030000\n", "0x8086\n", "0xe20b\n");
    run(4);
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "0000:03:00.0"); /* T13: by place on the bus, not by card number */
    CU_ASSERT_STRING_EQUAL(probe.devices[1].id, "0000:43:00.0");
    CU_ASSERT_STRING_EQUAL(probe.devices[2].id, "0000:83:00.0");
    CU_ASSERT_STRING_EQUAL(probe.devices[3].id, "0000:c7:00.0");
    CU_ASSERT_STRING_EQUAL(probe.devices[1].vendor, "nvidia");
    CU_ASSERT_STRING_EQUAL(probe.devices[1].name, "NVIDIA GeForce RTX 4090");
    CU_ASSERT_STRING_EQUAL(probe.devices[3].vendor, "intel");
    CU_ASSERT_STRING_EQUAL(probe.devices[3].driver, "");
    CU_ASSERT_EQUAL(probe_discover(&probe), -EAGAIN);
    end();
}

static void gpus_of_a_soc_have_a_platform_name(void)
{
    tree_make(&tree);
    tree_write(&tree, "/sys/devices/platform/fde60000.gpu/uevent", "DRIVER=panfrost\n");
    tree_link(&tree, "/sys/devices/platform/fde60000.gpu/subsystem", "../../../bus/platform");
    tree_link(&tree, "/sys/devices/platform/fde60000.gpu/driver", "../../../bus/platform/drivers/panfrost");
    tree_write(&tree, "/sys/devices/platform/fde60000.gpu/drm/renderD128/dev", "226:128\n");
    tree_link(&tree, "/sys/devices/platform/fde60000.gpu/drm/card0/device", "../../../fde60000.gpu");
    tree_link(&tree, "/sys/class/drm/card0", "../../devices/platform/fde60000.gpu/drm/card0");
    /* A screen without a renderer, and a partition of a PCI device. */
    tree_write(&tree, "/sys/devices/platform/simple-framebuffer.0/uevent", "DRIVER=simple-framebuffer\n");
    tree_link(&tree, "/sys/devices/platform/simple-framebuffer.0/subsystem", "../../../bus/platform");
    tree_link(&tree, "/sys/devices/platform/simple-framebuffer.0/drm/card1/device", "../../../simple-framebuffer.0");
    tree_link(&tree, "/sys/class/drm/card1", "../../devices/platform/simple-framebuffer.0/drm/card1");
    tree_write(&tree, "/sys/devices/platform/amdgpu_xcp.2/drm/renderD130/dev", "226:130\n");
    tree_link(&tree, "/sys/devices/platform/amdgpu_xcp.2/subsystem", "../../../bus/platform");
    tree_link(&tree, "/sys/devices/platform/amdgpu_xcp.2/drm/card2/device", "../../../amdgpu_xcp.2");
    tree_link(&tree, "/sys/class/drm/card2", "../../devices/platform/amdgpu_xcp.2/drm/card2");
    run(1);
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "platform:fde60000.gpu");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].pci, "");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].driver, "panfrost");
    CU_ASSERT_STRING_EQUAL(probe.devices[0].name, "panfrost GPU (fde60000.gpu)");
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe.result, 0);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_PCIE_SPEED));
    end();
}

/* xe: no temp1, no power1; the sensors are known by their labels. */
static void labels_and_not_numbers_name_a_sensor(void)
{
    tree_make(&tree);
    pci("0000:03:00.0", "0x030000\n", "0x8086\n", "0xe20b\n");
    const char *folder = "/sys/devices/pci0000:00/0000:03:00.0/hwmon/hwmon3/";
    static const char *const files[][2] = {{"temp2_label", "pkg\n"},   {"temp2_input", "48000\n"}, {"temp2_crit", "100000\n"},
                                           {"temp3_label", "vram\n"},  {"temp3_input", "54000\n"}, {"temp6_label", "vram_ch_0\n"},
                                           {"temp6_input", "56000\n"}, {"power2_label", "pkg\n"},  {"power2_cap", "190000000\n"},
                                           {"fan1_input", "1350\n"},   {"in0_label", "card\n"},    {"in0_input", "900\n"}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[256];
        (void)snprintf(path, sizeof path, "%s%s", folder, files[i][0]);
        tree_write(&tree, path, files[i][1]);
    }
    run(1);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_EDGE), 48);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_TEMPERATURE_MEMORY), 54);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_POWER_CAP), 190);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_FAN_RPM), 1350);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_POWER_NOW));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_VOLTAGE_GFX)); /* not the chip's */
    CU_ASSERT_EQUAL(probe_discover(&probe), 1);
    CU_ASSERT_EQUAL(probe.devices[0].limits[LIMIT_EDGE_CRITICAL], 100);
    end();
}

static void a_link_that_is_down_is_unknown(void)
{
    tree_make(&tree);
    pci("0000:03:00.0", "0x030000\n", "0x10de\n", "0x2704\n");
    tree_write(&tree, "/sys/devices/pci0000:00/0000:03:00.0/current_link_speed", "Unknown\n");
    tree_write(&tree, "/sys/devices/pci0000:00/0000:03:00.0/current_link_width", "255\n");
    run(1);
    probe_sample(&probe, 0);
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_PCIE_SPEED));
    CU_ASSERT_FALSE(probe_known(&probe, METRIC_PCIE_WIDTH));
    tree_write(&tree, "/sys/devices/pci0000:00/0000:03:00.0/current_link_speed", "16.0 GT/s PCIe\n");
    tree_write(&tree, "/sys/devices/pci0000:00/0000:03:00.0/current_link_width", "16\n");
    probe_forward_ms(&probe, 1000);
    probe_sample(&probe, 0);
    CU_ASSERT_EQUAL(probe_f64(&probe, METRIC_PCIE_SPEED), 16);
    end();
}

static void devices_come_and_go(void)
{
    tree_make(&tree);
    pci("0000:03:00.0", "0x030000\n", "0x10de\n", "0x2704\n");
    run(1);
    pci("0000:01:00.0", "0x030000\n", "0x8086\n", "0x56a5\n");
    CU_ASSERT_EQUAL(probe_discover(&probe), 2);
    CU_ASSERT_STRING_EQUAL(probe.devices[0].id, "0000:01:00.0");
    CU_ASSERT_EQUAL(probe.devices[1].generation, 1);
    tree_delete(&tree, "/sys/bus/pci/devices/0000:03:00.0");
    CU_ASSERT_EQUAL(probe_discover(&probe), 1);
    pci("0000:03:00.0", "0x030000\n", "0x10de\n", "0x2704\n");
    CU_ASSERT_EQUAL(probe_discover(&probe), 2);
    CU_ASSERT_EQUAL(probe.devices[0].generation, 1);
    CU_ASSERT_EQUAL(probe.devices[1].generation, 2);
    tree_link(&tree, "/sys/devices/pci0000:00/0000:03:00.0/driver", "../../bus/pci/drivers/vfio-pci"); /* changes hands */
    CU_ASSERT_EQUAL(probe_discover(&probe), 2);
    CU_ASSERT_STRING_EQUAL(probe.devices[1].driver, "vfio-pci");
    end();
}

static void an_empty_machine_has_no_display(void)
{
    tree_make(&tree);
    CU_ASSERT_EQUAL(probe_start(&probe, "drm", tree.root), -ENODEV);
    CU_ASSERT(probe.context.message[0] != '\0');
    end();
}

TESTS({"only_gpus_are_displays", only_gpus_are_displays},
      {"gpus_of_a_soc_have_a_platform_name", gpus_of_a_soc_have_a_platform_name},
      {"labels_and_not_numbers_name_a_sensor", labels_and_not_numbers_name_a_sensor},
      {"a_link_that_is_down_is_unknown", a_link_that_is_down_is_unknown}, {"devices_come_and_go", devices_come_and_go},
      {"an_empty_machine_has_no_display", an_empty_machine_has_no_display})
