"""A broker that looks for processes, with the test in the place of its scan."""
import subprocess

import harness

TOOL = harness.BIN / "tests/process_tool"
GIB = 2 ** 30


class ProcessStage:
    """tests/helpers/process_tool.c on the instance of a scenario; ends with the test."""

    def __init__(self, test, devices=1):
        folder = test.run_dir / "t"
        folder.mkdir(exist_ok=True)
        self.process = subprocess.Popen([str(TOOL), str(folder), str(devices)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=test.env)
        test.addCleanup(self.end)
        self._answer("start")

    def _answer(self, line):
        answer = self.process.stdout.readline().strip()
        if answer != "ok":
            raise AssertionError("%s: %s" % (line, answer or "ended"))

    def __call__(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self._answer(line)

    def row(self, pid, uid, vram, gtt=0, gfx="-", compute="-", comm="python3", flags=0, sharers=0, container=""):
        """A row of the next table; numbers may be "-"."""
        words = ["row", pid, uid, vram, gtt, gfx, compute, comm, flags, sharers, container]
        self(" ".join(map(str, words[:8] if not container and not flags and not sharers else words[:-1] + [container or "-"])))

    def table(self, device=0, others=0, hidden=0, partial=0, external="-"):
        """Publishes the rows since the last one as what holds a device."""
        self("table %d %d %d %d %s" % (device, others, hidden, partial, external))

    def end(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
