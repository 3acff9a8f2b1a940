"""What the command line prints and how it ends, with a broker, without one, and with a broken one."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import termios
import time

import harness
from harness import BIN, Scenario


class Cli(Scenario):
    def gputap(self, *args, code=0, env=None):
        done = self.run_program("gputap", *args, env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def broker(self, *args):
        broker = self.start_broker("--period", 50, "--simulate", "strix-halo", "--simulate", "broken", *args)
        # A beat may pass between the segment's birth and the first sample of a simulated device.
        harness.wait_for(lambda: "GPU 1" in self.run_program("gputap", "get").stdout, what="two devices")
        return broker


class WithoutBroker(Cli):
    def test_metric_of_gpus_where_there_is_none_is_told(self):
        self.start_broker()
        result = self.gputap("get", "gfx_busy", code=1)
        self.assertEqual(result.stdout, "")
        self.assertIn("no GPU was found", result.stderr)
        self.gputap("get", "gfx_busy", "load1")

    def test_output_that_cannot_be_written_is_told(self):
        self.start_broker("--simulate", "rtx4090")
        with open("/dev/full", "w") as full:
            result = subprocess.run([str(BIN / "gputap"), "get"], env=self.env, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write", result.stderr)

    def test_every_command_says_how_to_start_one(self):
        for command in (["status"], ["get"], ["get", "--json"], ["watch", "--count", "1"], ["doctor"]):
            done = self.gputap(*command, code=1)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn("start it with: gputapd", done.stderr)
        self.assertIn(str(self.run_dir / "t"), self.gputap("doctor", code=1).stdout)

    def test_wrong_usage_is_2_with_the_usage_on_stderr(self):
        for args in ([], ["frob"], ["--frob"], ["get", "--gpu"], ["get", "--gpu", "x"], ["get", "--gpu", "-1"], ["get", "--count", "2"],
                     ["watch", "--count", "0"], ["status", "--json"], ["status", "more"], ["--instance"], ["watch", "gfx_busy"], ["--version", "extra"],
                     ["status", "--version"]):
            done = self.gputap(*args, code=2)
            self.assertIn("usage: gputap", done.stderr, args)
            self.assertEqual(done.stdout, "")
        self.assertIn("no metric", self.gputap("get", "frob", code=2).stderr)
        self.assertIn("instance", self.gputap("--instance", "../x", "status", code=2).stderr)

    def test_help_and_version(self):
        self.assertIn("usage: gputap", self.gputap("--help").stdout)
        self.assertRegex(self.gputap("--version").stdout, r"^gputap \d+\.\d+\.\d+\n$")
        self.assertIn("usage: gputap", self.gputap("get", "--help").stdout)


class WithBroker(Cli):
    def test_status_lists_devices(self):
        self.broker()
        out = self.gputap("status").stdout
        self.assertIn("running", out)
        self.assertIn("SIMULATED", out)
        self.assertRegex(out, r"GPU [01] +.*sim:strix-halo:0, ok")

    def test_get_shows_values_units_and_reasons(self):
        self.broker()
        out = self.gputap("get").stdout
        self.assertRegex(out, r"vram_total +0\.50 GiB")
        self.assertRegex(out, r"\u2013  \(no permission\)")
        self.assertIn("host\n", out)
        ids = [d["id"] for d in json.loads(self.gputap("get", "--json").stdout)["gpus"]]
        one = str(ids.index("sim:strix-halo:0"))
        out = self.gputap("get", "--gpu", one, "vram_total", "gfx_clock").stdout
        self.assertEqual(len(out.splitlines()), 3, out)
        self.assertIn("there is no GPU 7", self.gputap("get", "--gpu", 7, code=1).stderr)
        self.assertIn("leave out --gpu", self.gputap("get", "--gpu", 0, "cpu_busy", code=2).stderr)

    def test_get_json_is_the_snapshot_document(self):
        self.broker()
        document = json.loads(self.gputap("get", "--json").stdout)
        self.assertEqual((document["v"], document["state"], document["simulated"]), (1, "live", True))
        devices = {d["id"]: d for d in document["gpus"]}
        broken, halo = devices["sim:broken:0"], devices["sim:strix-halo:0"]
        self.assertEqual(halo["metrics"]["vram_total"], 512 << 20)
        self.assertTrue(all(v is None for v in broken["metrics"].values()))
        self.assertEqual(set(broken["metrics"]), set(broken["unknown"]))
        self.assertIsNone(broken["pci"])
        narrow = json.loads(self.gputap("get", "--json", "--gpu", halo["index"], "gfx_busy").stdout)
        self.assertEqual([list(g["metrics"]) for g in narrow["gpus"]], [["gfx_busy"]])

    def test_doctor_names_providers_and_reasons(self):
        self.broker()
        out = self.gputap("doctor").stdout
        for part in ("a broker lives here", "providers", "sim", "running", "unknown, no permission: ", "from sim: ", "same time namespace",
                     "cost a tick", "driver sim\n"):
            self.assertIn(part, out)
        self.assertEqual([line for line in out.splitlines() if line != line.rstrip()], [])

    def test_doctor_tells_switched_off_from_not_asked_for(self):
        self.start_broker("--no-provider", "amdgpu")
        out = self.gputap("doctor").stdout
        self.assertRegex(out, r"amdgpu +off +0 devices; switched off by --no-provider\n")
        self.assertRegex(out, r"sim +off +0 devices; not asked for\n")

    def test_piped_watch_is_a_line_a_tick(self):
        self.broker()
        lines = self.gputap("watch", "--count", 3).stdout.splitlines()
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertRegex(line, r"^\d\d:\d\d:\d\d\.\d\d\d  GPU0 \(simulated\) .*GPU1 \(simulated\) .*CPU .*RAM ")
            self.assertNotIn("\033", line)
        self.assertEqual(len({line.split()[0] for line in lines}), 3, "times tell the lines of a short period apart")
        documents = [json.loads(line) for line in self.gputap("watch", "--json", "--count", 3).stdout.splitlines()]
        self.assertEqual(len({d["t"] for d in documents}), 3)

    def test_watch_of_one_gpu_is_of_that_one_in_json_too(self):
        self.broker()
        line = self.gputap("watch", "--gpu", 1, "--count", 1).stdout
        self.assertIn("GPU1 ", line)
        self.assertNotIn("GPU0 ", line)
        document = json.loads(self.gputap("watch", "--json", "--gpu", 1, "--count", 1).stdout)
        self.assertEqual([g["index"] for g in document["gpus"]], [1])

    def test_piped_watch_of_a_long_period_has_whole_seconds(self):
        self.start_broker()
        self.assertRegex(self.gputap("watch", "--count", 1).stdout, r"^\d\d:\d\d:\d\d  ")

    def test_old_numbers_are_refused_unless_asked_for(self):
        broker = self.broker()
        broker.kill()
        broker.wait()
        self.assertRegex(self.gputap("doctor", code=1).stdout, r"workers +\d+ were alive at its last word")
        self.assertIn("(gputap get --stale shows them)", self.gputap("watch", "--count", 1, code=1).stderr)
        done = self.gputap("get", code=1)
        self.assertIn("the broker is gone", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("STALE", self.gputap("get", "--stale").stdout)
        self.assertEqual(json.loads(self.gputap("get", "--stale", "--json").stdout)["state"], "dead")
        self.assertIn("dead", self.gputap("status", code=1).stdout)

    def test_a_stopped_broker_is_stale(self):
        broker = self.broker()
        broker.kill(signal.SIGSTOP)
        try:
            time.sleep(0.5)
            self.assertIn("stands still", self.gputap("get", code=1).stderr)
            self.assertIn("stale", self.gputap("status", code=1).stdout)
        finally:
            broker.kill(signal.SIGCONT)
        harness.wait_for(lambda: self.run_program("gputap", "get").returncode == 0, what="the broker's return")

    def test_damaged_segments_are_errors(self):
        segment = self.run_dir / "t" / "telemetry"
        segment.parent.mkdir()
        for content in (b"", b"junk" * 4000, b"GPUTAP1\n" + bytes(10000)):
            segment.write_bytes(content)
            segment.chmod(0o644)
            self.assertIn(str(segment), self.gputap("get", code=1).stderr)
        broker = self.broker()
        good = bytearray(segment.read_bytes())
        broker.stop()
        good[12] = 9  # ABI major
        segment.unlink()
        segment.write_bytes(good)
        self.assertIn("ABI 9", self.gputap("get", code=1).stderr)

    def doctor_of(self, driver, vendor, device, **files):
        """What doctor says of a machine with one card, which has these files and no others."""
        root = self.run_dir / "root"
        card = root / "sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0"
        texts = {"class": "0x030000", "vendor": vendor, "device": device, "subsystem_vendor": "0x1eae", "subsystem_device": "0x7901",
                 "revision": "0xc8", "uevent": "DRIVER=" + driver, **{name.replace("__", "/"): text for name, text in files.items()}}
        for name, text in texts.items():
            (card / name).parent.mkdir(parents=True, exist_ok=True)
            (card / name).write_text(text + "\n")
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        (root / "sys/bus/pci/devices/0000:03:00.0").symlink_to("../../../devices/pci0000:00/0000:00:01.1/0000:03:00.0")
        (root / "sys/bus/pci/drivers" / driver).mkdir(parents=True)
        (card / "driver").symlink_to("../../../../bus/pci/drivers/" + driver)
        (root / "sys/class/drm").mkdir(parents=True)
        self.start_broker("--root", root, "--period", 50)
        harness.wait_for(lambda: "not sampled yet" not in self.run_program("gputap", "doctor").stdout, 20, what="samples")
        return self.gputap("doctor").stdout

    def test_doctor_says_of_a_sleeping_card_that_it_is_left_asleep(self):
        text = self.doctor_of("amdgpu", "0x1002", "0x744c", power__runtime_status="suspended", mem_info_vram_total="25753026560",
                              mem_info_vram_used="1073741824")
        self.assertIn("it sleeps: nothing is read", text)
        self.assertNotIn("PCIe traffic", text)

    def test_doctor_says_why_an_amd_card_has_no_energy(self):
        text = self.doctor_of("amdgpu", "0x1002", "0x744c", gpu_busy_percent="3", mem_info_vram_total="25753026560",
                              mem_info_vram_used="1073741824")
        self.assertIn("joules of spans are summed up from power instead", text)
        self.assertIn("memory temperature: this card's driver shows no sensor labelled mem", text)
        self.assertNotIn("load:", text)

    def test_doctor_says_what_the_driver_of_a_card_does_not_tell(self):
        self.assertIn("NVIDIA's driver tells them only through its own library", self.doctor_of("nvidia", "0x10de", "0x2704"))

    def test_piped_watch_ends_with_its_reader(self):
        self.broker()
        command = "%s watch | head -n 1" % (BIN / "gputap")
        done = subprocess.run(["sh", "-c", command], env=self.env, capture_output=True, text=True, timeout=20)
        self.assertEqual(len(done.stdout.splitlines()), 1)


class OnATerminal(Cli):
    def run_watch(self, end):
        """Runs watch on a terminal for a moment; returns (what it drew, terminal settings before and after, exit code)."""
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        process = subprocess.Popen([str(BIN / "gputap"), "watch"], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                                   env=dict(self.env, LANG="C.UTF-8"), start_new_session=True)
        drawn = b""
        deadline = time.monotonic() + 1.5
        ended = False
        while time.monotonic() < deadline + 8:
            if select.select([master], [], [], 0.05)[0]:
                drawn += os.read(master, 65536)
            if not ended and time.monotonic() > deadline:
                end(process, master)
                ended = True
            if ended and process.poll() is not None and not select.select([master], [], [], 0.1)[0]:
                break
        code = process.wait(5)
        process.stderr.close()
        after = termios.tcgetattr(slave)
        os.close(master)
        os.close(slave)
        return drawn.decode(errors="replace"), before, after, code

    def check(self, end):
        drawn, before, after, code = self.run_watch(end)
        self.assertEqual(code, 0, drawn[-500:])
        self.assertEqual(before, after)
        self.assertTrue(drawn.endswith("\033[?25h\033[?1049l"), repr(drawn[-80:]))
        self.assertIn("\u2588", drawn)
        self.assertRegex(drawn, "[\u2581-\u2588]{2}")
        self.assertGreater(len(re.findall("\033\\[H", drawn)), 3, "it was redrawn in place")
        return drawn

    def test_q_restores_the_terminal(self):
        self.broker()
        self.check(lambda process, master: os.write(master, b"q"))

    def test_ctrl_c_and_a_resize(self):
        self.broker()

        def end(process, _master):
            process.send_signal(signal.SIGWINCH)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        self.check(end)

    def blocked_watch(self):
        """A watch whose terminal takes no more, as one behind a stalled connection."""
        self.broker()
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = subprocess.Popen([str(BIN / "gputap"), "watch"], stdin=slave, stdout=slave, env=self.env, start_new_session=True)
        os.close(slave)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        state = pathlib.Path("/proc/%d/syscall" % process.pid)
        if not os.access(state, os.R_OK):
            self.skipTest("the system calls of a process cannot be looked at")
        write = {"x86_64": "1", "aarch64": "64"}.get(os.uname().machine)
        harness.wait_for(lambda: state.read_text().split()[0] == write and not time.sleep(0.3) and state.read_text().split()[0] == write,
                         30, what="a write that blocks")
        return process, master

    def drain(self, master, until):
        while not until():
            if select.select([master], [], [], 0.05)[0]:
                try:
                    os.read(master, 65536)
                except OSError:
                    return

    def test_a_resize_while_the_terminal_is_blocked_is_no_failed_write(self):
        process, master = self.blocked_watch()
        process.send_signal(signal.SIGWINCH)
        end = time.monotonic() + 1
        self.drain(master, lambda: time.monotonic() > end)
        process.send_signal(signal.SIGINT)
        self.drain(master, lambda: process.poll() is not None)
        self.assertEqual(process.wait(10), 0)

    def test_an_interrupt_ends_a_watch_whose_terminal_is_blocked(self):
        process, master = self.blocked_watch()
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.drain(master, lambda: process.poll() is not None)
        self.assertEqual(process.wait(10), 0)


if __name__ == "__main__":
    harness.main()
