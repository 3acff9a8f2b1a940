"""The same GPUs that are not there, read by gputapd and by nvtop (-s, since 3.2) under the same shim, field by field.

What is compared, and where the two differ on purpose:
  name, temperature, clocks, load, fan     the same to the digit that nvtop prints; it asks the driver's sensors, gputapd the files
  power_draw                               nvtop prints whole watts, cut; gputapd has 0.1 W
  mem_total, mem_used, discrete            the same
  mem_total, APU                           nvtop adds up VRAM and all of GTT; gputapd takes no more GTT than there is host memory,
                                           since nobody can have more (ROCm issue 6004)
  a sleeping card                          nvtop opens its render node, which wakes it; gputapd leaves it alone

GPUTAP_NVTOP names another nvtop than the one in the PATH.
"""
import json
import os
import re
import shutil
import subprocess
import unittest

import fake_machine
import harness
from fake_machine import FUSION, Machine, memory_facts, memory_files
from harness import wait_for
from segment import Segment

GIB = 1 << 30
NVTOP = os.environ.get("GPUTAP_NVTOP") or shutil.which("nvtop")
NAVI, APU = "AMD Radeon RX 6900 XT", "AMD Radeon Graphics"


def without_snapshot():
    """Why there is nothing to compare with, or None."""
    if not fake_machine.SHIM.exists():
        return "no shim for this system"
    if not NVTOP:
        return "no nvtop here"
    try:
        text = subprocess.run([NVTOP, "--help"], capture_output=True, text=True, timeout=20).stdout
        version = subprocess.run([NVTOP, "--version"], capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return "nvtop does not start: %s" % error
    return None if "--snapshot" in text else "%s has no snapshots (-s came with 3.2)" % (version or "nvtop")


def number(text):
    """The number of "63C", "2300MHz", or None."""
    return None if text is None else float(re.match(r"-?[\d.]+", text).group())


class Differential(harness.Scenario):
    def setUp(self):
        super().setUp()
        why = without_snapshot()
        if why:
            self.skipTest(why)
        self.machine = Machine(self.folder)

    def navi(self):
        vram, gtt = (16 * GIB, 3 * GIB), (32 * GIB, GIB)
        return self.machine.gpu(
            "0000:03:00.0", device=0x73bf, revision=0xc0,
            files=dict(memory_files(vram, vram, gtt), gpu_busy_percent="87\n", mem_busy_percent="17\n"),
            hwmon={"temp1_label": "edge\n", "temp1_input": "63000\n", "power1_label": "PPT\n", "power1_average": "190600000\n",
                   "power1_cap": "300000000\n", "freq1_label": "sclk\n", "freq1_input": "2300000000\n", "freq2_label": "mclk\n",
                   "freq2_input": "1000000000\n", "fan1_input": "1210\n", "fan1_max": "3000\n", "pwm1": "102\n", "pwm1_enable": "2\n", "pwm1_max": "255\n"},
            facts=["info compute_units 80", "info family 143", "info external_rev 40", "info vram_type 9", "info vram_bits 256",
                   *memory_facts(vram, vram, gtt), "sensor 1 2300", "sensor 2 1000", "sensor 3 63000", "sensor 4 87", "sensor 5 190"])

    def apu(self, gtt_total):
        vram, gtt = (GIB // 2, GIB // 4), (gtt_total, 3 * GIB)
        return self.machine.gpu(
            "0000:c5:00.0", render=129, card=2, device=0x1586, revision=0xc1,
            files=dict(memory_files(vram, vram, gtt), gpu_busy_percent="12\n"),
            hwmon={"temp1_label": "edge\n", "temp1_input": "43000\n", "power1_label": "PPT\n", "power1_input": "9800000\n"},
            facts=["info compute_units 40", "info family 150", "info external_rev 193", "info flags %d" % FUSION,
                   "info vram_type 12", "info vram_bits 256", *memory_facts(vram, vram, gtt), "sensor 3 43000", "sensor 4 12",
                   "sensor 5 9"])

    def read_both(self):
        """({name: as nvtop sees it}, {name: as gputap sees it})"""
        env = self.machine.env(self.env)
        self.start_broker("--period", "50", env=env)
        segment = lambda: Segment(self.run_dir / "t" / "telemetry")
        wait_for(lambda: segment().device_count == len(self.machine.gpus), what="devices")
        wait_for(lambda: all((segment().snapshot(i) or {}).get("tick", 0) > 40 for i in range(len(self.machine.gpus))), 20, what="ticks")
        mine = json.loads(self.run_program("gputap", "get", "--json").stdout)["gpus"]
        answer = subprocess.run([NVTOP, "-s"], env=env, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        theirs = json.loads(answer.stdout)
        return {d["device_name"]: d for d in theirs}, {d["name"]: d["metrics"] for d in mine}

    def test_a_discrete_card_is_read_alike(self):
        self.navi()
        theirs, mine = self.read_both()
        self.assertEqual(list(theirs), [NAVI])
        self.assertEqual(list(mine), [NAVI])
        nvtop, gputap = theirs[NAVI], mine[NAVI]
        for theirs_name, mine_name in (("temp", "temperature_edge"), ("gpu_clock", "gfx_clock"), ("mem_clock", "memory_clock"),
                                       ("gpu_util", "gfx_busy"), ("mem_total", "vram_total"), ("mem_used", "vram_used")):
            with self.subTest(theirs_name):
                self.assertIsNotNone(gputap[mine_name])
                self.assertEqual(number(nvtop[theirs_name]), gputap[mine_name])
        self.assertEqual(number(nvtop["power_draw"]), int(gputap["power_average"]))
        self.assertAlmostEqual(gputap["power_average"], 190.6, places=3)
        self.assertAlmostEqual(number(nvtop["fan_speed"]), gputap["fan_percent"], delta=1)

    def test_an_apu_with_less_gtt_than_memory_is_read_alike(self):
        self.apu(24 * GIB)
        theirs, mine = self.read_both()
        nvtop, gputap = theirs[APU], next(iter(mine.values()))
        self.assertEqual(number(nvtop["mem_total"]), gputap["unified_total"])
        self.assertEqual(number(nvtop["mem_used"]), gputap["unified_used"])
        self.assertEqual(number(nvtop["temp"]), gputap["temperature_edge"])
        self.assertEqual(number(nvtop["gpu_util"]), gputap["gfx_busy"])
        self.assertEqual(number(nvtop["power_draw"]), int(gputap["power_now"]))

    def test_more_gtt_than_memory_is_counted_by_nvtop_alone(self):
        self.apu(120 * GIB)
        theirs, mine = self.read_both()
        nvtop, gputap = theirs[APU], next(iter(mine.values()))
        self.assertEqual(number(nvtop["mem_total"]), GIB // 2 + 120 * GIB)
        self.assertEqual(gputap["unified_total"], GIB // 2 + 65536000 * 1024)  # MemTotal of the machine
        self.assertEqual(number(nvtop["mem_used"]), gputap["unified_used"])

    def test_a_sleeping_card_is_woken_by_nvtop_alone(self):
        card = self.navi()
        card.write("power/runtime_status", "suspended\n")
        env = self.machine.env(self.env)
        self.start_broker("--period", "50", env=env)
        wait_for(lambda: Segment(self.run_dir / "t" / "telemetry").device(0)["state"] == "asleep", 20, what="asleep")
        self.assertEqual(self.machine.opened("/dev/dri/renderD128"), [])
        subprocess.run([NVTOP, "-s"], env=env, capture_output=True, timeout=30, stdin=subprocess.DEVNULL, check=True)
        openers = {int(line.split()[0]) for line in self.machine.opened("/dev/dri/renderD128")}
        self.assertEqual(len(openers), 1)


if __name__ == "__main__":
    harness.main()
