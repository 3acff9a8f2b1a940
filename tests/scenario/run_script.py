"""run.sh: what it refuses, what it says when a program ends, and that it leaves nothing behind, whatever ends it."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import harness
from harness import wait_for

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Stands in for a build that takes a while: two at once are noted.
CMAKE = """#!/bin/sh
mkdir "$CLONE/building" || echo overlap >>"$CLONE/cmake.log"
echo "$1" >>"$CLONE/cmake.log"
sleep 0.5
mkdir -p "$CLONE/build/release/bin"
[ "$1" != --build ] || ln -sf %s/gputapd %s/gputap-bridge "$CLONE/build/release/bin/"
rmdir "$CLONE/building"
"""


class RunScript(harness.Scenario):
    def setUp(self):
        """A clone in which the programs under test lie built already."""
        super().setUp()
        self.clone, self.temporary = self.folder / "clone", self.folder / "tmp"
        for folder in ("shm", "client", "broker", "bridge", "web", "scripts", "cmake", "data"):
            (self.clone / folder).mkdir(parents=True)
        self.temporary.mkdir()
        (self.clone / "CMakeLists.txt").touch()
        shutil.copy(SOURCE / "run.sh", self.clone)
        self.bin = self.clone / "build/release/bin"
        self.bin.mkdir(parents=True)
        for name in ("gputapd", "gputap-bridge"):
            (self.bin / name).symlink_to(harness.BIN / name)
        (self.clone / "build/release/.built").touch()
        self.env.update(TMPDIR=str(self.temporary))
        self.port = harness.free_port()

    def script(self, *args, port=None, env=None):
        process = harness.Process(self.folder, "run.sh", [self.clone / "run.sh", "--port", port or self.port, *args],
                                  dict(self.env, **(env or {})))
        self.processes.append(process)
        return process

    def ready(self, *args, **more):
        process = self.script(*args, **more)
        def said():
            self.assertTrue(process.alive(), process.output())
            return "gputap ready: http://127.0.0.1:" in process.output()
        wait_for(said, 20, what="ready line")
        return process

    def program(self, name):
        """Process ids of a program that runs from the clone's instance."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                words = pathlib.Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            except (OSError, ValueError):
                continue
            if words[0] == ("build/release/bin/" + name).encode() and b"\0".join(words).count(self.instance.encode()):
                found.append(int(entry))
        return found

    @property
    def instance(self):
        return self.folder.name

    def refused(self, *args):
        done = subprocess.run([str(self.clone / "run.sh"), *map(str, args)], capture_output=True, text=True, env=self.env, timeout=20,
                              cwd=self.folder)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        lines = done.stderr.splitlines()
        self.assertTrue(lines[0].startswith("run.sh: "), done.stderr)
        self.assertTrue(lines[1].startswith("usage: ./run.sh"), done.stderr)
        self.assertNotIn("--group", done.stderr)
        return lines[0]

    def test_wrong_values_are_named_with_the_usage_of_run_sh(self):
        self.assertIn('unknown model "no-such"', self.refused("--simulate", "no-such"))
        self.assertIn("bad count", self.refused("--simulate", "mi300x:65"))
        self.assertIn("heavy", self.refused("--sim-load", "heavy"))
        self.assertIn("bad instance name 'a b'", self.refused("--instance", "a b"))
        self.assertIn("no folder '/no/such'", self.refused("--root", "/no/such"))
        self.assertIn("heavy", self.refused("--root", "clone", "--sim-load", "heavy"), "a relative root is the caller's")
        for option in ("--simulate", "--sim-load", "--root", "--port", "--instance"):
            self.assertEqual(self.refused(option, ""), "run.sh: %s wants a value" % option)
            self.assertEqual(self.refused(option), "run.sh: %s wants a value" % option)
        for port in ("0", "65536", "999999999999999999999", "x", "-1", "80 80"):
            self.assertEqual(self.refused("--port", port), "run.sh: bad port '%s': 1 to 65535" % port)
        self.assertEqual(os.listdir(self.run_dir) + os.listdir(self.temporary), [])

    def test_number_of_simulated_gpus_is_said_in_words(self):
        nothing = self.folder / "nothing"
        nothing.mkdir()
        one = self.ready("--simulate", "strix-halo", "--root", nothing)
        self.assertIn("The GPU shown is simulated; it says so.", one.output())
        one.stop()
        self.assertIn("Simulated GPUs are among the 2 shown", self.ready("--simulate", "mi300x:2", "--root", nothing).output())

    def test_taken_port_names_port_and_leaves_no_files(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            script = self.script(port=taken.getsockname()[1])
            self.assertEqual(script.wait(), 1)
        self.assertIn("with --port", script.output())
        self.assertEqual(os.listdir(self.run_dir) + os.listdir(self.temporary), [])

    def test_signals_to_it_alone_or_to_its_group_end_everything(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for send in (os.kill, os.killpg):
                script = self.ready("--instance", self.instance)
                running = self.program("gputapd") + self.program("gputap-bridge")
                self.assertEqual(len(running), 2)
                send(script.pid, number)
                self.assertEqual(script.wait(), 0, script.output())
                self.assertEqual([p for p in running if os.path.exists("/proc/%d" % p)], [], (number, send))
                self.assertEqual(os.listdir(self.temporary), [], (number, send))

    def test_program_that_ends_is_named_with_the_reason(self):
        for name, number, code in (("gputapd", signal.SIGKILL, 137), ("gputap-bridge", signal.SIGKILL, 137)):
            script = self.ready("--instance", self.instance)
            os.kill(self.program(name)[0], number)
            self.assertEqual(script.wait(), code)
            self.assertIn("run.sh: %s was ended by signal KILL" % name, script.output())
            self.assertEqual(os.listdir(self.temporary), [])
        script = self.ready("--instance", self.instance)
        os.kill(self.program("gputapd")[0], signal.SIGTERM)
        self.assertEqual(script.wait(), 1)
        self.assertIn("run.sh: gputapd ended with exit code 0", script.output())

    def test_second_run_of_an_instance_is_told_of_the_first(self):
        self.ready()
        second = self.script(port=harness.free_port())
        self.assertEqual(second.wait(), 1)
        self.assertIn("already running", second.output())
        self.assertIn("run.sh: gputapd ended with exit code 1", second.output())

    def test_two_first_runs_at_once_build_once(self):
        shutil.rmtree(self.clone / "build")
        tools = self.folder / "tools"
        tools.mkdir()
        for path, text in ((tools / "cmake", CMAKE % (harness.BIN, harness.BIN)), (self.clone / "scripts/install-deps.sh", "#!/bin/sh\n")):
            path.write_text(text)
            path.chmod(0o755)
        env = {"PATH": "%s:%s" % (tools, self.env["PATH"]), "CLONE": str(self.clone)}
        runs = [self.script("--instance", name, port=harness.free_port(), env=env) for name in ("a", "b")]
        wait_for(lambda: all("gputap ready: " in r.output() or not r.alive() for r in runs), 20, what="both runs")
        self.assertTrue(all(r.alive() for r in runs), runs[0].output() + runs[1].output())
        self.assertEqual((self.clone / "cmake.log").read_text().split(), ["--preset", "--build"])
        self.assertEqual(sum("waiting for it" in r.output() for r in runs), 1)
        # What runs on does not keep a later run from building.
        self.assertEqual(subprocess.run(["flock", "-n", str(self.clone / "build/.lock"), "true"]).returncode, 0)


if __name__ == "__main__":
    harness.main()
