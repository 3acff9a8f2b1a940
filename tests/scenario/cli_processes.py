"""gputap ps: what it says of tables that a test wrote, and of their absence."""
import json
import os
import pty
import re
import select
import subprocess
import time

import harness
from process_stage import GIB, ProcessStage


class Ps(harness.Scenario):
    def setUp(self):
        super().setUp()
        self.env["LC_ALL"] = "C.UTF-8"

    def ps(self, *args, code=0, **env):
        done = self.run_program("gputap", "ps", *args, env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def lines(self, *args, **env):
        return self.ps(*args, **env).stdout.splitlines()

    def stage(self, devices=1):
        stage = ProcessStage(self, devices)
        stage.row(4711, 0, 13 * GIB, GIB // 2, 91, 3, "python3", container="3f2a9c0011aa")
        stage.row(12, 54321, 5 * GIB, "-", comm="blender", flags=2, sharers=3)
        stage.row(900, 0, "-", "-", comm="Xorg")
        stage.table(others=4, hidden=2, external=GIB // 4)
        return stage

    def test_a_table_for_people_has_a_row_a_process_and_says_what_is_missing(self):
        self.stage()
        lines = self.lines()
        self.assertEqual(lines[0].split(), "GPU PID USER VRAM GTT GFX COMPUTE ENC DEC CONTAINER NAME".split())
        self.assertRegex(lines[1], r"^ +0 +4711  root +13\.0 GiB +512\.0 MiB +91 % +3 % +– +–  3f2a9c0011aa  python3$")
        self.assertRegex(lines[2], r"^ +0 +12  54321 +≥ 5\.0 GiB +– .*  blender \(\+3 sharing\)$")
        self.assertRegex(lines[3], r"^ +0 +900  root +– +– +– .*  Xorg$")
        self.assertIn("GPU 0: 4 more processes, which hold VRAM 4.0 MiB", lines[4])
        self.assertIn("GPU 0: 2 processes of other users could not be read (run gputapd as root", lines[5])
        self.assertIn("GPU 0: 256.0 MiB of VRAM in use by no process that is known", lines[6])
        self.assertEqual(len(lines), 7)
        self.assertEqual([lines[0].index("CONTAINER"), *(lines[0].index("NAME"),) * 3],
                         [lines[1].index("3f2a9c0011aa"), lines[1].index("python3"), lines[2].index("blender"), lines[3].index("Xorg")])

    def test_without_utf8_there_is_none(self):
        self.stage()
        self.assertTrue(self.ps(LC_ALL="C").stdout.isascii())

    def test_it_sorts_by_what_is_asked_and_puts_the_unknown_last(self):
        self.stage()
        for key, names in (("vram", "python3 blender Xorg"), ("gtt", "python3"), ("busy", "python3"), ("pid", "blender Xorg python3"),
                           ("name", "Xorg blender python3")):
            found = re.findall(r"  (python3|blender|Xorg)\b", "\n".join(self.lines("--sort", key)[1:4]))
            self.assertEqual(found[:len(names.split())], names.split(), key)
        self.assertIn("--sort is vram", self.ps("--sort", "size", code=2).stderr)
        self.assertIn("--sort wants", self.ps("--sort", code=2).stderr)

    def test_empty_states_are_said_in_words(self):
        stage = self.stage(3)
        stage.table(device=1)
        lines = self.lines()
        self.assertIn("GPU 1: no process holds it", lines)
        self.assertIn("GPU 2: nobody looks for its processes on this system", lines)
        self.assertEqual(self.lines("1"), ["GPU 1: no process holds it"])
        self.assertEqual(self.lines("0000:02:00.0"), ["GPU 1: no process holds it"])
        self.assertIn("there is no GPU 7", self.ps("7", code=1).stderr)
        self.assertIn("no device has", self.ps("dev:x", code=1).stderr)
        self.assertIn("unexpected argument", self.ps("0", "1", code=2).stderr)

    def test_without_a_broker_it_says_how_to_start_one_and_a_dead_one_is_told(self):
        self.assertIn("start it with: gputapd", self.ps(code=1).stderr)
        stage = self.stage()
        stage.end()
        self.assertIn("is gone", self.ps(code=1).stderr)
        self.assertIn("python3", self.ps("--stale").stdout)

    def test_json_is_the_document_of_the_bridge(self):
        self.stage(2)
        document = json.loads(self.ps("--json").stdout)
        self.assertEqual((document["v"], document["state"], len(document["gpus"])), (1, "live", 2))
        first = document["gpus"][0]
        self.assertEqual([(r["pid"], r["vram"], r["gfx_busy"]) for r in first["rows"]], [(4711, 13 * GIB, 91), (12, 5 * GIB, None), (900, None, None)])
        self.assertEqual((first["hidden"], first["external"], first["others"]["count"]), (2, GIB // 4, 4))
        self.assertIsNone(document["gpus"][1]["rows"])
        self.assertEqual([g["gpu"] for g in json.loads(self.ps("--json", "1").stdout)["gpus"]], [1])

    def test_watch_repeats_and_ends(self):
        self.stage()
        out = self.ps("--watch", "--count", "2", "--json").stdout.splitlines()
        self.assertEqual([len(json.loads(line)["gpus"]) for line in out], [1, 1])
        self.assertEqual(self.ps("--watch", "--count", "1").stdout.count("python3"), 1)
        self.assertIn("--count goes with", self.ps("--count", "2", code=2).stderr)

    def test_watch_draws_on_a_terminal_and_q_ends_it(self):
        self.stage()
        master, slave = pty.openpty()
        try:
            process = subprocess.Popen([str(harness.BIN / "gputap"), "ps", "--watch"], env=dict(self.env, TERM="xterm"), stdin=slave, stdout=slave)
            self.addCleanup(process.kill)
            seen, end = b"", time.monotonic() + 20
            while b"Xorg" not in seen and time.monotonic() < end:
                if select.select([master], [], [], 0.1)[0]:
                    seen += os.read(master, 65536)
            self.assertIn(b"Xorg", seen)
            os.write(master, b"q")
            end = time.monotonic() + 20
            while process.poll() is None and time.monotonic() < end:
                if select.select([master], [], [], 0.1)[0]:
                    os.read(master, 65536)
            self.assertEqual(process.wait(5), 0)
        finally:
            os.close(master)
            os.close(slave)


if __name__ == "__main__":
    harness.main()
