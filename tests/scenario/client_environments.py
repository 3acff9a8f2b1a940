"""Where clients run: other users, other umasks, read-only mounts, other time namespaces, forked children, full file systems, wall
clocks that step. What a machine does not permit is skipped by name."""
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import time

import harness
from harness import BIN, Scenario, wait_for
from segment import Segment

NOBODY = 65534
EFORKED = -13
TOOL = BIN / "tests/annotator_tool"


class Environments(Scenario):
    def setUp(self):
        super().setUp()
        (self.folder / "tests").mkdir()
        os.chmod(self.folder, 0o755)

    def need_root(self, what):
        if os.getuid() != 0:
            self.skipTest(what + " needs root")

    def need(self, *command):
        if subprocess.run(command, capture_output=True).returncode != 0:
            self.skipTest("not permitted here: " + " ".join(map(str, command)))

    def view(self, folder=None):
        return Segment((folder or self.run_dir / "t") / "telemetry")

    def broker(self, *args, user=None, umask=None, env=None):
        """Like start_broker, as a user and under a umask; without waiting."""
        before = [] if user is None else ["setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups"]
        shell = ["sh", "-c", 'umask %03o; exec "$@"' % (0o022 if umask is None else umask), "sh"]
        process = harness.Process(self.folder, "gputapd", [*before, *shell, harness.for_any_user(BIN / "gputapd"), "--instance", "t", "--period", "50",
                                                           "--simulate", "mi300x:1", *args], self.env if env is None else env)
        self.processes.append(process)
        return process

    def annotate(self, *args, user=None, umask=0o022, env=None, before=()):
        """Runs annotator_tool to its end; returns its lines."""
        switch = [] if user is None else ["setpriv", "--reuid=%d" % user, "--regid=%d" % user, "--clear-groups"]
        result = subprocess.run([*before, *switch, "sh", "-c", 'umask %03o; exec "$@"' % umask, "sh", str(harness.for_any_user(TOOL)), *map(str, args)],
                                env=self.env if env is None else env, capture_output=True, text=True, timeout=30,
                                stdin=subprocess.DEVNULL)
        self.assertEqual(result.stderr, "")
        return [json.loads(line) for line in result.stdout.splitlines()]

    def wait_for_device(self, folder=None):
        path = (folder or self.run_dir / "t") / "telemetry"
        wait_for(lambda: path.exists() and self.view(folder).device_count == 1 and self.view(folder).snapshot(0), 10, what="device")

    def end(self, process):
        process.stop()
        self.processes.remove(process)

    # --- users and masks ------------------------------------------------------------------------------------------------------

    def test_every_umask_lets_other_users_annotate_a_root_broker(self):
        self.need_root("becoming another user")
        for of_broker in (0o000, 0o027, 0o077):
            broker = self.broker(umask=of_broker)
            self.wait_for_device()
            modes = {n: stat.S_IMODE(os.stat(self.run_dir / "t" / n).st_mode) for n in (".", "telemetry", "lock", "control.sock")}
            self.assertEqual(modes, {".": 0o755, "telemetry": 0o644, "lock": 0o644, "control.sock": 0o666}, oct(of_broker))
            for of_client in (0o000, 0o027, 0o077):
                for user in (None, NOBODY):
                    result = self.annotate("--spans", 20, "--label", "u%s" % user, user=user, umask=of_client)[-1]
                    self.assertEqual((result["connected"], result["errors"], result["spans"]), (1, 0, 20), (of_broker, of_client, user))
            uids = {e["uid"] for e in self.view().events() if e["type"] == "begin"}
            self.assertEqual(uids, {0, NOBODY})
            self.end(broker)
            shutil.rmtree(self.run_dir / "t")

    def test_users_broker_serves_its_user_and_root_and_is_closed_to_others(self):
        self.need_root("becoming another user")
        runtime = self.folder / "user"
        runtime.mkdir(mode=0o700)
        os.chown(runtime, NOBODY, NOBODY)
        env = {k: v for k, v in self.env.items() if k != "GPUTAP_DIR"}
        env["XDG_RUNTIME_DIR"] = str(runtime)
        self.broker(user=NOBODY, umask=0o000, env=env)
        folder = runtime / "gputap" / "t"
        self.wait_for_device(folder)
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        self.assertEqual(self.annotate("--spans", 5, user=NOBODY, env=env)[-1]["connected"], 1)
        named = dict(env, GPUTAP_DIR=str(runtime / "gputap"))
        self.assertEqual(self.annotate("--spans", 5, env=named)[-1]["connected"], 1)
        daemon = self.annotate("--spans", 5, "--impatient", user=1, env=named)[-1]
        self.assertEqual((daemon["connected"], daemon["errors"], daemon["spans"]), (0, 0, 5))
        told = subprocess.run(["setpriv", "--reuid=1", "--regid=1", "--clear-groups", str(harness.for_any_user(BIN / "gputap")), "status"], env=named,
                              capture_output=True, text=True, timeout=10)
        self.assertNotEqual(told.returncode, 0)
        self.assertIn("ermission", told.stdout + told.stderr)

    def test_another_users_folder_is_not_trusted_unless_named(self):
        self.need_root("becoming another user")
        runtime = self.folder / "user"
        (runtime / "gputap").mkdir(parents=True)
        for path in (runtime, runtime / "gputap"):
            os.chown(path, NOBODY, NOBODY)
        self.broker(user=NOBODY, env=dict(self.env, GPUTAP_DIR=str(runtime / "gputap")))
        self.wait_for_device(runtime / "gputap" / "t")
        env = {k: v for k, v in self.env.items() if k != "GPUTAP_DIR"}
        env["XDG_RUNTIME_DIR"] = str(runtime)
        told = subprocess.run([str(BIN / "gputap"), "status"], env=env, capture_output=True, text=True, timeout=10)
        self.assertNotEqual(told.returncode, 0)
        self.assertIn("another user", told.stdout + told.stderr)
        self.assertEqual(self.annotate("--spans", 5, "--impatient", env=env)[-1]["connected"], 0)

    # --- mounts ---------------------------------------------------------------------------------------------------------------

    def test_read_only_bind_mount_is_enough_to_read_and_to_annotate(self):
        self.need("unshare", "-m", "true")
        self.broker()
        self.wait_for_device()
        there = self.folder / "there"
        there.mkdir()
        script = ('mount --bind "$0" "$1" && mount -o remount,bind,ro "$1" || exit 77; '
                  'touch "$1/t/x" 2>/dev/null && exit 1; GPUTAP_DIR=$1; export GPUTAP_DIR; shift; exec "$@"')
        before = ["unshare", "-m", "sh", "-c", script, str(self.run_dir), str(there)]
        status = subprocess.run([*before, str(BIN / "gputap"), "status"], env=self.env, capture_output=True, text=True, timeout=20)
        if status.returncode == 77:
            self.skipTest("bind mounts are not permitted here")
        self.assertEqual(status.returncode, 0, status.stdout + status.stderr)
        user = NOBODY if os.getuid() == 0 else None
        result = self.annotate("--spans", 20, user=user, before=before)[-1]
        self.assertEqual((result["connected"], result["errors"], result["dropped"]), (1, 0, 0))

    def test_full_tmpfs_is_a_clean_error(self):
        self.need_root("mounting a small tmpfs")
        for options in ("size=64k", "nr_inodes=3"):
            small = self.folder / options
            small.mkdir()
            self.need("mount", "-t", "tmpfs", "-o", options, "none", str(small))
            self.addCleanup(subprocess.run, ["umount", "-l", str(small)])
            result = self.run_program("gputapd", "--instance", "t", env={"GPUTAP_DIR": str(small)})
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertRegex(result.stderr, "(?i)no space left", options)
            self.assertFalse((small / "t" / "telemetry").exists())
            alone = self.annotate("--spans", 5, "--impatient", env=dict(self.env, GPUTAP_DIR=str(small)))[-1]
            self.assertEqual((alone["connected"], alone["errors"], alone["spans"]), (0, 0, 5))

    # --- clocks ---------------------------------------------------------------------------------------------------------------

    def usage_events(self, since):
        return [e for e in self.view().events(since) if e["type"] == "usage"]

    def check_usage(self, lines, name):
        self.assertEqual(lines[-1]["errors"], 0)
        self.assertAlmostEqual(lines[0]["usage"], 1.0, delta=0.15, msg=name)
        final = wait_for(lambda: [e for e in self.usage_events(self.place) if 0.9 < e["seconds"] < 1.15], 5,
                         what="final usage, " + name)[-1]
        self.assertAlmostEqual(final["seconds"], lines[0]["usage"], delta=0.005, msg=name)
        self.assertGreater(final["energy"], 0)
        begun, ended = [next(e for e in self.view().events(self.place) if e["type"] == t) for t in ("begin", "end")]
        self.assertAlmostEqual((ended["mono_ns"] - begun["mono_ns"]) / 1e9, final["seconds"], delta=0.005, msg=name)
        self.assertLess(abs(time.monotonic_ns() - ended["mono_ns"]), 10e9, "times are the broker's, " + name)
        self.place = len(self.view().events())
        final["wall"] = (ended["real_ns"] - begun["real_ns"]) / 1e9
        return final

    def test_shifted_time_namespace_gives_the_same_usage(self):
        self.need("unshare", "-T", "--monotonic", "1000000", "--fork", "true")
        self.broker()
        self.wait_for_device()
        self.place = 0
        near = self.annotate("--usage", "--spans", 0)
        self.assertLess(abs(near[0]["now_minus_mono"]), 0.1)
        here = self.check_usage(near, "same clock")
        far = self.annotate("--usage", "--spans", 0, before=["unshare", "-T", "--monotonic", "1000000", "--fork"])
        self.assertAlmostEqual(far[0]["now_minus_mono"], -1e6, delta=0.5)
        there = self.check_usage(far, "clock 10^6 s ahead")
        self.assertAlmostEqual(here["energy"] / here["seconds"], there["energy"] / there["seconds"],
                               delta=0.2 * here["energy"] / here["seconds"])

    def test_steps_of_the_wall_clock_change_neither_usage_nor_liveness(self):
        shim = BIN / "tests/clock_shim.so"
        if not shim.exists():
            self.skipTest("no clock shim on this system")
        offset = self.folder / "offset"
        offset.write_bytes(struct.pack("<q", 0))
        env = dict(self.env, LD_PRELOAD=str(shim), GPUTAP_CLOCK_SHIM=str(offset))
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        self.broker(env=env)
        self.wait_for_device()
        self.place = 0
        for before, step in ((0, 3600), (3600, -3600), (-3600, 0)):
            annotator = subprocess.Popen([str(TOOL), "--usage", "--spans", "0"], env=env, stdout=subprocess.PIPE, text=True)
            wait_for(lambda: [e for e in self.view().events(self.place) if e["type"] == "begin"], 10, what="span")
            time.sleep(0.3)
            with open(offset, "r+b") as f:
                f.write(struct.pack("<q", step))
            status = self.run_program("gputap", "status", env=env)
            self.assertEqual(status.returncode, 0, status.stdout)
            self.assertNotIn("stale", status.stdout)
            out, _ = annotator.communicate(timeout=20)
            lines = [json.loads(line) for line in out.splitlines()]
            final = self.check_usage(lines, "step to %d s" % step)
            self.assertAlmostEqual(final["wall"], final["seconds"] + step - before, delta=0.1, msg="the clock did step")
            self.assertEqual(lines[-1]["connects"], 1)

    # --- forks ----------------------------------------------------------------------------------------------------------------

    def check_fork(self, how):
        self.broker()
        self.wait_for_device()
        log = open(self.folder / "fork.log", "w+")
        self.addCleanup(log.close)
        parent = subprocess.Popen([str(TOOL), "--label", "parent", "--fork", how, "--spans", "0", "--hold"], env=self.env, stdout=log,
                                  stdin=subprocess.DEVNULL, start_new_session=True)

        def end_all():
            try:
                os.killpg(parent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            parent.wait()
        self.addCleanup(end_all)

        def said():
            log.seek(0)
            lines = [json.loads(line) for line in log.read().splitlines()]
            return lines if len(lines) == 2 else None
        child, after = wait_for(said, 15, what="words of parent and child")
        self.assertEqual(child["codes"], [EFORKED] * 7)
        self.assertEqual((after["errors"], after["connected"], after["open"], after["connects"]), (0, 1, 1, 1))
        session, = wait_for(lambda: self.view().sessions(), what="session")
        self.assertEqual(([s["name"] for s in session["spans"]], session["rejected"]), (["forked"], 0))
        parent.kill()
        parent.wait()
        wait_for(lambda: not self.view().sessions(), 30, 0.01, "slot free although the child lives")
        os.kill(child["child"], 0)
        ends = [e for e in self.view().events() if e["type"] == "end"]
        self.assertEqual([e["flags"] for e in ends], [1])  # abandoned, once

    def test_forked_child_is_turned_away_and_keeps_no_slot(self):
        self.check_fork("hold")

    def test_forked_and_executed_child_keeps_no_slot(self):
        self.check_fork("exec")

    def test_child_made_past_the_c_library_keeps_no_slot(self):
        self.check_fork("bare")


if __name__ == "__main__":
    harness.main()
