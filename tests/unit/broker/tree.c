#include "tree.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(2);
}

void tree_make(struct tree *tree)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(tree->root, sizeof tree->root, "%s/gputap-tree-XXXXXX", base ? base : "/tmp");
    must(mkdtemp(tree->root) != NULL, "mkdtemp");
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *place)
{
    (void)facts, (void)type, (void)place;
    return remove(path);
}

void tree_remove(struct tree *tree) { (void)nftw(tree->root, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static void full_path(const struct tree *tree, const char *path, char out[1024])
{
    must((size_t)snprintf(out, 1024, "%s%s", tree->root, path) < 1024, "path");
}

static void make_folders(char *path)
{
    for (char *at = path + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            (void)mkdir(path, 0755);
            *at = '/';
        }
}

void tree_write_bytes(const struct tree *tree, const char *path, const void *bytes, size_t size)
{
    char full[1024];
    full_path(tree, path, full);
    make_folders(full);
    FILE *file = fopen(full, "w");
    must(file && fwrite(bytes, 1, size, file) == size, full);
    must(fclose(file) == 0, full);
}

void tree_write(const struct tree *tree, const char *path, const char *text) { tree_write_bytes(tree, path, text, strlen(text)); }

void tree_link(const struct tree *tree, const char *path, const char *target)
{
    char full[1024];
    full_path(tree, path, full);
    make_folders(full);
    (void)unlink(full);
    must(symlink(target, full) == 0, full);
}

void tree_delete(const struct tree *tree, const char *path)
{
    char full[1024];
    full_path(tree, path, full);
    must(nftw(full, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, full);
}

void tree_rename(const struct tree *tree, const char *from, const char *to)
{
    char a[1024], b[1024];
    full_path(tree, from, a);
    full_path(tree, to, b);
    must(rename(a, b) == 0, a);
}

bool tree_from_dump(const struct tree *tree, const char *dump)
{
    char command[1024];
    if (access(GPUTAP_SHARED "/tools/mkroot.py", R_OK) != 0)
        return false;
    (void)snprintf(command, sizeof command, "python3 '%s/tools/mkroot.py' '%s' '%s/fixtures/sysfs/%s' >/dev/null 2>&1",
                   GPUTAP_SHARED, tree->root, GPUTAP_SHARED, dump);
    return system(command) == 0;
}

void tree_amd_card(const struct tree *tree)
{
    static const struct {
        const char *name, *text;
    } files[] = {
        {"class", "0x030000\n"},
        {"vendor", "0x1002\n"},
        {"device", "0x744c\n"},
        {"subsystem_vendor", "0x1eae\n"},
        {"subsystem_device", "0x7901\n"},
        {"revision", "0xc8\n"},
        {"uevent", "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SUBSYS_ID=1EAE:7901\nPCI_SLOT_NAME=0000:03:00.0\n"},
        {"unique_id", "a1b2c3d4e5f60718\n"},
        {"power/runtime_status", "active\n"},
        {"power/control", "auto\n"},
        {"power/autosuspend_delay_ms", "5000\n"},
        {"mem_info_vram_total", "25753026560\n"},
        {"mem_info_vram_used", "1073741824\n"},
        {"mem_info_vis_vram_total", "25753026560\n"},
        {"mem_info_vis_vram_used", "1073741824\n"},
        {"mem_info_gtt_total", "33554432000\n"},
        {"mem_info_gtt_used", "67108864\n"},
        {"gpu_busy_percent", "42\n"},
        {"mem_busy_percent", "17\n"},
        {"vcn_busy_percent", "0\n"},
        {"pp_dpm_sclk", "0: 500Mhz \n1: 2304Mhz *\n2: 2482Mhz \n"},
        {"pp_dpm_mclk", "0: 96Mhz \n1: 1249Mhz *\n"},
        {"pp_dpm_socclk", "0: 500Mhz \n1: 1200Mhz *\n"},
        {"pp_dpm_vclk", "0: 1500Mhz *\n"},
        {"pp_dpm_pcie", "0: 2.5GT/s, x16 250Mhz \n1: 16.0GT/s, x16 1143Mhz *\n"},
        {"pcie_replay_count", "3\n"},
        {"current_link_speed", "32.0 GT/s PCIe\n"},
        {"current_link_width", "16\n"},
        {"hwmon/hwmon7/name", "amdgpu\n"},
        {"hwmon/hwmon7/temp1_label", "edge\n"},
        {"hwmon/hwmon7/temp1_input", "51000\n"},
        {"hwmon/hwmon7/temp1_crit", "100000\n"},
        {"hwmon/hwmon7/temp2_label", "junction\n"},
        {"hwmon/hwmon7/temp2_input", "66000\n"},
        {"hwmon/hwmon7/temp2_crit", "110000\n"},
        {"hwmon/hwmon7/temp3_label", "mem\n"},
        {"hwmon/hwmon7/temp3_input", "70000\n"},
        {"hwmon/hwmon7/temp3_crit", "108000\n"},
        {"hwmon/hwmon7/power1_label", "PPT\n"},
        {"hwmon/hwmon7/power1_average", "182000000\n"},
        {"hwmon/hwmon7/power1_input", "190000000\n"},
        {"hwmon/hwmon7/power1_cap", "303000000\n"},
        {"hwmon/hwmon7/power1_cap_default", "327000000\n"},
        {"hwmon/hwmon7/freq1_label", "sclk\n"},
        {"hwmon/hwmon7/freq1_input", "2310000000\n"},
        {"hwmon/hwmon7/freq2_label", "mclk\n"},
        {"hwmon/hwmon7/freq2_input", "1249000000\n"},
        {"hwmon/hwmon7/in0_label", "vddgfx\n"},
        {"hwmon/hwmon7/in0_input", "912\n"},
        {"hwmon/hwmon7/fan1_input", "1210\n"},
        {"hwmon/hwmon7/pwm1", "102\n"},
        {"hwmon/hwmon7/pwm1_max", "255\n"},
    };
    char path[512];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, CARD "/%s", files[i].name);
        tree_write(tree, path, files[i].text);
    }
    tree_write(tree, "/sys/devices/pci0000:00/0000:00:01.1/vendor", "0x1022\n");
    tree_write(tree, "/sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/vendor", "0x1002\n");
    tree_write(tree, "/sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/current_link_speed", "8.0 GT/s PCIe\n");
    tree_write(tree, "/sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/current_link_width", "4\n");
    tree_write(tree, "/sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/vendor", "0x1002\n");
    tree_write(tree, CARD "/drm/renderD128/dev", "226:128\n");
    tree_write(tree, CARD "/drm/card1/dev", "226:1\n");
    tree_write(tree, "/dev/dri/renderD128", ""); /* a node that nobody may open below a root */
    tree_link(tree, CARD "/driver", "../../../../../../bus/pci/drivers/amdgpu");
    tree_link(tree, "/sys/bus/pci/devices/0000:03:00.0",
              "../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0");
    tree_link(tree, "/sys/class/drm/card1",
              "../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0/drm/card1");
    tree_write(tree, "/proc/meminfo", "MemTotal:       65536000 kB\nMemAvailable:   32768000 kB\n");
}
