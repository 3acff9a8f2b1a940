#include "tree_intel.h"

#include <stdio.h>

struct file {
    const char *name, *text;
};

static void write_files(const struct tree *tree, const char *folder, const struct file *files, size_t count)
{
    char path[512];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        tree_write(tree, path, files[i].text);
    }
}
#define WRITE(tree, folder, files) write_files(tree, folder, files, sizeof files / sizeof files[0])

/* What the kernel shows of any card on that board. */
static void write_board(const struct tree *tree, const char *driver)
{
    static const struct file files[] = {
        {"class", "0x030000\n"},
        {"vendor", "0x8086\n"},
        {"power/runtime_status", "active\n"},
        {"power/control", "auto\n"},
        {"power/autosuspend_delay_ms", "5000\n"},
        {"current_link_speed", "2.5 GT/s PCIe\n"},
        {"current_link_width", "1\n"},
        {"drm/renderD128/dev", "226:128\n"},
        {"drm/card1/dev", "226:1\n"},
    };
    static const struct file bridges[] = {
        {"../vendor", "0x8086\n"},
        {"../current_link_speed", "32.0 GT/s PCIe\n"},
        {"../current_link_width", "16\n"},
        {"vendor", "0x8086\n"},
        {"current_link_speed", "16.0 GT/s PCIe\n"},
        {"current_link_width", "8\n"},
        {"0000:02:01.0/vendor", "0x8086\n"},
        {"0000:02:01.0/current_link_speed", "2.5 GT/s PCIe\n"},
        {"0000:02:01.0/current_link_width", "1\n"},
    };
    char target[64];
    WRITE(tree, XE_BRIDGE, bridges);
    WRITE(tree, XE_CARD, files);
    tree_write(tree, "/dev/dri/renderD128", "");
    (void)snprintf(target, sizeof target, "../../../../../../bus/pci/drivers/%.16s", driver);
    tree_link(tree, XE_CARD "/driver", target);
    tree_link(tree, "/sys/bus/pci/devices/0000:03:00.0",
              "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0");
    tree_link(tree, "/sys/class/drm/card1",
              "../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0/drm/card1");
}

void tree_xe_card(const struct tree *tree)
{
    static const struct file files[] = {
        {"device", "0xe20b\n"},
        {"subsystem_vendor", "0x8086\n"},
        {"subsystem_device", "0x1100\n"},
        {"revision", "0x00\n"},
        {"uevent", "DRIVER=xe\nPCI_CLASS=30000\nPCI_ID=8086:E20B\nPCI_SUBSYS_ID=8086:1100\nPCI_SLOT_NAME=0000:03:00.0\n"},
        {"hwmon/hwmon4/name", "xe\n"},
        {"hwmon/hwmon4/energy1_label", "card\n"},
        {"hwmon/hwmon4/energy1_input", "11031745544\n"},
        {"hwmon/hwmon4/energy2_label", "pkg\n"},
        {"hwmon/hwmon4/energy2_input", "8000000000\n"},
        {"hwmon/hwmon4/power1_label", "card\n"},
        {"hwmon/hwmon4/power1_max", "190000000\n"},
        {"hwmon/hwmon4/power1_crit", "380000000\n"},
        {"hwmon/hwmon4/temp2_label", "pkg\n"},
        {"hwmon/hwmon4/temp2_input", "61000\n"},
        {"hwmon/hwmon4/temp2_crit", "105000\n"},
        {"hwmon/hwmon4/temp3_label", "vram\n"},
        {"hwmon/hwmon4/temp3_input", "72000\n"},
        {"hwmon/hwmon4/temp4_label", "mctrl\n"},
        {"hwmon/hwmon4/temp4_input", "58000\n"},
        {"hwmon/hwmon4/temp6_label", "vram_ch_0\n"},
        {"hwmon/hwmon4/temp6_input", "70000\n"},
        {"hwmon/hwmon4/fan1_input", "0\n"},
        {"hwmon/hwmon4/fan2_input", "1350\n"},
        {"hwmon/hwmon4/fan3_input", "1280\n"},
        {"tile0/gt0/freq0/act_freq", "2400\n"},
        {"tile0/gt0/freq0/cur_freq", "2850\n"},
        {"tile0/gt0/freq0/max_freq", "2800\n"},
        {"tile0/gt0/freq0/rp0_freq", "2850\n"},
        {"tile0/gt0/freq0/throttle/status", "0\n"},
        {"tile0/gt0/freq0/throttle/reason_pl1", "0\n"},
        {"tile0/gt0/freq0/throttle/reason_pl2", "0\n"},
        {"tile0/gt0/freq0/throttle/reason_pl4", "0\n"},
        {"tile0/gt0/freq0/throttle/reason_thermal", "0\n"},
        {"tile0/gt0/freq0/throttle/reason_prochot", "0\n"},
        {"tile0/gt0/freq0/throttle/reason_vr_tdc", "0\n"},
        {"tile0/gt0/gtidle/name", "gt0-rc\n"},
        {"tile0/gt0/gtidle/idle_residency_ms", "848095\n"},
        {"tile0/gt0/engines/rcs/job_timeout_ms", "5000\n"},
        {"tile0/gt1/freq0/act_freq", "0\n"},
        {"tile0/gt1/freq0/cur_freq", "1200\n"},
        {"tile0/gt1/freq0/rp0_freq", "1500\n"},
        {"tile0/gt1/freq0/throttle/status", "0\n"},
        {"tile0/gt1/gtidle/name", "gt1-mc\n"},
        {"tile0/gt1/gtidle/idle_residency_ms", "1277960\n"},
        {"tile0/gt1/engines/vcs/job_timeout_ms", "5000\n"},
    };
    write_board(tree, "xe");
    WRITE(tree, XE_CARD, files);
}

