"""Who holds the GPUs, through a real bridge: over HTTP, over the WebSocket, and not to everybody."""
import json
import os
import socket
import time
import unittest

import harness
from process_stage import GIB, ProcessStage
from websocket import WebSocket, raw_request

OTHER = 54321


class Processes(harness.Scenario):
    def begin(self, *bridge_args, devices=1):
        self.stage = ProcessStage(self, devices)
        self.hold(3 * GIB)
        self.bridge = self.start_bridge(*bridge_args)
        harness.wait_for(lambda: self.get("/api/v1/processes")["gpus"], what="the bridge to see the broker")

    def hold(self, vram, hidden=0):
        self.stage.row(4711, os.getuid(), vram, 4096, 91, 3, "python3", flags=1, sharers=2, container="3f2a9c0011aa")
        self.stage.row(12, OTHER, GIB, 0, comm="secret-name")
        self.stage.table(hidden=hidden, external=GIB // 4)

    def client(self, processes=True, **kept):
        ws = WebSocket(self.port, **kept)
        self.addCleanup(ws.socket.close)
        ws.until("snap")
        ws.send({"type": "sub", "processes": processes})
        ws.until("hello")
        ws.snap = ws.until("snap")
        return ws

    def processes_until(self, ws, condition, timeout=20):
        end = time.monotonic() + timeout
        while True:
            message = ws.until("processes", max(0.01, end - time.monotonic()))
            if condition(message["gpus"][0]):
                return message

    def test_the_document_tells_the_own_user_s_and_counts_the_others(self):
        self.begin(devices=2)
        document = self.get("/api/v1/processes")
        self.assertEqual((document["v"], document["state"], [g["gpu"] for g in document["gpus"]]), (1, "live", [0, 1]))
        gpu = document["gpus"][0]
        row = gpu["rows"][0]
        self.assertEqual({k: row[k] for k in ("pid", "uid", "comm", "container", "vram", "gtt", "gfx_busy", "encode_busy", "sharers", "kfd", "partial")},
                         {"pid": 4711, "uid": os.getuid(), "comm": "python3", "container": "3f2a9c0011aa", "vram": 3 * GIB, "gtt": 4096, "gfx_busy": 91,
                          "encode_busy": None, "sharers": 2, "kfd": True, "partial": False})
        self.assertEqual((len(gpu["rows"]), gpu["hidden"], gpu["hidden_vram"], gpu["external"]), (1, 1, GIB, GIB // 4))
        self.assertIsNone(document["gpus"][1]["rows"])
        self.assertNotIn("secret-name", json.dumps(document))
        self.bridge.stop()
        self.start_bridge("--show-all")
        gpu = harness.wait_for(lambda: self.get("/api/v1/processes")["gpus"])[0]
        self.assertEqual(([r["comm"] for r in gpu["rows"]], gpu["hidden"], gpu["hidden_vram"]), (["python3", "secret-name"], 0, 0))

    def test_one_gpu_is_asked_for_by_index_or_id(self):
        self.begin(devices=2)
        for gpu, found in (("0", [0]), ("1", [1]), ("0000:02:00.0", [1])):
            self.assertEqual([g["gpu"] for g in self.get("/api/v1/processes?gpu=" + gpu)["gpus"]], found)
        for gpu, status in (("9", 404), ("host", 400), ("x", 400), ("", 400), ("-1", 400), ("0000:09:00.0", 404), ("1e3", 400)):
            got = raw_request(self.port, "GET /api/v1/processes?gpu=%s HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (gpu, self.port))
            self.assertEqual(got[0], status, gpu)

    def test_the_document_is_for_get_and_head_and_behind_the_token(self):
        token = self.folder / "token"
        token.write_text("a-token-of-some-length\n")
        token.chmod(0o600)
        self.stage = ProcessStage(self)
        self.start_bridge("--token-file", token)
        head = "Host: localhost:%d\r\nAuthorization: Bearer a-token-of-some-length\r\n\r\n" % self.port
        for method, status, body in (("GET", 200, True), ("HEAD", 200, False), ("POST", 405, True)):
            got = raw_request(self.port, "%s /api/v1/processes HTTP/1.1\r\n%s" % (method, head))
            self.assertEqual((got[0], bool(got[2])), (status, body), method)
        self.assertEqual(raw_request(self.port, "GET /api/v1/processes HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % self.port)[0], 401)

    def test_only_who_asks_hears_of_them_and_only_of_changes(self):
        self.begin()
        quiet, ws = self.client(False), self.client()
        self.assertNotIn("processes", quiet.snap)
        self.assertEqual(ws.snap["processes"][0]["rows"][0]["comm"], "python3")
        self.hold(5 * GIB)
        message = self.processes_until(ws, lambda g: g["rows"][0]["vram"] == 5 * GIB)
        self.assertEqual((message["gpus"][0]["hidden"], message["gpus"][0]["hidden_vram"]), (1, GIB))
        self.assertNotIn("secret-name", json.dumps([message, ws.snap]))
        self.hold(5 * GIB)  # a scan that found the same
        end = time.monotonic() + 2.5
        try:
            while time.monotonic() < end:
                self.assertNotEqual(ws.receive(max(0.01, end - time.monotonic()))["type"], "processes")
        except (TimeoutError, socket.timeout):
            pass
        self.hold(6 * GIB)
        self.processes_until(ws, lambda g: g["rows"][0]["vram"] == 6 * GIB)
        ws.send({"type": "sub"})  # and no longer
        ws.until("hello")
        self.assertNotIn("processes", ws.until("snap"))
        self.hold(7 * GIB)
        late = self.client()
        self.processes_until(late, lambda g: g["rows"][0]["vram"] == 7 * GIB)
        for silent in (quiet, ws):
            silent.send({"type": "ping", "id": 1})
            while True:
                kind = silent.receive(5)["type"]
                self.assertNotEqual(kind, "processes")
                if kind == "pong":
                    break

    def test_a_pause_ends_with_what_is_so_now(self):
        self.begin()
        ws = self.client()
        ws.send({"type": "pause"})
        ws.send({"type": "history", "seconds": 1})
        ws.until("history")
        self.hold(8 * GIB)
        ws.send({"type": "resume"})
        self.assertEqual(ws.until("snap")["processes"][0]["rows"][0]["vram"], 8 * GIB)
        self.hold(9 * GIB)
        self.processes_until(ws, lambda g: g["rows"][0]["vram"] == 9 * GIB)

    def test_garbage_in_the_wish_is_told_and_changes_nothing(self):
        self.begin()
        ws = self.client()
        for wish in (1, 0, None, "true", [], {}, [True], 1.5, "x" * 3000):
            ws.send({"type": "sub", "processes": wish})
            self.assertEqual(ws.until("err")["code"], "bad_message")
            time.sleep(0.06)  # 20 messages a second
        self.hold(4 * GIB)
        self.processes_until(ws, lambda g: g["rows"][0]["vram"] == 4 * GIB)

    def test_a_client_that_reads_nothing_gets_the_newest_and_holds_nobody_up(self):
        self.begin()
        fast, slow = self.client(), self.client(receive_buffer=4096)
        for i in range(60):  # a long list, so that the slow one's buffers fill
            self.stage.row(5000 + i, os.getuid(), (100 - i) * GIB // 8, 0, comm="worker")
        self.stage.table(external=1)
        self.processes_until(fast, lambda g: g["external"] == 1)
        for external in range(2, 5):
            self.hold(GIB)
            for i in range(60):
                self.stage.row(5000 + i, os.getuid(), (100 - i) * GIB // 8, 0, gfx=external, comm="worker")
            self.stage.table(external=external)
            self.processes_until(fast, lambda g, wanted=external: g["external"] == wanted)
        self.processes_until(slow, lambda g: g["external"] == 4)


if __name__ == "__main__":
    harness.main()
