"""The library against a writer that never rests, one that is killed all the time, and a broker that is killed all the time."""
import json
import os
import subprocess
import threading
import time

import harness
from harness import BIN, Scenario
from websocket import WebSocket

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


class Watcher(threading.Thread):
    """A page's view of the bridge: one connection for the whole time; notes epochs, and what must never come."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.epochs, self.wrong, self.samples, self.ending = port, [], [], 0, False

    def run(self):
        try:
            with WebSocket(self.port) as socket:
                socket.send({"type": "sub", "period": 100})
                last = -1
                while not self.ending:
                    message = socket.receive(timeout=30)
                    if message["type"] == "hello" and message["epoch"] and message["epoch"] not in self.epochs:
                        self.epochs.append(message["epoch"])
                        last = -1
                    elif message["type"] == "s":
                        self.samples += 1
                        if message["seq"] <= last:
                            self.wrong.append("sequence %s after %s" % (message["seq"], last))
                        last = message["seq"]
        except Exception as error:  # noqa: BLE001 - whatever ends the connection is what the test must tell
            self.wrong.append(repr(error))


class KilledBroker(Scenario):
    def test_readers_and_bridge_attach_again_within_a_second(self):
        broker = self.start_broker("--period", 50, "--simulate", "mi300x:1")
        bridge = self.start_bridge()
        watcher = Watcher(self.port)
        watcher.start()
        readers = [subprocess.Popen([str(BIN / "tests/segment_reader_tool"), "--plain", "--seconds", str(ROUNDS * 0.4 + 3), "--pause-us",
                                     "500", "--threads", "2"], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for _ in range(4)]
        for _ in range(ROUNDS // 2):
            broker.kill()
            broker.wait()
            broker = self.start_broker("--period", 50, "--simulate", "mi300x:1")
            time.sleep(0.3)
        harness.wait_for(lambda: len(watcher.epochs) > ROUNDS // 2 or not watcher.is_alive(), 3, what="the last broker at the bridge")
        watcher.ending = True
        watcher.join(5)
        self.assertEqual(watcher.wrong, [])
        self.assertGreater(watcher.samples, ROUNDS // 2)
        self.assertTrue(bridge.alive())
        self.assertEqual(self.get("/healthz")["state"], "live")
        for reader in readers:
            out, err = reader.communicate(timeout=300)
            self.assertEqual((reader.returncode, err), (0, ""), out)
            result = json.loads(out)
            self.assertEqual((result["torn"], result["older"], result["errors"]), (0, 0, 0))
            self.assertGreaterEqual(result["epochs"], ROUNDS // 2, "each broker's samples were seen")
            self.assertLess(result["slowest_attach"], 1.0)


if __name__ == "__main__":
    harness.main()
