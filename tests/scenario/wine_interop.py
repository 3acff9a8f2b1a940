"""Windows programs under Wine and native ones at one instance: through a file that both have mapped, and, among Windows programs,
through a named section. Run by tests/wine.sh, which has made Wine ready."""
import json
import os
import pathlib
import signal
import time

import harness
from harness import BIN, Process, Scenario

WINDOWS_BIN = pathlib.Path(os.environ["GPUTAP_WINDOWS_BIN"])
RUNNING, STALE, DEAD = 1, 2, 4
LIFE = RUNNING | STALE | DEAD
SECTIONS = "Global\\gputap/t"


def windows_path(path):
    return "Z:" + str(path).replace("/", "\\")


class Interop(Scenario):
    def setUp(self):
        super().setUp()
        self.instance = self.run_dir / "t"
        self.instance.mkdir()
        self.windows_env = dict(self.env, GPUTAP_DIR=windows_path(self.run_dir))
        self.sections_env = {k: v for k, v in self.env.items() if k != "GPUTAP_DIR"}

    def _start(self, name, args, env):
        process = Process(self.folder, name, args, env)
        self.processes.append(process)
        return process

    def writer(self, kind, *args):
        """Returns once its segment can be read: at its first line, or by the new file."""
        if kind == "native":
            return self._start("writer", [BIN / "tests/segment_writer_tool", self.instance, *args], self.env)
        place = SECTIONS if kind == "sections" else windows_path(self.instance)
        return self._start("writer", ["wine", WINDOWS_BIN / "tests/segment_writer_tool.exe", place, *args], self.windows_env)

    def start_reader(self, kind, *args):
        if kind == "native":
            return self._start("reader", [BIN / "tests/segment_reader_tool", *args], self.env)
        env = self.sections_env if kind == "sections" else self.windows_env
        return self._start("reader", ["wine", WINDOWS_BIN / "tests/segment_reader_tool.exe", *args], env)

    def result(self, reader):
        code = reader.wait(60)
        self.assertEqual(code, 0, reader.output())
        result = json.loads(reader.output())
        self.assertEqual((result["torn"], result["older"], result["revived"], result["errors"]), (0, 0, 0, 0))
        return result

    def read(self, kind, *args):
        return self.result(self.start_reader(kind, *args))

    def wait_for_segment(self, before=None):
        segment = self.instance / "telemetry"
        return harness.wait_for(lambda: segment.exists() and segment.stat().st_ino != before and segment.stat().st_ino, 20,
                                what="segment")

    def from_publishing_to_reading(self, writing, reading):
        writer = self.writer(writing, "--devices", 2, "--rate", 400)
        self.wait_for_segment()
        result = self.read(reading, "--seconds", 2, "--threads", 2, "--pause-us", 100)
        self.assertEqual((result["epochs"], result["status"] & LIFE), (1, RUNNING), "values of the one writer, which lives")
        self.assertLess(result["longest_gap"], 1.0)
        writer.kill(signal.SIGKILL)
        writer.wait()
        # Wine's server holds a Windows program's lock, and lets go of it a moment after the death.
        result = harness.wait_for(lambda: (lambda r: r if r["status"] & LIFE == DEAD else None)(self.read(reading, "--reads", 500)), 5,
                                  what="death")
        self.assertEqual(result["epochs"], 1, "its last values are there")

        writer = self.writer(writing, "--count", 5000, "--hold")
        published = json.loads(harness.wait_for(writer.output, 20, what="writer's count"))["published"]
        self.assertEqual(published, 5000)
        result = self.read(reading, "--cursor", "--reads", 3000)
        self.assertEqual((result["got"], result["lost"], result["status"] & LIFE), (1024, 0, RUNNING), "the whole ring, in order")

    def test_windows_writer_is_read_natively(self):
        self.from_publishing_to_reading("windows", "native")

    def test_native_writer_is_read_by_windows(self):
        self.from_publishing_to_reading("native", "windows")

    def test_windows_writer_is_read_by_windows(self):
        self.from_publishing_to_reading("windows", "windows")

    def test_readers_of_both_follow_writers_of_both(self):
        readers = [self.start_reader(kind, "--seconds", 12, "--pause-us", 300, "--threads", 2) for kind in ("native", "windows")]
        inode, kinds = None, ("windows", "native", "windows", "native")
        for life, kind in enumerate(kinds, 1):
            writer = self.writer(kind, "--rate", 400)
            inode = self.wait_for_segment(inode)
            time.sleep(1.5)
            self.assertTrue(writer.alive(), writer.output())
            if life < len(kinds):
                writer.kill(signal.SIGKILL)
                writer.wait()
        for reader in readers:
            result = self.result(reader)
            self.assertEqual((result["epochs"], result["status"] & LIFE), (4, RUNNING))

    def test_a_section_is_read_and_followed_by_other_processes(self):
        reader = self.start_reader("sections", "--seconds", 8, "--pause-us", 300, "--threads", 2)
        for last in (False, True):
            writer = self.writer("sections", "--rate", 400)
            time.sleep(2.5)
            if not last:
                writer.kill(signal.SIGKILL)
                writer.wait()
        result = self.result(reader)
        self.assertEqual((result["epochs"], result["status"] & LIFE), (2, RUNNING))
        reader = self.start_reader("sections", "--seconds", 4, "--pause-us", 300)
        time.sleep(2)
        writer.kill(signal.SIGKILL)
        result = self.result(reader)
        self.assertEqual((result["epochs"], result["status"] & LIFE), (1, DEAD), "it keeps what it has mapped")


if __name__ == "__main__":
    harness.main()
