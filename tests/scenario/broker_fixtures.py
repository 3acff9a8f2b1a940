"""Dumps of real machines as the root: the numbers that their files hold, read by hand, and unknown for everything else."""
import unittest

import harness
from harness import wait_for
from segment import Segment

COUNTERS_AND_BITS = {"quality", "throttle", "throttle_raw"}


class Fixtures(harness.Scenario):
    def read(self, dump):
        """(facts, values) of the one device of a dump."""
        root = self.fixture_root(dump)
        self.start_broker("--root", str(root), "--period", "50")
        segment = wait_for(lambda: (lambda s: s if s.device_count and (s.snapshot(0) or {}).get("tick", 0) > 2 else None)(
            Segment(self.run_dir / "t" / "telemetry")), what="device")
        self.assertEqual(segment.device_count, 1)
        return segment.device(0), segment.snapshot(0)

    def assert_values(self, facts, values, wanted, may_know=()):
        for name, value in wanted.items():
            if isinstance(value, float):
                self.assertIsNotNone(values[name], name + ": " + facts["reasons"][name])
                self.assertAlmostEqual(values[name], value, places=3, msg=name)
            else:
                self.assertEqual(values[name], value, name)
        for name, reason in facts["reasons"].items():
            if name not in wanted and name not in may_know and name not in COUNTERS_AND_BITS:
                self.assertIsNone(values[name], "%s = %s is not in the dump" % (name, values[name]))
                self.assertNotEqual(reason, "known", name)

    def test_strixpoint(self):
        facts, values = self.read("amd/strixpoint")
        self.assertEqual(facts["id"], "0000:c1:00.0")
        self.assertEqual((facts["pool"], facts["arch"], facts["driver"], facts["vendor"]), ("unified", "gfx1150", "amdgpu", "amd"))
        # The unified total depends on the host memory of the machine that the dump is read on: only its bounds are known.
        self.assertIsNotNone(values["unified_used"])
        self.assertEqual(values["unified_used"], 514580480 + 3946811392)
        self.assert_values(facts, values, {
            "vram_total": 536870912, "vram_used": 514580480, "vram_visible_total": 536870912, "vram_visible_used": 514580480,
            "gtt_total": 16441004032, "gtt_used": 3946811392, "gfx_busy": 3.0, "temperature_edge": 38.0, "power_now": 9.087,
            "power_average": 9.087, "gfx_clock": 848.0, "memory_clock": 836.0, "soc_clock": 628.0, "media_busy": 0.0, "npu_busy": 0.0,
            "dram_read": 2504e6, "dram_write": 637e6},
            may_know={"unified_total", "unified_used", "media_clock", "pcie_speed", "pcie_width"})
        self.assertEqual(values["quality"], 8)  # clocks of memory and SoC are averages
        self.assertIsNone(values["voltage_gfx"])  # in0_input is 0: off, not 0 V

    def test_rx6900xt(self):
        facts, values = self.read("amd/rx6900xt")
        self.assertEqual((facts["id"], facts["pool"]), ("0000:0c:00.0", "discrete"))
        self.assert_values(facts, values, {
            "vram_total": 17163091968, "vram_used": 668274688, "vram_visible_total": 17163091968, "vram_visible_used": 668274688,
            "gtt_total": 16786171904, "gtt_used": 62369792, "gfx_busy": 3.0, "memory_busy": 0.0, "gfx_clock": 500.0,
            "memory_clock": 1000.0, "temperature_edge": 56.0, "temperature_junction": 59.0, "temperature_memory": 54.0,
            "media_busy": 0.0, "throttle": 0, "throttle_raw": 0,
            "power_average": 36.0, "power_cap": 289.0, "voltage_gfx": 775.0, "fan_rpm": 0.0, "pcie_speed": 16.0, "pcie_width": 16},
            may_know={"fan_percent", "pcie_replays", "soc_clock", "media_clock"})
        self.assertIsNone(values["power_now"])

    def test_rx7600s(self):
        facts, values = self.read("amd/rx7600s")
        self.assertEqual(facts["id"], "0000:03:00.0")
        self.assert_values(facts, values, {
            "gfx_busy": 0.0, "memory_busy": 0.0, "media_busy": 0.0, "media_clock": 25.0, "throttle": 0, "throttle_raw": 1 << 36,
            "temperature_edge": 53.0, "temperature_junction": 54.0, "temperature_memory": 60.0,
            "power_average": 1.0, "power_cap": 95.0, "memory_clock": 96.0, "pcie_speed": 16.0, "pcie_width": 8, "fan_rpm": 0.0},
            may_know={"fan_percent", "gfx_clock", "soc_clock"})
        self.assertIsNone(values["vram_total"])
        self.assertIsNone(values["voltage_gfx"])

    def test_hd7870(self):
        facts, values = self.read("amd/hd7870")
        self.assertEqual((facts["id"], facts["driver"], facts["vendor"]), ("0000:01:00.0", "radeon", "amd"))
        self.assert_values(facts, values, {"temperature_edge": 27.0, "pcie_speed": 8.0, "pcie_width": 1},
                           may_know={"fan_percent", "gfx_clock"})

    def test_a380(self):
        facts, values = self.read("intel/a380-i915")
        self.assertEqual((facts["id"], facts["driver"], facts["arch"], facts["pool"]), ("0000:0b:00.0", "i915", "xe-hpg", "discrete"))
        self.assert_values(facts, values, {
            "gfx_clock": 600.0, "temperature_edge": 55.0, "power_cap": 55.0, "energy": 25637.161804, "fan_rpm": 0.0,
            "voltage_gfx": 603.0, "throttle": 0, "throttle_raw": 0})
        self.assertIsNone(values["power_now"])  # the dump's counter stands still
        self.assertIsNone(values["pcie_width"])  # the endpoint's x1 is not the card's

    def test_b580(self):
        facts, values = self.read("intel/b580-6.16")
        self.assertEqual((facts["id"], facts["driver"], facts["arch"], facts["pool"]), ("0000:0b:00.0", "xe", "xe2-hpg", "discrete"))
        self.assert_values(facts, values, {
            "gfx_clock": 400.0, "media_clock": 0.0, "temperature_edge": 46.0, "temperature_memory": 48.0, "energy": 29523.753173,
            "fan_rpm": 418.0, "throttle": 0, "throttle_raw": 0})
        self.assertIsNone(values["power_cap"])  # power1_crit is none

    def test_several_dumps_are_one_machine_ordered_by_id(self):
        root = self.fixture_root("amd/rx6900xt", "amd/hd7870", "amd/strixpoint", "nvidia/rtx4080", "intel/a380-i915",
                                 "intel/b580-6.16")
        self.start_broker("--root", str(root), "--period", "50")
        segment = Segment(self.run_dir / "t" / "telemetry")
        ids = [d["id"] for d in segment.devices()]
        self.assertEqual(len(ids), 6)
        self.assertEqual(ids, sorted(ids))


if __name__ == "__main__":
    harness.main()
