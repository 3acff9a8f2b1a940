"""Tests of the Python package: against the library and the broker of the build under test."""
import os
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "client/python"
sys.path[:0] = [str(ROOT / "tests/scenario"), str(PACKAGE)]

import harness  # noqa: E402
from harness import main, wait_for  # noqa: E402,F401

BUILD = pathlib.Path(os.environ.get("GPUTAP_BUILD", harness.BIN.parent))
LIBRARY = BUILD / "lib/libgputap.so"
os.environ["GPUTAP_LIBRARY"] = str(LIBRARY)

NO_REAL = ("--no-provider", "drm", "--no-provider", "amdgpu", "--no-provider", "processes")

import gputap  # noqa: E402


def cache(name):
    """A variable of the build."""
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return ""


def sanitizers():
    return ["-fsanitize=" + cache("GPUTAP_SANITIZE")] if cache("GPUTAP_SANITIZE") else []


def compile_c(*arguments):
    """The build's compiler, without what is preloaded for the tests."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run([cache("CMAKE_C_COMPILER"), *map(str, arguments)], capture_output=True, text=True, env=env, timeout=120)
    if done.returncode != 0:
        raise AssertionError(done.stderr)


class PythonCase(harness.Scenario):
    """A private place for brokers, which this process looks at too."""

    def setUp(self):
        super().setUp()
        self.env["ASAN_OPTIONS"] = "detect_leaks=1:abort_on_error=1"
        self.env["PYTHONPATH"] = str(PACKAGE)
        before = {name: os.environ.get(name) for name in ("GPUTAP_DIR", "GPUTAP_INSTANCE")}
        os.environ.update(GPUTAP_DIR=str(self.run_dir), GPUTAP_INSTANCE="t")
        self.addCleanup(self._put_back, before)
        self.tap = gputap.Tap("t")
        self.addCleanup(self.tap.close)

    def _put_back(self, before):
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def simulate(self, *arguments):
        """A broker without this machine's devices, and its first samples."""
        broker = self.start_broker(*NO_REAL, *arguments)
        wait_for(lambda: self.tap.host() and all(self.tap.latest(d.number) for d in self.tap.devices()), what="samples")
        return broker

    def python_env(self, **env):
        return dict(self.env, ASAN_OPTIONS="detect_leaks=0", PYTHONDONTWRITEBYTECODE="1", **env)

    def python(self, code, timeout=60, **env):
        """Runs code in a Python of its own; answers what it printed."""
        done = subprocess.run([sys.executable, "-B", "-W", "error", "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout,
                              env=self.python_env(**env))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout.strip()
