"""The HTTP side: what is bound, who is let in, what each path answers."""
import gzip
import json
import os
import pathlib
import signal
import socket
import stat
import time
import unittest

import harness
from harness import wait_for
from websocket import connect_socket, raw_request, read_head, status_of

LISTEN = "0A"


def bound_sockets(pid):
    """What a process really listens on, from the kernel: {(address, port)}."""
    inodes = set()
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            link = os.readlink("/proc/%d/fd/%s" % (pid, name))
        except OSError:
            continue
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    found = set()
    for table, family, size in (("tcp", socket.AF_INET, 8), ("tcp6", socket.AF_INET6, 32)):
        path = pathlib.Path("/proc/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            if fields[3] != LISTEN or fields[9] not in inodes:
                continue
            address, port = fields[1].split(":")
            raw = b"".join(bytes.fromhex(address[i:i + 8])[::-1] for i in range(0, size, 8))
            found.add((socket.inet_ntop(family, raw), int(port, 16)))
    return found


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
            return True
    except OSError:
        return False


class Bound(harness.Scenario):
    def test_only_what_was_asked_for_is_bound(self):
        bridge = self.start_bridge()
        self.assertEqual(bound_sockets(bridge.pid), {("127.0.0.1", self.port)})

    @unittest.skipUnless(has_ipv6(), "no IPv6 loopback")
    def test_both_families(self):
        port = harness.free_port()
        bridge = self.start_bridge("--listen", "[::1]:%d" % port)
        self.assertEqual(bound_sockets(bridge.pid), {("127.0.0.1", self.port), ("::1", port)})
        status, _, _ = raw_request(("::1", port), "GET /healthz HTTP/1.1\r\nHost: [::1]:%d\r\n\r\n" % port)
        self.assertEqual(status, 503)
        self.assertIn("gputap-bridge ready: http://[::1]:%d/" % port, bridge.output())

    def test_ready_line_names_the_port_that_was_found(self):
        bridge = self.start("gputap-bridge", "--instance", "t", "--listen", "127.0.0.1:0")
        wait_for(lambda: "ready: http://127.0.0.1:" in bridge.output(), what="ready line")
        port = int(bridge.output().split("ready: http://127.0.0.1:")[1].split("/")[0])
        self.assertEqual(bound_sockets(bridge.pid), {("127.0.0.1", port)})

    def test_second_bridge_on_the_port_exits_1(self):
        self.start_bridge()
        second = self.run_program("gputap-bridge", "--instance", "u", "--listen", "127.0.0.1:%d" % self.port)
        self.assertEqual(second.returncode, 1)
        self.assertIn("is in use", second.stderr)

    def test_open_address_without_token_refuses(self):
        for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:1"):
            result = self.run_program("gputap-bridge", "--listen", address)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("--token-file", result.stderr)

    def test_bad_usage_exits_2(self):
        for args in (["--listen"], ["--listen", "nonsense"], ["--listen", "127.0.0.1:70000"], ["--listen", "example.org:80"],
                     ["--frob"], ["--instance", "../x"], ["stray"], ["--allow-origin", "nonsense"], ["--web", "/nonexistent"],
                     ["--max-connections", "0"], ["--token-file", "/nonexistent"]):
            result = self.run_program("gputap-bridge", *args)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn("gputap-bridge: error: ", result.stderr)

    def test_help_and_version(self):
        self.assertIn("--token-file", self.run_program("gputap-bridge", "--help").stdout)
        self.assertRegex(self.run_program("gputap-bridge", "--version").stdout, r"^gputap-bridge \d+\.\d+\.\d+\n$")

    def test_systemd_socket_is_taken(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            port = s.getsockname()[1]
            script = "import os,sys; os.dup2(%d,3); os.environ.update(LISTEN_PID=str(os.getpid()),LISTEN_FDS='1');" % s.fileno()
            script += "os.execv(sys.argv[1], sys.argv[1:])"
            import subprocess
            import sys
            process = subprocess.Popen([sys.executable, "-c", script, str(harness.BIN / "gputap-bridge"), "--instance", "t"],
                                       pass_fds=[s.fileno()], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.assertIn(b"ready: http://127.0.0.1:%d/" % port, process.stdout.readline())
            self.assertEqual(bound_sockets(process.pid), {("127.0.0.1", port)})
            self.assertEqual(raw_request(port, "GET /healthz HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % port)[0], 503)
        finally:
            process.terminate()
            self.assertEqual(process.wait(5), 0)
            process.stdout.close()


class Http(harness.Scenario):
    def ask(self, line="GET / HTTP/1.1", host=None, extra=""):
        host = "127.0.0.1:%d" % self.port if host is None else host
        return raw_request(self.port, "%s\r\n%s%s\r\n" % (line, "Host: %s\r\n" % host if host else "", extra))

    def field(self, head, name):
        return next((l.split(": ", 1)[1] for l in head.split("\r\n") if l.lower().startswith(name.lower() + ":")), None)

    def test_hosts(self):
        self.start_bridge("--allow-host", "gpu.example", "--allow-host", "proxy.example:9000")
        p = self.port
        matrix = [("127.0.0.1:%d" % p, 200), ("localhost:%d" % p, 200), ("LOCALHOST:%d" % p, 200), ("[::1]:%d" % p, 200),
                  ("gpu.example", 200), ("GPU.example:1234", 200), ("proxy.example:9000", 200), ("", 400), ("evil.example", 403),
                  ("evil.example:%d" % p, 403), ("127.0.0.1", 403), ("localhost", 403),
                  ("127.0.0.1:%d" % (p + 1 if p < 65535 else 1), 403),
                  ("localhost.:%d" % p, 403), ("localhost.evil.example:%d" % p, 403), ("127.0.0.1.evil.example:%d" % p, 403),
                  ("127.0.0.1:%dx" % p, 403), ("127.1:%d" % p, 403), ("2130706433:%d" % p, 403), ("[::1%%lo]:%d" % p, 403),
                  ("gpu.example.evil", 403), ("xgpu.example", 403), ("proxy.example", 403), ("user@127.0.0.1:%d" % p, 403),
                  ("127.0.0.1:%d, evil.example" % p, 403)]
        for host, want in matrix:
            for path in ("/", "/healthz", "/api/v1/snapshot"):
                status, _, _ = self.ask("GET %s HTTP/1.1" % path, host)
                if want == 200 and path == "/healthz":
                    self.assertEqual(status, 503, host)
                else:
                    self.assertEqual(status, want, (host, path))

    def test_two_hosts_are_refused(self):
        self.start_bridge()
        status, _, _ = self.ask(extra="Host: evil.example\r\n")
        self.assertIn(status, (400, 403))

    def test_origins(self):
        self.start_bridge("--allow-origin", "https://app.example")
        p = self.port
        matrix = [("http://127.0.0.1:%d" % p, 200, None), ("http://localhost:%d" % p, 200, None),
                  ("https://app.example", 200, "listed"),
                  ("http://127.0.0.1:8188", 200, "listed"), ("null", 403, None), ("http://evil.example", 403, None),
                  ("https://app.example.evil", 403, None), ("https://app.example:443", 403, None),
                  ("http://app.example", 403, None),
                  ("https://127.0.0.1:%d" % p, 403, None), ("file://", 403, None), ("http://127.0.0.1", 403, None),
                  ("http://127.0.0.1:%d.evil.example" % p, 403, None), ("http://127.0.0.1:%d/" % p, 403, None)]
        for origin, want, listed in matrix:
            status, head, _ = self.ask("GET /api/v1/snapshot HTTP/1.1", extra="Origin: %s\r\n" % origin)
            self.assertEqual(status, want, origin)
            self.assertEqual(self.field(head, "Access-Control-Allow-Origin"), origin if listed else None)
            self.assertIn("Origin", self.field(head, "Vary"))

    def test_methods(self):
        bridge = self.start_bridge()
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            status, head, body = self.ask("%s /api/v1/snapshot HTTP/1.1" % method, extra="Content-Length: 2\r\n")
            self.assertEqual(status, 405, method)
            self.assertEqual(self.field(head, "Allow"), "GET, HEAD")
            self.assertIn("error", json.loads(body))
        self.assertIn(self.ask("TRACE / HTTP/1.1")[0], (0, 403, 405))
        self.assertEqual(self.ask("GET / HTTP/1.1", extra="Content-Length: 5\r\n\r\nhello")[0], 400)
        self.assertEqual(self.ask("GET / HTTP/1.1", extra="Transfer-Encoding: chunked\r\n")[0], 400)
        self.assertTrue(bridge.alive())

    def test_head_is_get_without_a_body(self):
        self.start_bridge()
        for path in ("/", "/api/v1/snapshot", "/nothing"):
            _, get, body = self.ask("GET %s HTTP/1.1" % path)
            _, head, nothing = self.ask("HEAD %s HTTP/1.1" % path)
            same = [l for l in get.split("\r\n") if not l.startswith("Content-Length")]
            self.assertEqual(same, [l for l in head.split("\r\n") if not l.startswith("Content-Length")])
            self.assertEqual(nothing, b"")

    def test_paths_outside(self):
        self.start_bridge()
        for path in ("/../etc/passwd", "/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/a/../../etc/passwd", "/.git/config",
                     "//etc/passwd", "/index.html/", "/index.htm", "/comfyui/x.js", "/api", "/api/v1", "/api/v2/hello",
                     "/api/v1/hello/x",
                     "/metrics", "/index.html%00.js", "/\\..\\x", "/" + "a" * 3000):
            status, _, _ = self.ask("GET %s HTTP/1.1" % path)
            self.assertIn(status, (404, 431, 0) if "%00" in path or len(path) > 1000 else (404,), path)

    def test_headers_of_every_answer(self):
        self.start_bridge()
        for path in ("/", "/api/v1/snapshot", "/nothing"):
            _, head, _ = self.ask("GET %s HTTP/1.1" % path)
            self.assertEqual(self.field(head, "X-Content-Type-Options"), "nosniff")
            self.assertIn("default-src 'self'; connect-src 'self' ws: wss:", self.field(head, "Content-Security-Policy"))
            self.assertEqual(self.field(head, "Cross-Origin-Resource-Policy"), "same-origin")
            self.assertEqual(self.field(head, "Cache-Control"), "no-cache" if path == "/" else "no-store")

    def test_assets(self):
        self.start_bridge()
        _, plain_head, plain = self.ask("GET /app.js HTTP/1.1")
        _, head, packed = self.ask("GET /app.js HTTP/1.1", extra="Accept-Encoding: br, gzip\r\n")
        self.assertEqual(self.field(head, "Content-Encoding"), "gzip")
        self.assertEqual(gzip.decompress(packed), plain)
        self.assertEqual(self.field(head, "Content-Type"), "text/javascript; charset=utf-8")
        self.assertNotEqual(self.field(head, "ETag"), self.field(plain_head, "ETag"))
        for extra, tag in (("", self.field(plain_head, "ETag")), ("Accept-Encoding: gzip\r\n", self.field(head, "ETag"))):
            status, again, body = self.ask("GET /app.js HTTP/1.1", extra="%sIf-None-Match: \"x\", %s\r\n" % (extra, tag))
            self.assertEqual((status, body), (304, b""))
            self.assertEqual(self.field(again, "ETag"), tag)
        self.assertEqual(self.ask("GET /app.js HTTP/1.1", extra='If-None-Match: "x"\r\n')[0], 200)
        self.assertIsNone(self.field(self.ask("GET /app.js HTTP/1.1", extra="Accept-Encoding: gzip;q=0\r\n")[1],
                                     "Content-Encoding"))

    def test_every_file_of_the_page_is_inside(self):
        web = pathlib.Path(__file__).resolve().parents[2] / "web"
        files = [f.relative_to(web) for f in web.rglob("*") if f.suffix in (".js", ".css", ".html", ".svg", ".json")]
        files = [f for f in files if f.parts[0] not in ("comfyui", "test", "tests", "node_modules")
                 and not f.name.startswith("package")]
        self.start_bridge()
        for file in files:
            status, _, body = self.ask("GET /%s HTTP/1.1" % file)
            self.assertEqual(status, 200, file)
        self.assertEqual(self.ask("GET / HTTP/1.1")[2], self.ask("GET /index.html HTTP/1.1")[2])

    def test_table_of_cards_is_served_as_it_is(self):
        table = (pathlib.Path(__file__).resolve().parents[2] / "data/gpu_specs.json").read_bytes()
        (self.folder / "web").mkdir()
        for arguments in ((), ("--web", self.folder / "web")):
            self.start_bridge(*arguments)
            status, head, body = self.ask("GET /gpu_specs.json HTTP/1.1")
            self.assertEqual((status, body), (200, table))
            self.assertEqual(self.field(head, "Content-Type"), "application/json; charset=utf-8")
            tag = self.field(head, "ETag")
            self.assertEqual(self.ask("GET /gpu_specs.json HTTP/1.1", extra="If-None-Match: %s\r\n" % tag)[0], 304)

    def test_folder_instead_of_the_built_in_page(self):
        web = self.folder / "web"
        web.mkdir()
        (web / "index.html").write_text("<p>mine")
        (web / ".secret").write_text("x")
        (self.folder / "outside.txt").write_text("outside")
        (web / "leaves.txt").symlink_to(self.folder / "outside.txt")
        (web / "stays.txt").symlink_to(web / "index.html")
        self.start_bridge("--web", web)
        self.assertEqual(self.ask()[2], b"<p>mine")
        self.assertEqual(self.ask("GET /stays.txt HTTP/1.1")[0], 200)
        for path in ("/leaves.txt", "/.secret", "/../outside.txt", "/%2e%2e/outside.txt", "/missing", "/..%2foutside.txt"):
            self.assertEqual(self.ask("GET %s HTTP/1.1" % path)[0], 404, path)
        before = self.field(self.ask()[1], "ETag")
        (web / "index.html").write_text("<p>MINE")
        self.assertNotEqual(self.field(self.ask()[1], "ETag"), before)

    def test_keep_alive_and_pipelining(self):
        self.start_bridge()
        request = b"GET /api/v1/snapshot HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % self.port
        with connect_socket(self.port) as s:
            for _ in range(5):
                s.sendall(request)
                head, body = read_head(s)
                length = int(self.field(head, "Content-Length"))
                while len(body) < length:
                    body += s.recv(65536)
                json.loads(body)
            s.sendall(request * 3)
            time.sleep(0.3)
            s.settimeout(1)
            data = b""
            while data.count(b"HTTP/1.1 200 OK") < 3:
                data += s.recv(65536)

    def test_answers_without_a_broker(self):
        self.start_bridge()
        status, _, body = self.ask("GET /healthz HTTP/1.1")
        self.assertEqual((status, json.loads(body)["state"]), (503, "absent"))
        _, _, body = self.ask("GET /api/v1/snapshot HTTP/1.1")
        snapshot = json.loads(body)
        self.assertEqual((snapshot["state"], snapshot["gpus"], snapshot["epoch"], snapshot["v"]), ("absent", [], None, 1))
        self.assertTrue(snapshot["host"])
        self.assertIsNone(snapshot["system"]["metrics"]["cpu_busy"])
        hello = json.loads(self.ask("GET /api/v1/hello HTTP/1.1")[2])
        self.assertEqual(hello["set"], "full")

    def test_answers_with_a_broker(self):
        self.start_broker("--period", "100", "--simulate", "mi300x:2")
        self.start_bridge()
        wait_for(lambda: self.ask("GET /healthz HTTP/1.1")[0] == 200, what="live")
        snapshot = self.get("/api/v1/snapshot")
        simulated = [g for g in snapshot["gpus"] if g["simulated"]]
        self.assertEqual(len(simulated), 2)
        self.assertTrue(snapshot["simulated"])
        gpu = simulated[0]
        self.assertEqual((gpu["pci"], gpu["id"], gpu["vendor"], gpu["state"]), (None, "sim:mi300x:0", "amd", "ok"))
        self.assertEqual(gpu["metrics"]["vram_total"], 192 << 30)
        self.assertEqual(gpu["metrics"]["gfx_busy"], 85)
        self.assertIsNone(gpu["metrics"]["temperature_edge"])
        self.assertEqual(gpu["unknown"]["temperature_edge"], "not supported")
        self.assertEqual(gpu["sources"]["gfx_busy"], "sim")
        hello = self.get("/api/v1/hello")
        self.assertEqual(set(hello["sets"]["full"]["gpu"]), set(gpu["metrics"]))
        self.assertEqual(hello["fields"], hello["sets"]["full"]["gpu"])

    def test_history_arguments(self):
        self.start_broker("--period", "100", "--simulate", "mi300x")
        self.start_bridge()
        index = next(g["index"] for g in self.get("/api/v1/snapshot")["gpus"] if g["simulated"])
        def rows():
            history = self.get("/api/v1/history?gpu=%d&seconds=5&points=5" % index)
            return history if history["rows"] else None
        history = wait_for(rows, what="history")
        self.assertEqual((history["type"], history["gpu"]), ("history", index))
        self.assertLessEqual(len(history["rows"]), 5)
        self.assertEqual(history["rows"][-1][history["fields"].index("gfx_busy")], 85)
        self.assertEqual(self.get("/api/v1/history?gpu=sim:mi300x:0&points=5")["gpu"], index)
        self.assertTrue(history["simulated"])
        host = self.get("/api/v1/history?gpu=host")
        self.assertEqual((host["gpu"], host["simulated"]), (None, False))
        for query, want in (("", 400), ("?gpu=x", 400), ("?gpu=-1", 400), ("?gpu=99", 404), ("?gpu=host&seconds=0", 400),
                            ("?gpu=", 400), ("?gpu=4294967296", 400), ("?gpu=sim:mi300x:99", 404), ("?gpu=0000:c5:00.0", 404),
                            ("?gpu=host&seconds=1021", 400), ("?gpu=host&points=1001", 400), ("?gpu=host&points=1e3", 400),
                            ("?gpu=host&seconds=99999999999999999999", 400), ("?gpu=host&points=+5", 400)):
            self.assertEqual(self.ask("GET /api/v1/history%s HTTP/1.1" % query)[0], want, query)

    def test_history_of_an_id_stays_that_devices_when_the_broker_returns_with_others(self):
        broker = self.start_broker("--period", "100", "--simulate", "mi300x")
        self.start_bridge()
        wait_for(lambda: self.ask("GET /healthz HTTP/1.1")[0] == 200, what="live")
        broker.stop()
        self.start_broker("--period", "100", "--simulate", "rtx4090")
        ids = lambda: {g["id"]: g["index"] for g in self.get("/api/v1/snapshot")["gpus"]}
        wait_for(lambda: "sim:rtx4090:0" in ids(), what="the other device")
        self.assertGreater(ids()["sim:rtx4090:0"], 0)
        self.assertEqual(self.get("/api/v1/history?gpu=sim:rtx4090:0")["gpu"], ids()["sim:rtx4090:0"])
        self.assertEqual(self.ask("GET /api/v1/history?gpu=sim:mi300x:0 HTTP/1.1")[0], 404)

    def test_too_many_connections_are_told_so(self):
        self.start_bridge("--max-connections", "1")
        def hold():  # start_bridge's own connection may still have the place
            held = connect_socket(self.port)
            self.addCleanup(held.close)
            held.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % self.port)
            return status_of(read_head(held)[0]) == 200
        wait_for(hold, what="the only place")
        status, head, body = self.ask()
        self.assertEqual((status, self.field(head, "Retry-After")), (503, "2"))
        self.assertEqual(json.loads(body), {"error": "too many connections"})

    def test_large_headers(self):
        bridge = self.start_bridge()
        self.assertEqual(self.ask(extra="Cookie: %s\r\n" % ("c" * 8000))[0], 200)
        self.assertEqual(self.ask(extra="".join("X-%d: y\r\n" % i for i in range(200)))[0], 200)
        self.assertIn(self.ask(extra="Cookie: %s\r\n" % ("c" * 40000))[0], (0, 431))
        self.assertTrue(bridge.alive())


class Token(harness.Scenario):
    def token_file(self, text, mode=0o600):
        path = self.folder / "token"
        path.write_text(text)
        path.chmod(mode)
        return path

    def test_matrix(self):
        token = "abcdefghijklmnopQRST-_1234567890"
        self.start_bridge("--token-file", self.token_file("  %s\n" % token))
        def ask(path, *extra):
            text = "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (path, self.port, "".join(e + "\r\n" for e in extra))
            return raw_request(self.port, text)[0]
        self.assertEqual(ask("/"), 200)
        self.assertEqual(ask("/healthz"), 503)
        self.assertEqual(ask("/ws"), 426)
        for path in ("/api/v1/snapshot", "/api/v1/hello", "/api/v1/history?gpu=host", "/api/v1/nothing"):
            self.assertEqual(ask(path), 401, path)
        good = "/api/v1/snapshot"
        self.assertEqual(ask(good, "Authorization: Bearer " + token), 200)
        self.assertEqual(ask(good, "Authorization: bearer " + token), 200)
        for wrong in ("", token[:-1], token + "x", token.upper(), " " * 32, "x" * 250, "x" * 300):
            self.assertIn(ask(good, "Authorization: Bearer " + wrong), (401, 431), wrong)
        self.assertEqual(ask(good, "Authorization: Basic " + token), 401)
        self.assertEqual(ask(good + "?token=" + token), 401)

    def test_bad_files_are_refused(self):
        for text, mode in (("short", 0o600), ("", 0o600), ("x" * 16, 0o644), ("x" * 300, 0o600),
                           ("with a space in the middle", 0o600)):
            result = self.run_program("gputap-bridge", "--listen", "127.0.0.1:0", "--token-file", self.token_file(text, mode))
            self.assertEqual(result.returncode, 2, text)
            self.assertIn("--token-file", result.stderr)
            self.assertNotIn("x" * 16, result.stderr)

    def test_open_address_with_a_token(self):
        bridge = self.start("gputap-bridge", "--instance", "t", "--listen", "0.0.0.0:0", "--token-file", self.token_file("x" * 20))
        wait_for(lambda: "ready: http://0.0.0.0:" in bridge.output(), what="ready line")
        port = int(bridge.output().split("ready: http://0.0.0.0:")[1].split("/")[0])
        self.assertEqual(bound_sockets(bridge.pid), {("0.0.0.0", port)})
        def status(host):
            return raw_request(port, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host)[0]
        self.assertEqual(status("127.0.0.1:%d" % port), 200)
        self.assertEqual(status("0.0.0.0:%d" % port), 403)
        self.assertEqual(status("192.0.2.7:%d" % port), 403)


class InstanceSocket(harness.Scenario):
    def test_mode_and_use(self):
        self.start_broker("--period", "100", "--simulate", "mi300x")
        bridge = self.start_bridge()
        path = self.run_dir / "t" / "bridge.sock"
        wait_for(path.exists, what="bridge.sock")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        status, _, body = raw_request(str(path), "GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(status, 200)
        self.assertTrue(json.loads(body)["gpus"])
        bridge.kill(signal.SIGHUP)
        self.assertEqual(bridge.wait(), 0)
        self.assertFalse(path.exists())

    def test_folder_of_another_user_is_said_to_be_the_reason(self):
        if os.getuid() != 0:
            self.skipTest("becoming another user needs root")
        self.start_broker("--period", "100")
        self.folder.chmod(0o755)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                harness.for_any_user(harness.BIN / "gputap-bridge")]
        bridge = harness.Process(self.folder, "bridge", [*user, "--instance", "t", "--listen", "127.0.0.1:0"], self.env)
        self.processes.append(bridge)
        wait_for(lambda: "no bridge.sock" in bridge.output(), what="word of it")
        self.assertRegex(bridge.output(), r"only TCP: .*/t: the folder belongs to another user")

    def test_comes_with_the_broker_and_survives_kill_9(self):
        bridge = self.start_bridge()
        path = self.run_dir / "t" / "bridge.sock"
        self.start_broker("--period", "100", "--simulate", "mi300x")
        wait_for(path.exists, what="bridge.sock after the broker")
        bridge.kill()
        bridge.wait()
        self.assertTrue(path.exists())
        self.start_bridge()
        def answers():
            try:
                return raw_request(str(path), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200
            except OSError:
                return False
        wait_for(answers, what="the new bridge's socket")

    def test_second_bridge_does_not_steal_it(self):
        self.start_broker("--period", "100", "--simulate", "mi300x")
        self.start_bridge()
        path = self.run_dir / "t" / "bridge.sock"
        wait_for(path.exists, what="bridge.sock")
        inode = path.stat().st_ino
        second = self.start_bridge()
        wait_for(lambda: "another gputap-bridge serves it" in second.output(), what="message")
        self.assertEqual(path.stat().st_ino, inode)
        second.stop()
        self.assertEqual(path.stat().st_ino, inode)

    def test_swept_socket_is_made_again(self):
        self.start_broker("--period", "100", "--simulate", "mi300x")
        self.start_bridge()
        path = self.run_dir / "t" / "bridge.sock"
        wait_for(path.exists, what="bridge.sock")
        path.unlink()
        wait_for(path.exists, what="bridge.sock again")


if __name__ == "__main__":
    harness.main()
