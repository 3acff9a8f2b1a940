"""The library against a writer that never rests, one that is killed all the time, and a broker that is killed all the time."""
import json
import os
import subprocess
import time

import harness
from harness import BIN, Scenario

ROUNDS = int(os.environ.get("GPUTAP_KILLS", "40"))
SECONDS = os.environ.get("GPUTAP_TORTURE_SECONDS", "3")


class Torture(Scenario):
    def setUp(self):
        super().setUp()
        self.instance = self.run_dir / "t"
        self.instance.mkdir()
        (self.folder / "tests").mkdir()  # logs are named by program

    def writer(self, *args):
        return self.start("tests/segment_writer_tool", self.instance, *args)

    def readers(self, count, *args):
        return [subprocess.Popen([str(BIN / "tests/segment_reader_tool"), *map(str, args)], env=self.env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for _ in range(count)]

    def results(self, readers):
        found = []
        for reader in readers:
            out, err = reader.communicate(timeout=120)
            self.assertEqual((reader.returncode, err), (0, ""), out)
            found.append(json.loads(out))
        return found

    def wait_for_segment(self):
        harness.wait_for(lambda: (self.instance / "telemetry").exists(), what="segment")

    def test_nothing_is_torn_at_full_speed(self):
        self.writer("--devices", 2)
        self.wait_for_segment()
        for result in self.results(self.readers(2, "--seconds", SECONDS, "--threads", 2)):
            self.assertGreater(result["reads"], 10000)
            self.assertEqual((result["torn"], result["older"], result["epochs"]), (0, 0, 1))

    def test_cursors_lose_nothing_uncounted(self):
        writer = self.writer("--count", 200000, "--hold")
        self.wait_for_segment()
        result, = self.results(self.readers(1, "--cursor", "--seconds", SECONDS))
        published = json.loads(harness.wait_for(writer.output, what="writer's count"))["published"]
        # It began at the oldest record of that moment; what lay before was not passed.
        self.assertLessEqual(result["got"] + result["lost"], published)
        self.assertGreater(result["got"], 0)
        result, = self.results(self.readers(1, "--cursor", "--reads", 2000))
        self.assertEqual((result["got"], result["lost"]), (1024, 0))

    def test_readers_survive_killed_writers(self):
        readers = self.readers(4, "--seconds", ROUNDS * 0.12 + 2, "--pause-us", 200, "--threads", 2)
        for _ in range(ROUNDS):
            writer = self.writer("--rate", 2000)
            time.sleep(0.12)
            writer.kill()
            writer.wait()
        self.writer("--rate", 200)
        for result in self.results(readers):
            self.assertEqual((result["torn"], result["older"], result["revived"], result["errors"]), (0, 0, 0, 0))
            self.assertGreater(result["epochs"], ROUNDS // 4)
            self.assertLess(result["longest_gap"], 2.0)


class KilledBroker(Scenario):
    def test_readers_attach_again_within_a_second(self):
        broker = self.start_broker("--period", 50, "--simulate", "mi300x:1")
        readers = [subprocess.Popen([str(BIN / "tests/segment_reader_tool"), "--plain", "--seconds", str(ROUNDS * 0.4 + 3), "--pause-us",
                                     "500", "--threads", "2"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for _ in range(4)]
        for _ in range(ROUNDS // 2):
            broker.kill()
            broker.wait()
            broker = self.start_broker("--period", 50, "--simulate", "mi300x:1")
            time.sleep(0.3)
        for reader in readers:
            out, err = reader.communicate(timeout=120)
            self.assertEqual((reader.returncode, err), (0, ""), out)
            result = json.loads(out)
            self.assertEqual((result["torn"], result["older"], result["errors"]), (0, 0, 0))
            self.assertGreaterEqual(result["epochs"], ROUNDS // 2, "each broker's samples were seen")
            self.assertLess(result["slowest_attach"], 1.0)


if __name__ == "__main__":
    harness.main()
