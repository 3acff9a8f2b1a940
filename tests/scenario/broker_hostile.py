"""A client that does its worst: scribbles over its memory, cuts it, punches holes into it, talks nonsense, rings without end. The
broker lives on within bounds, and nobody else notices. GPUTAP_HOSTILE_SECONDS (5) is how long."""
import array
import ctypes
import ctypes.util
import errno
import json
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

import harness
from harness import BIN, Scenario, wait_for
from segment import Segment

SECONDS = float(os.environ.get("GPUTAP_HOSTILE_SECONDS", "5"))
MAGIC, HELLO, GRANT, REFUSE, PERIOD, WITH_SESSION = 0x54504731, 1, 2, 3, 4, 1
MEMORY, EVENTS_DEPTH = 65536, 64
EVENTS_AT = 4096 + 64 + 32 * 640 + 16 * 256  # shm/client_memory.h
PUNCH_HOLE, KEEP_SIZE = 2, 1
libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def hello(label=b"hostile", flags=WITH_SESSION, major=1, period=0):
    return struct.pack("<IIHHIQ48s32x", MAGIC, HELLO, major, 1, flags, period, label)


class Client:
    """One connection by shm/control_protocol.h, and the memory that it was given."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(2)
        self.memory = None
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise

    def enter(self, **more):
        try:
            self.socket.send(hello(**more))
            data, extra, _, _ = self.socket.recvmsg(512, socket.CMSG_SPACE(2 * 4))
        except OSError:
            return False
        if len(data) < 16:
            return False
        fds = array.array("i")
        for level, kind, body in extra:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(body[:len(body) - len(body) % 4])
        self.type, self.slot, self.generation = struct.unpack_from("<III", data, 4)
        if self.type != GRANT or len(fds) != 2:
            for fd in fds:
                os.close(fd)
            return False
        self.file, self.bell = fds
        self.memory = mmap.mmap(self.file, MEMORY)
        return True

    def ring(self):
        try:
            os.write(self.bell, struct.pack("<Q", 1))
        except BlockingIOError:
            pass

    def close(self):
        if self.memory is not None:
            self.memory.close()
            os.close(self.file)
            os.close(self.bell)
            self.memory = None
        self.socket.close()


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Hostile(Scenario):
    base = harness.MEMORY

    def setUp(self):
        super().setUp()
        (self.folder / "tests").mkdir()
        self.broker = self.start_broker("--period", 100, "--simulate", "mi300x:2")
        self.path = self.run_dir / "t" / "control.sock"
        wait_for(lambda: self.view().device_count == 2, what="devices")

    def view(self):
        return Segment(self.run_dir / "t" / "telemetry", live=True)

    def client(self, **more):
        client = Client(self.path)
        self.addCleanup(client.close)
        self.assertTrue(client.enter(**more))
        return client

    def without_session(self):
        client = Client(self.path)
        self.addCleanup(client.close)
        client.socket.send(hello(flags=0))
        self.assertEqual(struct.unpack_from("<I", client.socket.recv(512), 4)[0], GRANT)
        return client

    def honest(self):
        """An honest client at a pace, for as long as the test; its turns are two nested spans."""
        command = [str(BIN / "tests/annotator_tool"), "--label", "honest", "--nested", "1", "--pause-us", "15000", "--steps", "2"]
        process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, wait_for(lambda: next((s for s in self.view().sessions() if s["label"] == "honest"), None), what="session")

    def test_memory_cannot_be_cut_or_grown(self):
        client = self.client()
        for size in (0, 4096, MEMORY - 1, MEMORY + 4096):
            with self.assertRaises(PermissionError) as caught:
                os.ftruncate(client.file, size)
            self.assertEqual(caught.exception.errno, errno.EPERM)

    def scribble(self, client, rng):
        """One piece of mischief with the memory."""
        kind = rng.randrange(7)
        at = rng.randrange(0, MEMORY - 512)
        if kind == 0:
            client.memory[at:at + 512] = rng.randbytes(512)
        elif kind == 1:
            client.memory[4096:MEMORY] = rng.randbytes(MEMORY - 4096)
        elif kind == 2:
            libc.fallocate(client.file, PUNCH_HOLE | KEEP_SIZE, at // 4096 * 4096, 4096 * rng.randrange(1, 5))
        elif kind == 3:  # heads of rings jump
            struct.pack_into("<Q", client.memory, at // 8 * 8, rng.choice([0, 1, 2 ** 63, 2 ** 64 - 1, rng.randrange(2 ** 64)]))
        elif kind == 4:
            try:
                os.ftruncate(client.file, rng.choice([0, 1, 4096, MEMORY * 2]))
                self.cut += 1
            except PermissionError:
                pass
        elif kind == 5:
            client.memory[4096:MEMORY] = bytes(MEMORY - 4096)
        else:
            self.plausible(client, rng)

    def plausible(self, client, rng):
        """An event that could be one, under a stamp that fits: with a foreign slot, times, numbers and texts that make no sense."""
        base = EVENTS_AT
        head = max(1, struct.unpack_from("<Q", client.memory, base + 64)[0])
        at = base + 128 + head % EVENTS_DEPTH * 256
        any_word = lambda: rng.randrange(2 ** 64)  # noqa: E731
        body = struct.pack("<QQIIIIIIQQQddQ", any_word(), 0, rng.randrange(9), 255, rng.randrange(64), 1, 1, 0, rng.randrange(2 ** 16),
                           any_word(), any_word(), float("nan"), float("inf"), 0) + rng.randbytes(160)
        client.memory[at:at + 256] = struct.pack("<Q", (2 * head + 2) % 2 ** 64) + body[:248]
        struct.pack_into("<Q", client.memory, base + 64, (head + 1) % 2 ** 64)

    def babble(self, rng, until):
        """Packets that are none, connections that say nothing, that come and go."""
        while time.monotonic() < until:
            client = None
            try:
                client = Client(self.path)
                kind = rng.randrange(6)
                if kind == 0:
                    client.socket.send(rng.randbytes(rng.randrange(1, 4096)))
                elif kind == 1:
                    client.enter(major=rng.randrange(2, 99))
                elif kind == 2:
                    client.socket.send(hello()[:rng.randrange(1, 100)])
                elif kind == 3 and client.enter(label=rng.randbytes(48), period=rng.randrange(2 ** 64)):
                    client.socket.send(struct.pack("<IIQ", MAGIC, PERIOD, rng.randrange(2 ** 64)))
                    client.socket.send(hello())
                elif kind == 4:
                    with open("/dev/null") as f:
                        socket.send_fds(client.socket, [hello()], [f.fileno()] * 8)
                self.connections += 1
            except OSError:
                pass
            if client:
                client.close()
            time.sleep(0.004)

    def test_descriptors_sent_along_are_refused(self):
        """Dropping one may block for as long as its sender likes."""
        client = self.without_session()
        with socket.socket() as passed:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [passed.fileno()]))]
            try:
                client.socket.sendmsg([struct.pack("<IIQ", MAGIC, PERIOD, 0)], rights)
            except PermissionError:
                return
        release = tuple(int(part) for part in os.uname().release.split(".")[:2])
        if release < (6, 16):
            self.skipTest("before Linux 6.16 nobody can refuse descriptors")
        self.fail("the broker took a descriptor")

    def test_wish_that_changes_faster_than_the_period_holds_up_no_tick(self):
        client = self.without_session()
        before = self.view().tick
        for i in range(40):
            client.socket.send(struct.pack("<IIQ", MAGIC, PERIOD, (60 + i % 2) * 1000000))
            time.sleep(0.03)
        self.assertGreater(self.view().tick - before, 10)

    def test_others_do_not_notice(self):
        self.cut = self.connections = 0
        honest, mine = self.honest()
        files = len(os.listdir("/proc/%d/fd" % self.broker.pid))
        quiet = cpu_seconds(self.broker.pid)
        time.sleep(1)
        quiet = cpu_seconds(self.broker.pid) - quiet
        view, rng, until = self.view(), random.Random(7), time.monotonic() + SECONDS
        facts = [view.device(i) for i in range(2)]
        babbler = threading.Thread(target=self.babble, args=(random.Random(8), until))
        begun, place, samples, deeds = {}, 0, [0, 0], 0
        clients = [self.client(label=b"hostile") for _ in range(3)]
        busy, started = cpu_seconds(self.broker.pid), time.monotonic()
        babbler.start()
        while time.monotonic() < until:
            for client in clients:
                self.scribble(client, rng)
                client.ring()
                deeds += 1
            if deeds % 999 == 0:
                again = Client(self.path)
                self.addCleanup(again.close)
                if again.enter():
                    clients.append(again)
                    clients.pop(0).close()
            if deeds % 150 == 0:
                place = self.follow(view, place, mine, begun)
                self.check_others(view, facts, mine, samples)
        babbler.join(30)
        spent = (cpu_seconds(self.broker.pid) - busy) / (time.monotonic() - started)
        self.assertTrue(self.broker.alive(), self.broker.output())
        honest.send_signal(signal.SIGTERM)
        said, _ = honest.communicate(timeout=20)
        said = json.loads(said)
        time.sleep(0.3)
        self.follow(view, place, mine, begun)
        noticed = [view.session(client.slot) for client in clients]
        self.assertTrue(any(s and s["label"] == "hostile" and s["rejected"] and s["lost"] for s in noticed), noticed)
        for client in clients:
            client.close()
        self.assertEqual((said["errors"], said["dropped"], self.cut), (0, 0, 0))
        wait_for(lambda: not view.sessions(), 5, what="no session")
        wait_for(lambda: len(os.listdir("/proc/%d/fd" % self.broker.pid)) <= files, 5, what="no more files than before")
        print("  %.0f s, %d deeds, %d connections: broker at %.0f %% of a processor (%.1f %% before), honest client's %d spans complete, "
              "its slowest call %.1f ms"
              % (SECONDS, deeds, self.connections, spent * 100, quiet * 100, len(begun), said["slowest_us"] / 1e3))
        self.assertEqual([span for span, count in begun.items() if count != [1, 1]], [])
        self.assertGreater(len(begun), 20 * SECONDS)
        self.assertLess(spent, 0.9)
        self.assertGreater(min(samples), SECONDS)

    def follow(self, view, place, mine, begun):
        """Begins and ends of the honest client, by span."""
        for event in view.events(place):
            self.assertEqual(event["place"], place, "this test fell behind the events")
            place += 1
            if (event["slot"], event["generation"]) == (mine["slot"], mine["generation"]):
                self.assertEqual(event["pid"], mine["pid"])
                if event["type"] in ("begin", "end"):
                    begun.setdefault(event["span"], [0, 0])[event["type"] == "end"] += 1
        return place

    def check_others(self, view, facts, mine, samples):
        for device in range(2):
            snapshot = view.snapshot(device)
            if snapshot and snapshot["mono_ns"]:
                samples[device] += 1
                self.assertEqual(snapshot["vram_total"], 206158430208)
            now = view.device(device)
            self.assertTrue(now is None or now == facts[device])
        session = view.session(mine["slot"])
        if session:
            for field in ("generation", "pid", "uid", "label", "lost", "rejected", "dropped"):
                self.assertEqual(session[field], mine[field], field)
            self.assertLessEqual(len(session["spans"]), 3)


if __name__ == "__main__":
    harness.main()
