"""Starting, options, bad input, and files that somebody removes."""
import os
import shutil
import signal
import stat
import subprocess
import time
import unittest

import harness
from harness import wait_for
from segment import Segment


class Start(harness.Scenario):
    def segment(self):
        return Segment(self.run_dir / "t" / "telemetry")

    def usage_error(self, *arguments):
        result = self.run_program("gputapd", *arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("usage: gputapd", result.stderr)
        return result.stderr.splitlines()[0]

    def test_ready_is_said_when_every_device_can_be_read(self):
        for _ in range(5):
            broker = self.start_broker("--simulate", "mi300x:8", "--period", "60000")
            self.assertEqual(len(Segment(self.run_dir / "t" / "telemetry").devices()), 8)
            broker.stop()

    def test_bad_options_are_named_and_exit_2(self):
        self.assertIn("no-such-model", self.usage_error("--simulate", "no-such-model"))
        self.assertIn("mi300x", self.usage_error("--simulate", "no-such-model"))
        for count in ("0", "-1", "65", "x", ""):
            self.usage_error("--simulate", "mi300x:" + count)
        for period in ("0", "9", "60001", "-5", "fast", "", "1e3", "100ms"):
            self.assertIn("period", self.usage_error("--period", period))
        self.usage_error("--min-period", "0")
        self.usage_error("--period", "50", "--min-period", "100")
        self.usage_error("--sim-load", "heavy")
        self.usage_error("--no-provider", "nonsense")
        self.assertIn("contradict", self.usage_error("--no-provider", "sim", "--simulate", "rtx4090"))
        self.usage_error("--max-devices", "0")
        self.usage_error("--group", "no-such-group-here")
        self.usage_error("--root", "/no/such/folder")
        for name in ("../x", ".x", "a b", ""):
            self.usage_error("--instance", name)
        self.usage_error("--unknown")
        self.usage_error("--period")
        self.usage_error("surplus")

    def test_help_and_version(self):
        result = self.run_program("gputapd", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("strix-halo", result.stdout)
        self.assertRegex(self.run_program("gputapd", "--version").stdout, r"^gputapd \d+\.\d+\.\d+\n$")

    def test_check_looks_at_the_options_and_starts_nothing(self):
        result = self.run_program("gputapd", "--check", "--instance", "t", "--simulate", "mi300x:2")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertIn("no-such-model", self.usage_error("--check", "--simulate", "no-such-model"))
        self.assertIn("instance", self.usage_error("--check", "--instance", "a b"))
        self.assertEqual(os.listdir(self.run_dir), [])

    def test_second_broker_names_the_first(self):
        broker = self.start_broker("--simulate", "strix-halo")
        result = self.run_program("gputapd", "--instance", "t")
        self.assertEqual(result.returncode, 1)
        self.assertIn("already running, pid %d" % broker.pid, result.stderr)
        self.assertTrue(broker.alive())
        other = self.start("gputapd", "--instance", "other")
        wait_for(lambda: (self.run_dir / "other" / "telemetry").exists(), what="another instance beside it")

    def test_unwritable_folder_is_a_clear_error(self):
        result = self.run_program("gputapd", "--instance", "t", env={"GPUTAP_DIR": "/proc/1"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("/proc/1", result.stderr)
        result = self.run_program("gputapd", "--instance", "t", env={"GPUTAP_DIR": "relative"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("absolute", result.stderr)

    def test_small_tmpfs_is_an_error_that_names_the_size(self):
        small = self.folder / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(small)], capture_output=True).returncode != 0:
            self.skipTest("mounting a small tmpfs needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", str(small)])
        result = self.run_program("gputapd", "--instance", "t", env={"GPUTAP_DIR": str(small)})
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"no space left: \d+ bytes \([\d.]+ MiB\) are needed")
        self.assertEqual([f for f in os.listdir(small / "t") if "telemetry" in f], [])

    def test_files_are_readable_by_all_or_by_the_group(self):
        self.start_broker()
        mode = lambda name: stat.S_IMODE(os.stat(self.run_dir / "t" / name).st_mode)
        self.assertEqual((mode("telemetry"), mode("lock")), (0o644, 0o644))
        if os.getuid() != 0:
            self.skipTest("giving files to a group needs root")
        group = self.start("gputapd", "--instance", "g", "--group", "daemon")
        wait_for(lambda: (self.run_dir / "g" / "telemetry").exists(), what="segment of the group")
        info = os.stat(self.run_dir / "g" / "telemetry")
        self.assertEqual(stat.S_IMODE(info.st_mode), 0o640)
        self.assertNotEqual(info.st_gid, 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.run_dir / "g").st_mode), 0o750)
        group.stop()
        segment = self.run_dir / "g" / "telemetry"
        inode = segment.stat().st_ino
        self.start("gputapd", "--instance", "g")
        wait_for(lambda: segment.stat().st_ino != inode, what="segment of all")
        folder = os.stat(self.run_dir / "g")
        self.assertEqual((stat.S_IMODE(folder.st_mode), folder.st_gid), (0o755, os.getegid()))

    def test_removed_segment_is_created_again(self):
        self.start_broker("--period", "50", "--simulate", "strix-halo")
        wait_for(lambda: self.segment().snapshot(0), what="sample")
        epoch = self.segment().epoch
        os.unlink(self.run_dir / "t" / "telemetry")
        wait_for(lambda: (self.run_dir / "t" / "telemetry").exists(), 3, what="a new segment")
        wait_for(lambda: self.segment().snapshot(0), what="its samples")
        self.assertNotEqual(self.segment().epoch, epoch)
        self.assertEqual(self.segment().device(0)["id"], "sim:strix-halo:0")

    def test_removed_folder_is_created_again_with_its_lock(self):
        broker = self.start_broker("--period", "50", "--simulate", "strix-halo")
        shutil.rmtree(self.run_dir / "t")
        wait_for(lambda: (self.run_dir / "t" / "telemetry").exists(), 3, what="a new folder")
        self.assertIn("already running, pid %d" % broker.pid, self.run_program("gputapd", "--instance", "t").stderr)

    def test_renamed_segment_and_folder_are_created_again(self):
        broker = self.start_broker("--period", "50", "--simulate", "strix-halo")
        segment = self.run_dir / "t" / "telemetry"
        segment.rename(self.run_dir / "t" / "elsewhere")
        wait_for(segment.exists, 4, what="a new segment")
        (self.run_dir / "t").rename(self.run_dir / "moved")
        wait_for(segment.exists, 4, what="a new folder")
        self.assertIn("already running, pid %d" % broker.pid, self.run_program("gputapd", "--instance", "t").stderr)

    def test_full_file_system_does_not_end_a_running_broker(self):
        small = self.folder / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "none", str(small)], capture_output=True).returncode != 0:
            self.skipTest("mounting a small tmpfs needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", str(small)])
        broker = self.start("gputapd", "--instance", "t", env={"GPUTAP_DIR": str(small)})
        wait_for(lambda: (small / "t" / "telemetry").exists(), what="segment")
        with open(small / "fill", "wb", buffering=0) as f:
            try:
                while f.write(bytes(65536)):
                    pass
            except OSError:
                pass
        for name in ("lock", "telemetry"):
            os.unlink(small / "t" / name)
        wait_for(lambda: "trying again" in broker.output() or not broker.alive(), 5, what="word of it")
        self.assertTrue(broker.alive(), broker.output())
        os.unlink(small / "fill")
        wait_for(lambda: (small / "t" / "telemetry").exists(), 5, what="segment again")

    def test_closed_standard_files_keep_text_out_of_the_lock(self):
        closed = subprocess.Popen(["sh", "-c", "exec %s --instance t >&- 2>&-" % (harness.BIN / "gputapd")], env=self.env)
        self.addCleanup(closed.wait)
        self.addCleanup(closed.kill)
        wait_for(lambda: (self.run_dir / "t" / "telemetry").exists(), what="segment")
        for name in ("lock", "owner"):
            self.assertEqual((self.run_dir / "t" / name).read_text(), "%d\n" % closed.pid)

    def test_instances_share_a_base_of_any_group(self):
        base = self.folder / "shm"
        env = {"GPUTAP_DIR": "", "XDG_RUNTIME_DIR": str(base)}
        base.mkdir()
        base.chmod(0o755)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
        if not user:
            self.skipTest("becoming another user needs root")
        os.chown(base, 65534, 65534)
        os.chmod(self.folder, 0o755)
        for name, arguments in (("a", ["--group", "65534"]), ("b", [])):
            process = harness.Process(self.folder, name, [*user, harness.for_any_user(harness.BIN / "gputapd"), "--instance", name,
                                                           *arguments],
                                      {**{k: v for k, v in self.env.items() if k != "GPUTAP_DIR"}, "XDG_RUNTIME_DIR": str(base)})
            self.processes.append(process)
            wait_for(lambda: (base / "gputap" / name / "telemetry").exists(), what="segment of " + name)
        self.assertEqual(stat.S_IMODE(os.stat(base / "gputap").st_mode), 0o750)
        self.assertEqual(stat.S_IMODE(os.stat(base / "gputap" / "b").st_mode), 0o700)

    def test_devices_beyond_the_room_are_left_out_and_told(self):
        broker = self.start_broker("--max-devices", "2", "--simulate", "mi300x:3")
        wait_for(lambda: self.segment().device_count == 2, what="two devices")
        self.assertIn("--max-devices", broker.output())

    def test_more_simulated_devices_than_a_provider_reads_are_told(self):
        fits = self.start("gputapd", "--instance", "fits", "--simulate", "mi300x:64", "--simulate", "mi300x:64")
        beyond = self.start("gputapd", "--instance", "beyond", "--simulate", "mi300x:64", "--simulate", "mi300x:64", "--simulate", "rtx4090")
        for broker in (fits, beyond):
            wait_for(lambda: "ready" in broker.output(), what="ready line")
            self.assertIn("128 devices", broker.output())
        self.assertIn("sim: 128 devices are read, those beyond are left out", beyond.output())
        self.assertNotIn("left out", fits.output())

    def test_simulation_by_environment(self):
        self.start_broker(env={"GPUTAP_SIM": "1", "GPUTAP_SIM_MODEL": "mi355x", "GPUTAP_SIM_NUM_GPUS": "2"})
        wait_for(lambda: self.segment().device_count == 2, what="two devices")
        facts = self.segment().device(1)
        self.assertEqual(facts["id"], "sim:mi355x:1")
        self.assertEqual(facts["simulated"], 1)
        self.assertIn("simulated", facts["name"].lower())

    def test_host_numbers_equal_proc(self):
        self.start_broker("--period", "50")
        wait_for(lambda: (self.segment().snapshot(None) or {}).get("cpu_busy") is not None, what="host sample")
        with open("/proc/meminfo") as f:
            meminfo = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in f}
        host = self.segment().snapshot(None)
        self.assertEqual(host["memory_total"], meminfo["MemTotal"])
        self.assertAlmostEqual(host["memory_available"], meminfo["MemAvailable"], delta=512 * 2 ** 20)
        self.assertEqual(host["memory_used"], host["memory_total"] - host["memory_available"])
        self.assertEqual(host["swap_total"], meminfo["SwapTotal"])
        self.assertTrue(0 <= host["cpu_busy"] <= 100)

    def test_workflow_script_gives_the_energy_it_documents(self):
        self.start_broker("--period", "50", "--simulate", "rx7900xtx", "--sim-load", "workflow")
        wait_for(lambda: self.segment().snapshot(0), what="sample")
        a = self.segment().snapshot(0)
        seen = set()
        for _ in range(100):
            seen.add(round(self.segment().snapshot(0)["power_now"]))
            time.sleep(0.1)
        b = self.segment().snapshot(0)
        self.assertGreaterEqual(len(seen), 3)  # load, sample, decode
        joules = b["sums"]["energy"] - a["sums"]["energy"]
        seconds = (b["mono_ns"] - a["mono_ns"]) / 1e9
        self.assertAlmostEqual(joules, b["energy"] - a["energy"], delta=1)
        self.assertTrue(min(seen) < joules / seconds < max(seen))


if __name__ == "__main__":
    harness.main()
