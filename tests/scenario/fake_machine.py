"""A machine made of files and of tests/fakes/drm_shim.so: the real programs, with the real libdrm in them, see GPUs that are not there.

    machine = Machine(folder)
    gpu = machine.gpu("0000:03:00.0", render=128, card=1, files={...}, hwmon={...}, facts=["memory vram 100 50", ...])
    env = machine.env(os.environ)          # for every process that is to see it
    machine.opened("renderD128")           # which processes opened it so far

Files of a GPU are changed by gpu.write, gpu.remove; it is unplugged by gpu.plug(False), or by a signal where it is hotplug.
"""
import os
import pathlib

import harness

SHIM = harness.BIN / "tests/drm_shim.so"
FUSION = 1  # AMDGPU_IDS_FLAGS_FUSION

# What every awake card of the driver amdgpu has that these tests are not about.
COMMON = {
    "class": "0x030000\n", "vendor": "0x1002\n", "subsystem_vendor": "0x1eae\n", "subsystem_device": "0x7901\n",
    "power/runtime_status": "active\n", "power/control": "auto\n", "power/autosuspend_delay_ms": "5000\n",
}


def memory_files(vram, visible, gtt):
    """mem_info_ files of (total, used) pairs."""
    return {"mem_info_%s_%s" % (name, part): "%d\n" % value
            for name, pair in (("vram", vram), ("vis_vram", visible), ("gtt", gtt)) for part, value in zip(("total", "used"), pair)}


def memory_facts(vram, visible, gtt):
    return ["memory %s %d %d" % (name, *pair) for name, pair in (("vram", vram), ("visible", visible), ("gtt", gtt))]


class Gpu:
    def __init__(self, machine, index, name, driver, render, card, folder, facts):
        self.machine, self.index, self.name, self.driver = machine, index, name, driver
        self.render, self.card, self.folder, self.facts = render, card, folder, facts

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def remove(self, name):
        (self.folder / name).unlink()

    def plug(self, here):
        with open(self.machine.control, "r+b") as f:
            f.seek(self.index)
            f.write(b"1" if here else b"0")

    def plugged(self):
        return self.machine.control.read_bytes()[self.index:self.index + 1] == b"1"


class Machine:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.root = self.folder / "root"
        self.log, self.control = self.folder / "shim.log", self.folder / "plugged"
        self.description = self.folder / "description"
        self.gpus, self.faults = [], []
        for name in ("sys/bus/pci/devices", "sys/class/drm", "sys/dev/char", "sys/devices", "sys/module/amdgpu", "dev/dri", "proc"):
            (self.root / name).mkdir(parents=True)
        (self.root / "proc/meminfo").write_text("MemTotal:       65536000 kB\nMemFree: 1000 kB\nMemAvailable:   32768000 kB\n")
        self.log.touch()
        self.control.write_bytes(b"1" * 4096)

    def _link(self, name, target):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(target, path.parent))

    def _node(self, device, name, minor):
        place = device / "drm" / name
        place.mkdir(parents=True)
        (place / "dev").write_text("226:%d\n" % minor)
        (place / "uevent").write_text("MAJOR=226\nMINOR=%d\nDEVNAME=dri/%s\nDEVTYPE=drm_minor\n" % (minor, name))
        # A link of sysfs always ends in the name of what it leads to.
        (place / "device").symlink_to(os.path.join(os.path.relpath(device.parent, place), device.name))
        (place / "subsystem").symlink_to(os.path.relpath(self.root / "sys/class/drm", place))
        self._link("sys/class/drm/" + name, place)
        self._link("sys/dev/char/226:%d" % minor, place)
        (self.root / "dev/dri" / name).touch()

    def gpu(self, name, driver="amdgpu", render=128, card=1, device=0x744c, revision=0xc8, files=None, hwmon=None, facts=(),
            platform=False):
        """A GPU on the PCI bus, or a platform device with nodes of its own, such as a partition."""
        folder = self.root / ("sys/devices/platform" if platform else "sys/devices/pci0000:00") / name
        folder.mkdir(parents=True)
        bus = "platform" if platform else "pci"
        gpu = Gpu(self, len(self.gpus), name, driver, render, card, folder, list(facts))
        self.gpus.append(gpu)
        (self.root / "sys/bus" / bus / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        self._link("sys/bus/%s/devices/%s" % (bus, name), folder)
        if not platform:  # partitions are not bound to a driver (amdgpu_xcp_drv.c)
            (folder / "driver").symlink_to(os.path.relpath(self.root / "sys/bus" / bus / "drivers" / driver, folder))
        (folder / "subsystem").symlink_to(os.path.relpath(self.root / "sys/bus" / bus, folder))
        if platform:
            content = {"uevent": "MODALIAS=platform:%s\n" % name.split(".")[0]}
        else:
            content = dict(COMMON, device="0x%04x\n" % device, revision="0x%02x\n" % revision,
                           uevent="DRIVER=%s\nPCI_CLASS=30000\nPCI_ID=1002:%04X\nPCI_SUBSYS_ID=1EAE:7901\nPCI_SLOT_NAME=%s\n"
                                  % (driver, device, name))
        content.update(files or {})
        content.update(("hwmon/hwmon%d/%s" % (gpu.index, n), t) for n, t in (hwmon or {}).items())
        for file, text in content.items():
            gpu.write(file, text)
        if hwmon:
            place = folder / ("hwmon/hwmon%d" % gpu.index)
            gpu.write("hwmon/hwmon%d/name" % gpu.index, driver + "\n")
            (place / "uevent").touch()
            (place / "device").symlink_to(os.path.join("../../..", name))
            (place / "subsystem").symlink_to(os.path.relpath(self.root / "sys/class/hwmon", place))
            self._link("sys/class/hwmon/hwmon%d" % gpu.index, place)
        self._node(folder, "card%d" % card, card)
        self._node(folder, "renderD%d" % render, render)
        gpu.facts[:0] = ["info device 0x%x" % device, "info revision 0x%x" % revision]
        return gpu

    def fault(self, kind, part, first=1, last=0, error=0, ms=0, request=""):
        self.faults.append("fault %s %s %d %d %d %d %s" % (kind, part, first, last, error, ms, request))

    def env(self, base):
        """Writes the description, and returns the environment of a process that sees this machine."""
        lines = ["root %s" % self.root, "map /sys", "map /dev/dri", "map /proc/meminfo", "log %s" % self.log,
                 "control %s" % self.control, *self.faults]
        for gpu in self.gpus:
            lines += ["gpu %s %s %d %d" % (gpu.name, gpu.driver, gpu.render, gpu.card), *gpu.facts]
        self.description.write_text("\n".join(lines) + "\n")
        asan = base.get("ASAN_OPTIONS", "")
        return dict(base, LD_PRELOAD=str(SHIM), GPUTAP_DRM_SHIM=str(self.description),
                    ASAN_OPTIONS=asan + (":" if asan else "") + "verify_asan_link_order=0")

    def opened(self, part):
        """Lines of the log that tell of a path with that part being opened."""
        return [line for line in self.log.read_text().splitlines() if " open " in line and part in line.split()[2]]

    def requests(self, part):
        """REQUESTs sent to nodes whose path contains that part."""
        return [line.split()[3] for line in self.log.read_text().splitlines() if " ioctl " in line and part in line.split()[2]]