void tree_i915_card(const struct tree *tree)
{
    static const struct file files[] = {
        {"device", "0x56a5\n"},
        {"uevent", "DRIVER=i915\nPCI_CLASS=30000\nPCI_ID=8086:56A5\nPCI_SUBSYS_ID=1849:6004\nPCI_SLOT_NAME=0000:03:00.0\n"},
        {"hwmon/hwmon1/name", "i915\n"},
        {"hwmon/hwmon1/energy1_input", "25637161804\n"},
        {"hwmon/hwmon1/power1_max", "55000000\n"},
        {"hwmon/hwmon1/power1_rated_max", "0\n"},
        {"hwmon/hwmon1/in0_input", "603\n"},
        {"hwmon/hwmon1/temp1_input", "55000\n"},
        {"hwmon/hwmon1/fan1_input", "0\n"},
        {"drm/card1/gt_act_freq_mhz", "600\n"},
        {"drm/card1/gt_RP0_freq_mhz", "2450\n"},
        {"drm/card1/power/rc6_residency_ms", "6534\n"},
        {"drm/card1/gt/gt0/rps_act_freq_mhz", "1950\n"},
        {"drm/card1/gt/gt0/rps_cur_freq_mhz", "2450\n"},
        {"drm/card1/gt/gt0/punit_req_freq_mhz", "2450\n"},
        {"drm/card1/gt/gt0/rps_RP0_freq_mhz", "2450\n"},
        {"drm/card1/gt/gt0/rc6_residency_ms", "6534\n"},
        {"drm/card1/gt/gt0/throttle_reason_status", "0\n"},
        {"drm/card1/gt/gt0/throttle_reason_pl1", "0\n"},
        {"drm/card1/gt/gt0/throttle_reason_thermal", "0\n"},
        {"drm/card1/gt/gt0/throttle_reason_ratl", "0\n"},
    };
    write_board(tree, "i915");
    WRITE(tree, I915_CARD, files);
}

void tree_integrated(const struct tree *tree, const char *driver)
{
    static const struct file files[] = {
        {"class", "0x030000\n"},
        {"vendor", "0x8086\n"},
        {"device", "0x9a49\n"},
        {"uevent", "PCI_CLASS=30000\nPCI_SLOT_NAME=0000:00:02.0\n"},
        {"current_link_speed", "Unknown\n"},
        {"current_link_width", "0\n"},
        {"drm/card0/gt_act_freq_mhz", "1300\n"},
        {"drm/card0/gt_cur_freq_mhz", "1350\n"},
        {"drm/card0/gt_RP0_freq_mhz", "1350\n"},
        {"drm/renderD128/dev", "226:128\n"},
    };
    char target[64];
    WRITE(tree, INTEGRATED, files);
    tree_write(tree, "/dev/dri/renderD128", "");
    (void)snprintf(target, sizeof target, "../../../bus/pci/drivers/%.16s", driver);
    tree_link(tree, INTEGRATED "/driver", target);
    tree_link(tree, "/sys/bus/pci/devices/0000:00:02.0", "../../../devices/pci0000:00/0000:00:02.0");
    tree_link(tree, "/sys/class/drm/card0", "../../devices/pci0000:00/0000:00:02.0/drm/card0");
}
