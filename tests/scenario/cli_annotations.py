"""Sessions, events and usage from the shell: who runs what, and what it took."""
import fcntl
import json
import os
import signal
import subprocess
import termios
import time

import harness
from harness import BIN, Scenario


class Annotations(Scenario):
    def setUp(self):
        super().setUp()
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir()
        self.env.update(XDG_RUNTIME_DIR=str(self.runtime), PATH="%s:%s" % (BIN, os.environ["PATH"]))

    def broker(self, *args):
        broker = self.start_broker("--period", 50, "--simulate", "strix-halo", "--simulate", "rtx4090", *args)
        harness.wait_for(lambda: "GPU 1" in self.run_program("gputap", "get").stdout, what="two devices")
        return broker

    def gputap(self, *args, code=0, env=None):
        done = self.run_program("gputap", *args, env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def sessions(self):
        return json.loads(self.gputap("sessions", "--json").stdout)["sessions"]

    def events(self):
        out = self.run_events("--from-oldest", "--json")
        return [json.loads(line) for line in out.splitlines()]

    def run_events(self, *args):
        """All that is there: the follower is ended by an interrupt."""
        follower = self.start("gputap", "events", *args)
        time.sleep(0.3)
        follower.kill(signal.SIGINT)
        self.assertEqual(follower.wait(), 0, follower.output())
        return follower.output()

    def shell(self, script, shell="sh", code=0):
        done = subprocess.run([shell, "-c", script], capture_output=True, text=True, timeout=20, env=self.env, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def power(self):
        gpus = json.loads(self.gputap("get", "--json").stdout)["gpus"]
        return {gpu["index"]: gpu["metrics"]["power_now"] for gpu in gpus}


class Run(Annotations):
    def test_a_command_is_measured_and_its_exit_code_kept(self):
        self.broker()
        done = self.gputap("run", "--json", "--label", "bench", "--", "sh", "-c", "echo out; echo err >&2; sleep 0.7; exit 7", code=7)
        self.assertEqual(done.stdout, "out\n")
        self.assertEqual(done.stderr.splitlines()[0], "err")
        report = json.loads(done.stderr.splitlines()[-1])
        self.assertEqual((report["exit"], report["command"][0]), (7, "sh"))
        self.assertGreater(report["seconds"], 0.69)
        power = self.power()
        self.assertEqual([u["gpu"] for u in report["usage"]], [0, 1])
        for usage in report["usage"]:
            self.assertFalse(usage["estimated"] or usage["partial"] or usage["shared"], usage)
            self.assertLess(abs(usage["seconds"] - report["seconds"]), 0.2)
            expected = power[usage["gpu"]] * usage["seconds"]
            self.assertLess(abs(usage["energy"] - expected), 0.05 * expected, (usage, power))
            self.assertGreater(usage["busy_mean"], 0)
        text = self.gputap("run", "true").stderr
        self.assertRegex(text, r"^gputap: true: 0\.\d\d s, exit code 0\n")
        self.assertIn("simulated", text)
        self.assertEqual(len(text.splitlines()), 4)

    def test_exit_codes_are_a_shell_s(self):
        self.broker()
        script = self.folder / "plain"
        script.write_text("exit 5\n")
        for code, command in ((0, ["true"]), (127, ["no-such-program"]), (126, [str(script)]), (143, ["sh", "-c", "kill -TERM $$"])):
            self.gputap("run", "--", *command, code=code)
        self.assertEqual(self.gputap("run", "echo", "--help", "--json").stdout, "--help --json\n")
        self.assertIn("run wants a command", self.gputap("run", code=2).stderr)
        self.assertIn("usage: gputap", self.gputap("run", "--help").stdout)

    def test_without_a_broker_the_command_runs_with_one_line_of_warning(self):
        done = self.gputap("run", "--", "sh", "-c", "echo out; exit 3", code=3)
        self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("out\n", 1))
        self.assertIn("without being measured", done.stderr)
        self.assertIsNone(json.loads(self.gputap("run", "--json", "true").stderr.splitlines()[-1])["usage"])
        broker = self.broker()
        broker.kill()
        broker.wait()
        done = self.gputap("run", "--", "sh", "-c", "exit 4", code=4)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("the broker is gone", done.stderr)

    def test_a_termination_is_handed_to_the_command(self):
        self.broker()
        run = self.start("gputap", "run", "--", "sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done")
        harness.wait_for(lambda: "ready" in run.output(), what="the command")
        run.kill(signal.SIGTERM)
        self.assertEqual(run.wait(), 9, run.output())
        # What the terminal sends to all of them ends the command, and not the report.
        run = self.start("gputap", "run", "--", "sleep", "30")
        harness.wait_for(lambda: self.sessions(), what="the session")
        os.killpg(run.pid, signal.SIGINT)
        self.assertEqual(run.wait(), 130, run.output())
        self.assertIn("exit code 130", run.output())

    def test_an_interrupt_for_us_alone_is_handed_on_and_the_terminals_is_not_doubled(self):
        self.broker()
        script = "import signal, sys, time\nn = []\nsignal.signal(signal.SIGINT, lambda *a: n.append(1))\nprint('up', flush=True)\n" \
                 "end = time.time() + 1.5\nwhile time.time() < end: time.sleep(0.05)\nprint(len(n))"
        run = subprocess.Popen([str(BIN / "gputap"), "run", "--", "python3", "-c", script], env=self.env, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(run.stdout.readline(), "up\n")
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.communicate(timeout=20)[0], "1\n")
        main, terminal = os.openpty()
        run = subprocess.Popen([str(BIN / "gputap"), "run", "--", "python3", "-c", script], env=self.env, stdin=terminal,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.assertEqual(run.stdout.readline(), "up\n")
        os.write(main, b"\x03")
        self.assertEqual(run.communicate(timeout=20)[0], "1\n")
        os.close(main), os.close(terminal)

    def test_help_is_no_mistake(self):
        self.assertIn("annotate", self.gputap("annotate", "--help").stdout)

    def test_what_was_ignored_stays_ignored(self):
        self.broker()
        done = self.shell("trap '' HUP INT; exec gputap run -- sh -c 'kill -HUP $$; kill -INT $$; echo alive'")
        self.assertEqual(done.stdout, "alive\n")

    def test_others_see_it_while_it_runs(self):
        self.broker()
        run = self.start("gputap", "run", "--label", "train", "--", "sleep", "30")
        session = harness.wait_for(lambda: [x for x in self.sessions() if x["spans"]], what="the session")[0]
        self.assertEqual((session["label"], session["pid"], session["uid"]), ("train", run.pid, os.geteuid()))
        self.assertEqual((session["spans"][0]["name"], session["spans"][0]["gpus"]), ("sleep 30", None))
        self.assertRegex(self.gputap("sessions").stdout, r"train  \(gputap, pid %d, user %d\)" % (run.pid, os.geteuid()))
        run.kill()
        harness.wait_for(lambda: not self.sessions(), 5, what="the session's end")
        self.assertEqual(self.gputap("sessions").stdout, "no session is open\n")
        ends = [e for e in self.events() if e["type"] == "end"]
        self.assertTrue(ends[-1]["abandoned"])


class Events(Annotations):
    def test_a_line_an_event_in_the_order_of_time(self):
        self.broker()
        self.gputap("run", "--label", "one", "true")
        events = [e for e in self.events()]
        self.assertEqual([e["type"] for e in events if e["type"] != "usage"], ["attach", "begin", "end", "detach"])
        usages = [e for e in events if e["type"] == "usage"]
        self.assertEqual({e["usage"]["gpu"] for e in usages}, {0, 1})
        self.assertEqual({(e["name"], e["label"], e["session"], e["span"]) for e in usages},
                         {("true", "one", events[0]["session"], events[1]["span"])})
        lines = self.run_events("--from-oldest").splitlines()
        self.assertEqual(len(lines), len(events))
        self.assertRegex(lines[1], r"^\d\d:\d\d:\d\d\.\d{3}  begin    \d+\.\d+ one  true$")
        self.assertRegex("\n".join(lines), r"usage .* GPU 0  [\d.]+ J  VRAM peak ")

    def test_following_shows_what_comes_and_only_that(self):
        self.broker()
        self.gputap("run", "--label", "before", "true")
        harness.wait_for(lambda: not self.sessions(), what="the first session's end")
        follower = self.start("gputap", "events", "--count", "2")
        time.sleep(0.3)
        self.gputap("run", "--label", "after", "true")
        self.assertEqual(follower.wait(), 0)
        lines = follower.output().splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertNotIn("before", follower.output())
        self.assertIn("after", lines[0])

    def test_it_ends_when_nobody_reads(self):
        self.broker()
        follower = subprocess.Popen([str(BIN / "gputap"), "events"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env,
                                    stdin=subprocess.DEVNULL)
        time.sleep(0.2)
        follower.stdout.close()
        self.assertEqual(follower.wait(5), 0)
        self.assertEqual(follower.stderr.read(), b"")
        follower.stderr.close()

    def test_without_a_broker_it_says_how_to_start_one(self):
        for command in (["events"], ["sessions"], ["sessions", "--json"]):
            done = self.gputap(*command, code=1)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1)
            self.assertIn("start it with: gputapd", done.stderr)


class Annotate(Annotations):
    SCRIPT = """
        eval "$(gputap annotate open "it's a script")"
        outer=$(gputap annotate begin --job p1 --node 3 --device 0 KSampler)
        gputap annotate step "$outer" 3 20
        inner=$(gputap annotate begin --parent "$outer" -- --inner)
        sleep 0.3
        gputap sessions --json
        gputap annotate end --json "$inner"
        gputap annotate end "$outer"
        """

    def folders(self):
        return list(self.runtime.glob("gputap-annotate-*"))

    def test_a_script_names_its_parts_and_gets_what_they_took(self):
        self.broker()
        for shell in ("sh", "bash"):
            lines = self.shell(self.SCRIPT, shell).stdout.splitlines()
            session = json.loads(lines[0])["sessions"][0]
            self.assertEqual(session["label"], "it's a script")
            outer, inner = session["spans"]
            self.assertEqual((outer["name"], outer["node"], outer["job"], outer["value"], outer["max"], outer["gpus"]),
                             ("KSampler", "3", "p1", 3, 20, [0]))
            self.assertEqual((inner["name"], inner["parent"], inner["gpus"]), ("--inner", outer["id"], None))
            usage = json.loads(lines[1])
            self.assertEqual((usage["span"], [u["gpu"] for u in usage["usage"]]), (inner["id"], [0, 1]))
            self.assertFalse(any(u["estimated"] for u in usage["usage"]), usage)
            self.assertEqual(len(lines), 4, lines)  # heading and one GPU
            self.assertRegex(lines[3], r"^ +0 .* J ")
            harness.wait_for(lambda: not self.folders() and not self.sessions(), 5, what="the holder's end")

    def test_the_session_ends_with_its_shell_however_that_ends(self):
        self.broker()
        shell = subprocess.Popen(["sh", "-c", 'eval "$(gputap annotate open s)"; gputap annotate begin work; read x'],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        self.assertGreater(int(shell.stdout.readline()), 0)
        self.assertEqual(self.folders()[0].stat().st_mode & 0o777, 0o700)
        harness.wait_for(lambda: [s["label"] for s in self.sessions() if s["spans"]] == ["s"], what="the session")
        shell.kill()
        self.assertEqual(shell.stdout.read(), b"")  # the holder has not kept the pipe
        shell.wait()
        shell.stdin.close()
        shell.stdout.close()
        harness.wait_for(lambda: not self.folders() and not self.sessions(), 5, what="the holder's end")
        self.assertTrue([e for e in self.events() if e["type"] == "end"][0]["abandoned"])

    def test_close_ends_it_at_once(self):
        self.broker()
        out = self.shell('eval "$(gputap annotate open s)"; gputap annotate close; sleep 0.3; gputap sessions; '
                         'gputap annotate begin x; echo "code $?"')
        self.assertEqual(out.stdout, "no session is open\ncode 1\n")
        self.assertIn("is gone", out.stderr)
        self.assertEqual(self.folders(), [])

    def test_what_makes_no_sense_is_refused(self):
        self.broker()
        self.assertIn("gputap annotate open LABEL", self.gputap("annotate", "begin", "x", code=1).stderr)
        for args in ([], ["frob"], ["open"], ["open", ""], ["open", "a", "b"], ["open", "--pid", "x", "a"], ["begin"], ["begin", "--frob", "a"],
                     ["begin", "--node"], ["begin", "--parent", "x", "n"], ["step", "1", "2"], ["step", "1", "x", "3"], ["step", "x", "2", "3"],
                     ["step", "1", "nan", "3"], ["end"], ["end", "x"], ["close", "x"]):
            self.assertIn("usage: gputap", self.gputap("annotate", *args, code=2).stderr, args)
        self.assertIn("no process 4194999", self.gputap("annotate", "open", "--pid", "4194999", "a", code=1).stderr)
        out = self.shell('eval "$(gputap annotate open s)"; gputap annotate begin --device 9 x; gputap annotate end 999; '
                         'gputap annotate step 999 1 2; gputap annotate begin --device sim:rtx4090:0 y')
        self.assertIn("there is no GPU 9", out.stderr)
        self.assertEqual(out.stderr.count("no span of that id is open"), 2)
        self.assertRegex(out.stdout, r"^\d+\n$")

    def test_a_session_outlives_the_broker(self):
        broker = self.broker()
        shell = subprocess.Popen(["sh", "-c", 'eval "$(gputap annotate open s)"; gputap annotate begin work; read x'],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        span = int(shell.stdout.readline())
        broker.kill()
        broker.wait()
        self.broker()
        harness.wait_for(lambda: [x["id"] for s in self.sessions() for x in s["spans"]] == [span], 5, what="the span's return")
        shell.communicate(b"\n")

    def test_without_a_broker_a_script_goes_on(self):
        done = self.shell('eval "$(gputap annotate open s)"; id=$(gputap annotate begin work); gputap annotate step $id 1 2; '
                          'gputap annotate end $id; echo "code $?"')
        self.assertEqual(done.stdout, "code 0\n")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    harness.main()
