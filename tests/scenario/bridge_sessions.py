"""What sessions say, from an annotating process by a real broker and the bridge to a client: promptly, in order, and not to everybody."""
import json
import os
import signal
import subprocess
import time
import unittest

import harness
from harness import wait_for
from websocket import WebSocket, raw_request

TOOL = harness.BIN / "tests/annotate_tool"


class Annotator:
    """A process with a session; call it with a line for tests/helpers/annotate_tool.c."""

    def __init__(self, test, label, uid=None):
        def become():
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        self.process = subprocess.Popen([str(harness.for_any_user(TOOL))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=test.env,
                                        preexec_fn=become if uid else None)
        test.addCleanup(self.end)
        self("attach " + label)
        wait_for(lambda: self("poll") == 1, what="the broker to have the session")

    def __call__(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[0])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def labels(message):
    return [s["label"] for s in message["sessions"]]


class Sessions(harness.Scenario):
    def begin(self, *bridge_args, period=100, model="mi300x"):
        self.broker = self.start_broker("--period", period, "--simulate", model)
        self.bridge = self.start_bridge(*bridge_args)

    def client(self, **sub):
        """A client that has got its snapshot, of the subscription where there is one."""
        ws = WebSocket(self.port)
        self.addCleanup(ws.socket.close)
        ws.snap = ws.until("snap")
        if sub:
            ws.send({"type": "sub", **sub})
            ws.until("hello")
            ws.snap = ws.until("snap")
        return ws

    def sessions_until(self, ws, condition, timeout=5):
        end = time.monotonic() + timeout
        while True:
            message = ws.until("sessions", max(0.01, end - time.monotonic()))
            if condition(message):
                return message

    def events_until(self, ws, kind, timeout=5):
        """Events up to the first of a type; that is the last."""
        seen = []
        end = time.monotonic() + timeout
        while not any(e["type"] == kind for e in seen):
            seen += ws.until("event", max(0.01, end - time.monotonic()))["events"]
        return seen

    def test_a_span_from_begin_to_usage(self):
        self.begin()
        ws = self.client()
        self.assertEqual((ws.snap["sessions"], ws.snap["hidden"]), ([], 0))
        tool = Annotator(self, "demo")
        tool("begin a p1 3 KSampler -")
        message = self.sessions_until(ws, lambda m: m["sessions"] and m["sessions"][0]["spans"])
        session = message["sessions"][0]
        span = session["spans"][0]
        self.assertEqual((session["label"], session["pid"], session["uid"], session["comm"]),
                         ("demo", tool.process.pid, os.geteuid(), "annotate_tool"))
        self.assertEqual((span["job"], span["node"], span["name"], span["value"], span["gpus"]), ("p1", "3", "KSampler", None, None))
        self.assertEqual(message["epoch"], ws.snap["epoch"])
        self.assertAlmostEqual(span["start"], message["t"], delta=2000)
        tool("begin b p1 4 inner a 0")
        tool("step b 3 10")
        tool("gauge 0 100 200")
        def stepped(m):
            s = m["sessions"][0]
            return len(s["spans"]) == 2 and s["spans"][1]["value"] == 3 and s["gauges"]
        session = self.sessions_until(ws, stepped)["sessions"][0]
        self.assertEqual((session["spans"][1]["parent"], session["spans"][1]["max"], session["spans"][1]["gpus"]), (span["id"], 10, [0]))
        self.assertEqual(session["gauges"], [{"gpu": 0, "allocated": 100, "reserved": 200, "dynamic": None}])
        time.sleep(0.3)
        tool("end b")
        events = self.events_until(ws, "usage")
        end, usage = [next(e for e in events if e["type"] == kind) for kind in ("end", "usage")]
        self.assertLess(events.index(end), events.index(usage))
        for event in (end, usage):
            self.assertEqual((event["name"], event["node"], event["label"]), ("inner", "4", "demo"))
            self.assertEqual((event["session"], event["span"]), (end["session"], session["spans"][1]["id"]))
        self.assertGreater(usage["usage"]["energy"], 0)
        self.assertEqual(usage["usage"]["gpu"], 0)
        self.assertNotIn("step", [e["type"] for e in events])
        document = self.get("/api/v1/sessions")
        self.assertEqual(labels(document), ["demo"])
        self.assertEqual([s["name"] for s in document["finished"]], ["inner"])
        self.assertEqual(document["finished"][0]["usage"], [usage["usage"]])
        self.assertEqual(document["finished"][0]["epoch"], ws.snap["epoch"])

    def test_a_begin_does_not_wait_for_a_tick(self):
        self.begin(period=5000)
        ws = self.client(period=5000)
        tool = Annotator(self, "demo")
        self.sessions_until(ws, lambda m: labels(m) == ["demo"])
        before = self.get("/api/v1/snapshot")["t"]
        tool("instant p1 1 tick")
        self.events_until(ws, "instant")
        self.assertEqual(self.get("/api/v1/snapshot")["t"], before, "the newest sample is still the one from before")

    def test_a_killed_process_is_gone_at_once_and_its_spans_abandoned(self):
        self.begin(period=1000)
        ws = self.client()
        tool = Annotator(self, "victim")
        tool("begin a p1 3 KSampler -")
        self.sessions_until(ws, lambda m: m["sessions"] and m["sessions"][0]["spans"])
        killed = time.monotonic()
        tool.kill()
        self.sessions_until(ws, lambda m: m["sessions"] == [])
        self.assertLess(time.monotonic() - killed, 1)
        def abandoned():
            finished = self.get("/api/v1/sessions")["finished"]
            return finished and finished[0]["usage"] and finished[0]
        span = wait_for(abandoned, what="the final usage")
        self.assertEqual((span["name"], span["label"], span["abandoned"]), ("KSampler", "victim", True))

    def test_who_does_not_want_them_gets_neither(self):
        self.begin()
        ws, other = self.client(events=False), self.client()
        self.assertNotIn("sessions", ws.snap)
        tool = Annotator(self, "demo")
        tool("begin a p1 3 x -")
        tool("end a")
        self.events_until(other, "usage")
        ws.send({"type": "ping", "id": 1})
        seen = []
        ws.until("pong", also=seen)
        self.assertFalse({"sessions", "event", "gap"} & {m["type"] for m in seen}, seen)
        ws.send({"type": "sub"})
        self.assertEqual(labels(ws.until("snap")), ["demo"])
        tool("instant p1 1 hello")
        self.assertEqual([e["name"] for e in self.events_until(ws, "instant")], ["hello"])

    def test_what_a_paused_client_missed_is_counted(self):
        self.begin()
        ws, other = self.client(), self.client()
        ws.send({"type": "pause"})
        ws.send({"type": "ping", "id": 1})
        tool = Annotator(self, "demo")
        for i in range(5):
            tool("instant p1 %d i" % i)
        seen = []
        while sum(e["type"] == "instant" for e in seen) < 5:
            seen += other.until("event")["events"]
        ws.send({"type": "resume"})
        before = []
        snap = ws.until("snap", also=before)
        self.assertEqual(labels(snap), ["demo"])
        gaps = [m for m in before if m["type"] == "gap" and "events" in m]
        self.assertEqual([(g["why"], g["events"]) for g in gaps], [("paused", len(seen))])
        self.assertFalse([m for m in before if m["type"] in ("sessions", "event")])

    def test_sessions_survive_a_restart_of_the_broker(self):
        self.begin()
        ws = self.client()
        tool = Annotator(self, "steady")
        tool("begin a p1 3 long -")
        self.sessions_until(ws, lambda m: m["sessions"] and m["sessions"][0]["spans"])
        self.broker.kill()
        self.broker.wait()
        self.broker = self.start_broker("--period", "100", "--simulate", "mi300x")
        while ws.until("hello")["state"] != "live":
            pass
        def back():
            tool("poll")
            sessions = self.get("/api/v1/sessions")["sessions"]
            return sessions and sessions[0]["spans"]
        self.assertEqual(wait_for(back, what="the session at the new broker")[0]["name"], "long")
        tool("end a")
        self.events_until(ws, "end")

    def test_other_users_are_only_counted(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to be somebody else")
        self.folder.chmod(0o755)
        self.begin()
        ws = self.client()
        mine, other = Annotator(self, "mine"), Annotator(self, "secret", uid=65534)
        for tool in (mine, other):
            tool("begin a p1 3 %s -" % ("visible" if tool is mine else "hidden-name"))
        message = self.sessions_until(ws, lambda m: m["hidden"] == 1 and m["sessions"] and m["sessions"][0]["spans"])
        self.assertEqual(labels(message), ["mine"])
        for tool in (other, mine):
            tool("end a")
        texts = [json.dumps(e) for e in self.events_until(ws, "usage")]
        document = self.get("/api/v1/sessions")
        self.assertEqual((labels(document), document["hidden"], len(document["finished"])), (["mine"], 1, 1))
        late = self.client()
        self.assertEqual((labels(late.snap), late.snap["hidden"]), (["mine"], 1))
        for text in texts + [json.dumps(document), json.dumps(late.snap)]:
            self.assertNotIn("secret", text)
            self.assertNotIn("hidden-name", text)
        self.bridge.stop()
        self.start_bridge("--show-all")
        document = self.get("/api/v1/sessions")
        self.assertEqual((sorted(labels(document)), document["hidden"], len(document["finished"])), (["mine", "secret"], 0, 2))

    def test_a_slow_client_is_told_what_it_missed_and_nobody_waits_for_it(self):
        self.begin()
        fast, slow = self.client(), WebSocket(self.port, receive_buffer=4096)
        self.addCleanup(slow.socket.close)
        slow.until("snap")
        tool = Annotator(self, "chatty")
        def count(ws, seen, timeout):
            message = ws.receive(timeout)
            if message["type"] == "event":
                seen["events"] += len(message["events"])
                seen["last"] = message["events"][-1]["name"]
            elif message["type"] == "gap" and "events" in message:
                seen["missed"] += message["events"]
                self.assertEqual(message["why"], "slow")
        quick, lame = ({"events": 0, "missed": 0, "last": None} for _ in range(2))
        end = time.monotonic() + 60
        while quick["events"] < 6000:  # more than the bridge keeps and the kernel buffers
            for i in range(40):
                tool("instant p1 %d %s" % (i, "n" * 60))
            count(fast, quick, 5)
            self.assertLess(time.monotonic(), end)
        time.sleep(1)  # the broker takes 4096 events a second of one client, and the last is to be among them
        tool("instant p1 0 last")
        for ws, seen in ((fast, quick), (slow, lame)):
            while seen["last"] != "last":
                self.assertLess(time.monotonic(), end)
                count(ws, seen, 5)
        self.assertGreater(lame["missed"], 0)
        self.assertEqual(lame["events"] + lame["missed"], quick["events"] + quick["missed"])

    def test_a_stopped_bridge_goes_on_where_the_ring_still_reaches(self):
        self.begin()
        ws = self.client()
        tool = Annotator(self, "demo")
        self.events_until(ws, "attach")
        self.bridge.kill(signal.SIGSTOP)
        for i in range(50):
            tool("instant p1 %d i" % i)
            time.sleep(0.002)
        self.bridge.kill(signal.SIGCONT)
        nodes = []
        while len(nodes) < 50:
            nodes += [int(e["node"]) for e in ws.until("event")["events"]]
        self.assertEqual(nodes, list(range(50)))

    def test_the_document_is_for_get_and_head(self):
        self.begin()
        for method, status, body in (("GET", 200, True), ("HEAD", 200, False), ("POST", 405, True)):
            got = raw_request(self.port, "%s /api/v1/sessions HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (method, self.port))
            self.assertEqual((got[0], bool(got[2])), (status, body), method)


if __name__ == "__main__":
    harness.main()
