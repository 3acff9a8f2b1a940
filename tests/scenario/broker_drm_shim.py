"""gputapd and the real libdrm on GPUs that are not there (tests/fakes/drm_shim.c): what only the driver's requests tell, partitions, and
devices that are pulled, sleep or hang."""
import errno
import os
import signal
import subprocess
import time
import unittest

import fake_machine
import harness
from fake_machine import FUSION, Machine, memory_facts, memory_files
from harness import wait_for
from segment import Segment

GIB = 1 << 30
VRAM, VISIBLE, GTT = (16 * GIB, 3 * GIB), (16 * GIB, 2 * GIB), (32 * GIB, GIB)
NAVI = ["info compute_units 80", "info family 143", "info external_rev 40", "info vram_type 9", "info vram_bits 256"]
STRIX = ["info compute_units 40", "info family 150", "info external_rev 193", "info flags %d" % FUSION, "info vram_type 12",
         "info vram_bits 256"]


@unittest.skipUnless(fake_machine.SHIM.exists(), "no shim for this system")
class Shim(harness.Scenario):
    def setUp(self):
        super().setUp()
        self.machine = Machine(self.folder)

    def navi(self, name="0000:03:00.0", render=128, card=1, files=None, facts=(), hwmon=None):
        content = dict({"gpu_busy_percent": "42\n"}, **(memory_files(VRAM, VISIBLE, GTT) if files is None else files))
        return self.machine.gpu(name, render=render, card=card, device=0x73bf, revision=0xc0, files=content,
                                hwmon={"temp1_label": "edge\n", "temp1_input": "51000\n"} if hwmon is None else hwmon,
                                facts=[*NAVI, *memory_facts(VRAM, VISIBLE, GTT), *facts])

    def broker_on_machine(self, *args):
        env = self.machine.env(self.env)
        broker = self.start_broker("--period", "50", *args, env=env)
        cards = {g.name for g in self.machine.gpus if "xcp" not in g.name}
        wait_for(lambda: cards <= {d["id"] for d in self.segment().devices()}, what="devices")
        return broker

    def segment(self):
        return Segment(self.run_dir / "t" / "telemetry")

    def at(self, device, name):
        return (self.segment().snapshot(device) or {}).get(name)

    def wait_value(self, device, name, value):
        wait_for(lambda: self.at(device, name) == value, 20, what="%s = %s of device %d, not %s" % (name, value, device, self.at(device, name)))

    def assert_ticks_on(self, device, ticks=10):
        since = self.segment().snapshot(device)["mono_ns"]
        wait_for(lambda: self.segment().snapshot(device)["mono_ns"] > since + ticks * 50e6, 20, what="ticks of device %d" % device)

    def libdrm(self):
        """What the real libdrm finds: the words of each line of drm_list_tool, sorted."""
        out = subprocess.run([str(harness.BIN / "tests/drm_list_tool")], env=self.machine.env(self.env), capture_output=True, text=True,
                             timeout=30)
        self.assertEqual((out.returncode, out.stderr), (0, ""))
        return sorted(line.split(maxsplit=3) for line in out.stdout.splitlines())

    def test_libdrm_tells_two_cards_apart_and_misses_one_that_is_pulled(self):
        self.navi()
        other = self.machine.gpu("0000:c5:00.0", render=129, card=2, device=0x1586, revision=0xc1,
                                 facts=[*STRIX, *memory_facts((GIB // 2, 0), (GIB // 2, 0), (24 * GIB, 0))])
        lines = self.libdrm()
        self.assertEqual([w[1:4] for w in lines if w[0] == "device"],
                         [["0000:03:00.0", "/dev/dri/card1", "/dev/dri/renderD128"], ["0000:c5:00.0", "/dev/dri/card2", "/dev/dri/renderD129"]])
        self.assertEqual(sorted(w[2] for w in lines if w[0] == "amdgpu"), ["0", "1"])  # two handles
        self.assertEqual([w[1:] for w in lines if w[0] == "memory"], [["renderD128", str(16 * GIB), str(32 * GIB)],
                                                                      ["renderD129", str(GIB // 2), str(24 * GIB)]])
        other.plug(False)
        self.assertEqual([w[1] for w in self.libdrm() if w[0] == "device"], ["0000:03:00.0"])

    def test_libdrm_asks_intel_cards_for_their_memory(self):
        self.machine.gpu("0000:04:00.0", driver="i915", render=130, card=3, device=0x56a5,
                         facts=["region 0 0 %d %d 0 0" % (32 * GIB, 31 * GIB), "region 1 0 %d %d %d 0" % (6 * GIB, 5 * GIB, 6 * GIB)])
        self.machine.gpu("0000:05:00.0", driver="xe", render=131, card=4, device=0xe20b,
                         facts=["region 0 0 %d %d 0 0" % (32 * GIB, 30 * GIB), "region 1 1 %d %d 0 0" % (12 * GIB, 5 * GIB)])
        self.machine.gpu("0000:06:00.0", driver="i915", render=132, card=5, device=0x9b41)
        lines = self.libdrm()
        self.assertEqual([w[1:] for w in lines if w[0] == "driver"], [["renderD130", "i915"], ["renderD131", "xe"], ["renderD132", "i915"]])
        self.assertEqual([w[1:] for w in lines if w[0] == "region"],
                         [["renderD130", "0", "0 %d %d" % (32 * GIB, GIB)], ["renderD130", "1", "0 %d %d" % (6 * GIB, GIB)],
                          ["renderD131", "0", "0 %d %d" % (32 * GIB, 2 * GIB)], ["renderD131", "1", "1 %d %d" % (12 * GIB, 7 * GIB)],
                          ["renderD132", "none", "-22"]])

    def test_the_driver_tells_names_kinds_and_units(self):
        self.navi()
        self.machine.gpu("0000:c5:00.0", render=129, card=2, device=0x1586, revision=0xc1, facts=[*STRIX, *memory_facts(
            (GIB // 2, GIB // 4), (GIB // 2, GIB // 4), (24 * GIB, 3 * GIB))])
        self.broker_on_machine()
        wait_for(lambda: [d["pool"] for d in self.segment().devices()] == ["discrete", "unified"], 20, what="pools")
        wait_for(lambda: self.at(1, "unified_total") is not None, 20, what="unified pair")
        first, second = self.segment().device(0), self.segment().device(1)
        self.assertEqual((first["id"], second["id"]), ("0000:03:00.0", "0000:c5:00.0"))
        self.assertEqual([(d["compute_units"], d["vram_type"], d["vram_bus_bits"]) for d in (first, second)],
                         [(80, "GDDR6", 256), (40, "LPDDR5", 256)])
        if os.path.exists("/usr/share/libdrm/amdgpu.ids"):
            self.assertEqual(first["name"], "AMD Radeon RX 6900 XT")

    def test_memory_without_files_comes_from_the_driver_for_each_card_its_own(self):
        self.navi(files={})
        other = [*STRIX, *memory_facts((GIB // 2, GIB // 4), (GIB // 2, GIB // 4), (24 * GIB, 3 * GIB)), "sensor 3 43000",
                 "sensor 4 12", "sensor 5 9", "sensor 1 1000"]
        self.machine.gpu("0000:c5:00.0", render=129, card=2, device=0x1586, revision=0xc1, facts=other)
        self.broker_on_machine()
        for device, vram, gtt in ((0, VRAM, GTT), (1, (GIB // 2, GIB // 4), (24 * GIB, 3 * GIB))):
            self.wait_value(device, "vram_total", vram[0])
            self.wait_value(device, "vram_used", vram[1])
            self.wait_value(device, "gtt_total", gtt[0])
            self.wait_value(device, "gtt_used", gtt[1])
        self.wait_value(1, "unified_total", GIB // 2 + 24 * GIB)
        self.wait_value(1, "unified_used", GIB // 4 + 3 * GIB)
        # Its sensors, too; the other card has files for them.
        self.wait_value(1, "temperature_edge", 43)
        self.wait_value(1, "gfx_busy", 12)
        self.wait_value(1, "power_average", 9)
        self.wait_value(1, "gfx_clock", 1000)
        self.wait_value(0, "temperature_edge", 51)
        self.assertNotIn("sensor:3", self.machine.requests("renderD128"))
        self.assertIsNone(self.at(1, "voltage_gfx"))

    def test_partitions_of_a_card_are_not_more_cards(self):
        self.navi()
        for i in range(3):
            self.machine.gpu("amdgpu_xcp.%d" % i, render=129 + i, card=2 + i, platform=True, facts=NAVI)
        self.broker_on_machine()
        self.wait_value(0, "gfx_busy", 42)
        ids = [d["id"] for d in self.segment().devices()]
        self.assertEqual(ids[0], "0000:03:00.0")
        self.assertEqual([i for i in ids if "xcp" in i], [])
        self.assertEqual(self.at(0, "vram_used"), VRAM[1])

    def test_a_card_that_is_pulled_and_put_back_is_a_new_generation_and_costs_the_others_nothing(self):
        gone = self.navi(facts=["hotplug"])
        self.navi("0000:83:00.0", render=129, card=2)
        self.broker_on_machine()
        self.wait_value(0, "gfx_busy", 42)
        before = self.segment().snapshot(0)["generation"]
        pid = int(self.machine.opened("renderD128")[0].split()[0])
        os.kill(pid, signal.SIGUSR1)
        wait_for(lambda: not gone.plugged(), what="unplugged")
        wait_for(lambda: self.segment().device_count == 0 or self.segment().device(0)["state"] == "gone" or
                 self.at(0, "gfx_busy") is None, 20, what="gone")
        self.assert_ticks_on(1)
        self.assertEqual(self.at(1, "gfx_busy"), 42)
        pid = int(self.machine.opened("gpu_busy_percent")[-1].split()[0])
        os.kill(pid, signal.SIGUSR1)
        wait_for(gone.plugged, what="plugged in")
        wait_for(lambda: self.at(0, "gfx_busy") == 42 and self.segment().snapshot(0)["generation"] > before, 20, what="back")
        self.assert_ticks_on(0)
        self.assertEqual(self.at(1, "gfx_busy"), 42)

    def test_nodes_of_a_sleeping_card_are_never_opened(self):
        sleeper = self.navi(files={})
        sleeper.write("power/runtime_status", "suspended\n")
        self.navi("0000:83:00.0", render=129, card=2)
        self.broker_on_machine()
        self.wait_value(1, "gfx_busy", 42)
        self.assert_ticks_on(1, 30)
        for waking in ("renderD128", "card1", "0000:03:00.0/hwmon", "0000:03:00.0/gpu_busy"):
            self.assertEqual([line for line in self.machine.opened(waking) if "/sys/class/drm" not in line and "/drm/" not in line], [])
        self.assertEqual(self.segment().device(0)["state"], "asleep")
        # When it wakes up by itself it is read, so the trace above says something.
        sleeper.write("power/runtime_status", "active\n")
        self.wait_value(0, "vram_used", VRAM[1])
        self.assertTrue(self.machine.opened("/dev/dri/renderD128"))

    def test_a_request_that_hangs_costs_its_own_card_only(self):
        self.navi(files={})
        self.navi("0000:83:00.0", render=129, card=2)
        self.machine.fault("ioctl", "renderD128", ms=5000)
        self.broker_on_machine()
        self.wait_value(1, "gfx_busy", 42)
        wait_for(lambda: self.segment().device(0)["state"] == "hung", 20, what="hung")
        self.assert_ticks_on(1, 40)
        self.assertEqual(self.segment().device(1)["state"], "ok")

    def test_a_device_of_which_nobody_knows_a_thing_does_not_grow_stale(self):
        self.navi()
        env = self.machine.env(self.env)
        for period in (50, 1000):
            broker = self.start_broker("--period", str(period), "--no-provider", "amdgpu", "--no-provider", "processes", env=env)
            wait_for(lambda: self.segment().state == "live" and self.segment().device_count == 1, what="device")
            wait_for(lambda: self.segment().device(0)["reasons"]["gfx_busy"] == "not supported", 20, what="sample")
            since, seen = self.segment().tick, []
            while self.segment().tick < since + 5000 // period:
                seen.append(self.segment().device(0)["reasons"]["gfx_busy"])
                time.sleep(0.05)
            # A machine under load may be late now and then.
            self.assertGreater(seen.count("not supported"), 0.8 * len(seen), seen)
            broker.stop()

    def test_a_file_that_fails_once_is_known_again_at_the_next_read(self):
        self.navi()
        self.machine.fault("read", "0000:03:00.0/mem_info_vram_used", first=5, last=60, error=errno.EIO)
        self.broker_on_machine()
        self.wait_value(0, "gfx_busy", 42)
        wait_for(lambda: self.segment().device(0)["reasons"]["vram_used"] == "error", 20, what="failing")
        self.assertEqual(self.at(0, "vram_total"), VRAM[0])
        self.wait_value(0, "vram_used", VRAM[1])


if __name__ == "__main__":
    harness.main()
