"""The examples and the README's lines run, and tell what is true."""
import re
import subprocess
import sys
import time

from support import PACKAGE, ROOT, PythonCase, main, wait_for
from workflow import workflow_joules, workflow_memory


class Examples(PythonCase):
    def test_three_nodes_cost_what_the_simulators_script_says_also_when_the_period_changes(self):
        self.simulate("--simulate", "rtx4090", "--sim-load", "workflow", "--period", "500")
        child = subprocess.Popen([sys.executable, "-B", str(PACKAGE / "examples/nodes.py"), "1"], env=self.python_env(),
                                 stdout=subprocess.PIPE, text=True)
        wait_for(lambda: any(s.spans and s.spans[0].name == "KSampler" for s in self.tap.sessions()), 25, what="the second node")
        time.sleep(1)
        self.assertTrue(self.tap.request_period(0.02) or self.tap.poll())
        wait_for(lambda: self.tap.poll() and self.tap.status().period == 0.02, what="another period")
        output, _ = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 0)
        rows = re.findall(r"^(\S.*?) +GPU 0  ([\d.]+) s  ([\d.]+) J  ([\d.]+) GiB$", output, re.M)
        self.assertEqual([row[0] for row in rows], ["Load Checkpoint", "KSampler", "VAE Decode"], output)
        spans = {}
        for event in self.tap.events():  # all there are: the script has waited for the usage that follows them
            if event.type in ("begin", "end"):
                spans.setdefault(event.name, []).append(event.mono_ns / 1e9)
        for name, seconds, joules, peak in rows:
            start, end = spans[name]
            self.assertAlmostEqual(float(seconds), end - start, delta=0.05 * (end - start))
            script = workflow_joules(start, end)
            self.assertAlmostEqual(float(joules), script, delta=0.05 * script, msg=name)
            # A machine that is busy may end a node late, just past the boundary of its phase; a sample there may be or not.
            sure = max(workflow_memory(start + (end - start - 0.2) * i / 1000) for i in range(1000)) * 24
            possible = max(sure, workflow_memory(end) * 24)
            self.assertTrue(0.95 * sure <= float(peak) <= 1.05 * possible, (name, peak, sure, possible))

    def test_read_latest(self):
        self.simulate("--simulate", "rtx4090", "--period", "50")
        done = subprocess.run([sys.executable, "-B", str(PACKAGE / "examples/read_latest.py")], env=self.python_env(), capture_output=True,
                              text=True, timeout=30)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(re.findall(r"RTX 4090 \(simulated\)  gfx_busy \d+\.\d  vram_used \d+\.\d  power_now \d+\.\d", done.stdout)), 10)

    def test_the_example_of_the_readme_runs_with_and_without_a_broker(self):
        code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
        self.assertRegex(self.python(code), r"^None None None None False$")
        self.simulate("--simulate", "rtx4090")
        told = self.python(code).splitlines()
        self.assertRegex(told[0], r"^[\d.]+ \d{9,} [\d.]+$")
        self.assertRegex(told[1], r"^0\.\d+ [\d.]+ [\d.]+ [\d.]+ (True|False)$")

    def test_examples_say_why_there_is_nothing(self):
        for name in ("read_latest.py", "nodes.py"):
            done = subprocess.run([sys.executable, "-B", str(PACKAGE / "examples" / name)], env=self.python_env(), capture_output=True, text=True,
                                  timeout=30)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("broker", done.stderr)


if __name__ == "__main__":
    main()
