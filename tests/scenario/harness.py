"""Real processes on private instances: start, talk to, kill, and leave nothing behind.

Scenarios are unittest programs. GPUTAP_BIN names the folder of the programs under test, GPUTAP_SHARED that of the fixtures of
real machines (tests that need them skip by name where it is absent).
"""
import atexit
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

BIN = pathlib.Path(os.environ.get("GPUTAP_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/asan/bin"))
# Where brokers live in earnest. On a disk, a segment's pages are written back, which can stop its writer for seconds.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
SHARED = pathlib.Path(os.environ.get("GPUTAP_SHARED", pathlib.Path(__file__).resolve().parents[3] / "shared"))


def wait_for(condition, timeout=10.0, step=0.02, what="condition"):
    """Calls condition until it returns something true, which is returned; AssertionError after timeout seconds."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("timed out after %.1f s: %s" % (timeout, what))
        time.sleep(step)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


_copies = None


def for_any_user(program):
    """A program that other users can run, too: the build's own, or a copy where they cannot reach that."""
    global _copies
    program = pathlib.Path(program).resolve()
    if all(folder.stat().st_mode & 0o001 for folder in program.parents):
        return program
    if _copies is None:
        _copies = pathlib.Path(tempfile.mkdtemp(prefix="gputap-programs-"))
        _copies.chmod(0o755)
        atexit.register(shutil.rmtree, _copies, ignore_errors=True)
    copy = _copies / program.name
    if not copy.exists():
        shutil.copy2(program, copy)
        copy.chmod(0o755)
    return copy


class Process:
    """A program under test; its stdout and stderr go to files that are printed when a test fails."""

    def __init__(self, folder, name, args, env):
        self.name = name
        self.log_path = folder / ("%s-%d.log" % (name, time.monotonic_ns()))
        self.log = open(self.log_path, "wb")
        self.popen = subprocess.Popen([str(a) for a in args], stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                      env=env, start_new_session=True)

    @property
    def pid(self):
        return self.popen.pid

    def output(self):
        return self.log_path.read_text(errors="replace")

    def alive(self):
        return self.popen.poll() is None

    def wait(self, timeout=10):
        return self.popen.wait(timeout)

    def kill(self, sig=signal.SIGKILL):
        if self.alive():
            self.popen.send_signal(sig)

    def stop(self, timeout=10):
        """SIGTERM, then SIGKILL for the whole session. Returns the exit code."""
        if self.alive():
            self.popen.terminate()
            try:
                self.popen.wait(timeout)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        code = self.popen.wait(timeout)
        self.log.close()
        return code


class Scenario(unittest.TestCase):
    """A private GPUTAP_DIR, and everything started in it is ended with the test."""

    base = None  # where its folder is made; None = where temporary files go

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gputap-test-", dir=self.base))
        self.run_dir = self.folder / "run"
        self.run_dir.mkdir()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("GPUTAP_SIM")}
        self.env.update(GPUTAP_DIR=str(self.run_dir), GPUTAP_INSTANCE="t")
        self.env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=1")
        self.processes = []
        self.addCleanup(self._end)

    def _end(self):
        codes = [(p, p.stop()) for p in reversed(self.processes)]
        failed = any(self._outcome_failed())
        for process, code in codes:
            text = process.output()
            if failed:
                sys.stderr.write("--- %s (exit %s)\n%s\n" % (process.name, code, text[-6000:]))
            for mark in ("AddressSanitizer", "runtime error:", "LeakSanitizer"):
                self.assertNotIn(mark, text, "%s: %s" % (process.name, text[-6000:]))
        shutil.rmtree(self.folder, ignore_errors=True)

    def _outcome_failed(self):
        outcome = getattr(self, "_outcome", None)
        result = getattr(outcome, "result", None)
        for kind in ("failures", "errors"):
            for test, _ in getattr(result, kind, []):
                yield test is self

    def start(self, program, *args, env=None):
        full = dict(self.env, **(env or {}))
        process = Process(self.folder, program, [BIN / program, *args], full)
        self.processes.append(process)
        return process

    def start_broker(self, *args, wait=True, env=None):
        """gputapd with no real provider but those asked for; returns when it says that it is ready."""
        broker = self.start("gputapd", "--instance", "t", *args, env=env)
        if wait:
            def ready():
                self.assertTrue(broker.alive(), broker.output())
                return "gputapd ready" in broker.output()
            wait_for(ready, 15, what="broker")
        return broker

    def start_bridge(self, *args, wait=True, env=None):
        """gputap-bridge on a free port of 127.0.0.1, kept in self.port."""
        self.port = free_port()
        bridge = self.start("gputap-bridge", "--instance", "t", "--listen", "127.0.0.1:%d" % self.port, *args, env=env)
        if wait:
            def ready():
                self.assertTrue(bridge.alive(), bridge.output())
                with socket.socket() as s:
                    return s.connect_ex(("127.0.0.1", self.port)) == 0
            wait_for(ready, 15, what="bridge's port")
        return bridge

    def run_program(self, program, *args, timeout=20, env=None):
        """Runs to the end; returns CompletedProcess with text output."""
        return subprocess.run([str(BIN / program), *map(str, args)], capture_output=True, text=True, timeout=timeout,
                              env=dict(self.env, **(env or {})), stdin=subprocess.DEVNULL)

    def get(self, path, **headers):
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.port, path), headers=headers)
        with urllib.request.urlopen(request, timeout=5) as response:
            return json.load(response)

    def fixture_root(self, *dumps):
        """A machine's root laid out from real dumps; skips the test where they are absent."""
        tool = SHARED / "tools/mkroot.py"
        folders = [SHARED / "fixtures/sysfs" / d for d in dumps]
        if not tool.exists() or not all(f.exists() for f in folders):
            self.skipTest("fixtures of real machines are not here")
        root = self.folder / "root"
        subprocess.run([sys.executable, str(tool), str(root), *map(str, folders)], check=True, capture_output=True)
        return root


def main():
    """unittest.main, with a last line that test.sh adds up."""
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    bad = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    print("scenario: %d passed, %d failed, %d skipped" % (result.testsRun - bad - skipped, bad, skipped))
    sys.exit(1 if bad else 0)
