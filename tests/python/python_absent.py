"""Where library or broker are absent, old or broken, every call answers None, False or an empty list, and nothing raises."""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import time

from support import BUILD, LIBRARY, PACKAGE, ROOT, PythonCase, compile_c, gputap, main, sanitizers

# Says what each call answered, by name.
EVERY_CALL = """
import gputap
def answers():
    with gputap.session("x") as s:
        with s.span("a", node="1", job="j", devices=[0]) as sp:
            told = dict(step=sp.step(1, 2), begin_again=sp.begin())
        told.update(usage=len(sp.usage), energy=sp.usage[0].energy, by_id=sp.usage["x"].seconds, known=sp.usage[0].known, final=sp.final(0.1),
                    end=sp.end(), gauge=s.gauge(0, 1, 2, 3), poll=s.poll())
    told.update(
        latest=gputap.latest(0), host=gputap.host(), devices=gputap.devices(), device=gputap.device("0000:c5:00.0"), machine=gputap.machine(),
        memory=gputap.memory(0), fits=gputap.fits(0, 1), oom_report=gputap.oom_report(0), history=gputap.history(0, 60), now=gputap.now(),
        usage_between=gputap.usage_between(0, 1, 2), wait=gputap.wait(0.01), status=gputap.status(), sessions=gputap.sessions(),
        events=list(gputap.events()), event_wait=gputap.events().wait(1), period=gputap.request_period(0.1), torch=gputap.torch_device(0),
        instant=s.instant("x"), closed_gauge=s.gauge(0), closed_span=s.span("b").begin(), tuning=gputap.tuning(0))
    return told
first = answers()
assert answers() == first
wrong = {name: answer for name, answer in first.items() if not (answer is None or answer is False or answer == [] or answer == 0)}
assert not wrong, wrong
assert 'torch' not in __import__('sys').modules
print(gputap.library(), gputap.message())
"""


class NoLibrary(PythonCase):
    def expect_absent(self, library, text):
        self.assertIn(text, self.python(EVERY_CALL + "assert gputap.tuning('gfx1151') is None\nassert gputap.METRICS == []\n", GPUTAP_LIBRARY=str(library)))

    def test_no_such_file(self):
        self.expect_absent(self.folder / "libgputap.so", "None libgputap was not found:")

    def test_not_a_library(self):
        path = self.folder / "libgputap.so"
        for content in (b"", b"\x7fELF", b"hello", os.urandom(5000)):
            path.write_bytes(content)
            self.expect_absent(path, "None libgputap was not found:")
        self.expect_absent(self.folder, "None libgputap was not found:")
        self.expect_absent("\udc80\n", "None libgputap was not found:")

    def test_a_library_of_another_machine(self):
        path = self.folder / "libgputap.so"
        content = bytearray(LIBRARY.read_bytes())
        content[18:20] = (0xF3).to_bytes(2, "little")  # e_machine: RISC-V
        path.write_bytes(content)
        self.expect_absent(path, "None libgputap was not found:")

    def test_a_library_cut_off(self):
        path = self.folder / "libgputap.so"
        whole = LIBRARY.read_bytes()
        for length in (1, 63, 64, 100, 3000, 8192, len(whole) // 3):
            path.write_bytes(whole[:length])
            self.expect_absent(path, "None libgputap was not found:")

    def test_a_library_of_others(self):
        source, path = self.folder / "other.c", self.folder / "libgputap.so"
        source.write_text("int gputap_open(void) { return -1; }\n")
        compile_c("-shared", "-fPIC", source, "-o", path)
        self.expect_absent(path, "no library of gputap")

    def test_none_anywhere(self):
        package = self.folder / "elsewhere"
        shutil.copytree(PACKAGE / "gputap", package / "gputap", ignore=shutil.ignore_patterns("__pycache__"))
        env = self.python_env(PYTHONPATH=str(package), LD_LIBRARY_PATH="")
        del env["GPUTAP_LIBRARY"]
        done = subprocess.run([sys.executable, "-B", "-c", EVERY_CALL], env=env, capture_output=True, text=True, cwd=self.folder)
        if LIBRARY.name not in done.stdout:  # one may be installed on this system
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("None libgputap was not found: ", done.stdout)

    def old_library(self, functions):
        """A library that has only these functions."""
        script, path = self.folder / "exported.map", self.folder / "libgputap.so"
        script.write_text("{ global: %s; local: *; };\n" % "; ".join("gputap_" + f for f in functions))
        compile_c("-shared", *sanitizers(), "-Wl,--whole-archive", BUILD / "lib/libgputap.a", "-Wl,--no-whole-archive",
                  "-Wl,--version-script=%s" % script, "-o", path)
        return path

    def test_an_older_library_reads_and_lacks_the_rest(self):
        header = (ROOT / "client/include/gputap.h").read_text().split("/* --- annotations")[0]
        names = set(re.findall(r"GPUTAP_API [^;]*?\bgputap_(\w+)\(", header)) - {"usage_between", "now"}
        path = self.old_library(sorted(names))
        self.python(EVERY_CALL, GPUTAP_LIBRARY=str(path))
        self.simulate("--simulate", "rtx4090")
        self.python("""
            import gputap
            assert gputap.latest(0).power_now > 0
            assert len(gputap.devices()) == 1
            with gputap.session("x") as s:
                with s.span("y") as sp:
                    assert sp.step(1) is False
            assert sp.usage[0].energy is None and sp.final(1) is None
            assert gputap.memory(0) is None and gputap.fits(0, 1) is None and gputap.sessions() == [] and gputap.now() is None
            assert list(gputap.events()) == [] and gputap.tuning("gfx1151") is None and gputap.wait(5)
        """, GPUTAP_LIBRARY=str(path))


class NoBroker(PythonCase):
    def test_every_call_answers_nothing(self):
        self.assertIn("broker", self.python(EVERY_CALL))

    def test_bad_environments_raise_nothing(self):
        for env in ({"GPUTAP_DIR": "relative"}, {"GPUTAP_DIR": "/" + "x" * 5000}, {"GPUTAP_INSTANCE": "../x"}, {"GPUTAP_DIR": "/proc/1/root"},
                    {"GPUTAP_DIR": "/dev/null"}, {"HIP_VISIBLE_DEVICES": "x,,-"}):
            self.python(EVERY_CALL, **env)
        tap = gputap.Tap("no such instance")
        self.assertIsNone(tap.latest(0))
        self.assertEqual(gputap.Tap("\ud800\0").devices(), [])

    def test_a_segment_of_garbage_raises_nothing(self):
        folder = self.run_dir / "t"
        folder.mkdir()
        for content in (b"", b"x" * 10, os.urandom(4096), bytes(2**20)):
            (folder / "telemetry").write_bytes(content)
            self.python(EVERY_CALL)

    def test_a_broker_is_looked_for_at_most_four_times_a_second(self):
        looks = []
        real = gputap._calls.epoch
        gputap._calls.epoch = lambda *arguments: looks.append(1) or real(*arguments)
        try:
            start = time.monotonic()
            for _ in range(20000):
                self.assertIsNone(self.tap.latest(0))
                self.assertIsNone(self.tap.memory("0000:c5:00.0"))
            passed = time.monotonic() - start
        finally:
            gputap._calls.epoch = real
        self.assertLessEqual(len(looks), 1 + passed / 0.25)

    def test_it_is_found_when_it_comes(self):
        self.assertIsNone(self.tap.latest(0))
        self.simulate("--simulate", "rtx4090")
        self.assertIsNotNone(self.tap.latest(0).power_now)


class Source(PythonCase):
    def test_runs_from_the_source_tree_and_leaves_nothing_at_exit(self):
        """What the package does at import and exit: no file, no thread, no process, no exit handler, nothing of multiprocessing."""
        code = """
            import atexit, sys, threading
            before = atexit._ncallbacks()
            import gputap
            gputap.latest(0)
            with gputap.session("x") as s:
                pass
            assert atexit._ncallbacks() == before
            assert threading.active_count() == 1
            assert 'multiprocessing.shared_memory' not in sys.modules and 'subprocess' not in sys.modules
            print(gputap.library())
        """
        self.assertEqual(self.python(code), str(LIBRARY))

    def test_builds_of_the_source_tree_are_found(self):
        tree = self.folder / "tree"
        shutil.copytree(PACKAGE / "gputap", tree / "client/python/gputap", ignore=shutil.ignore_patterns("__pycache__"))
        (tree / "client/include").mkdir()
        (tree / "client/include/gputap.h").touch()
        for build, content in (("debug", None), ("release", b"broken")):
            lib = tree / "build" / build / "lib"
            lib.mkdir(parents=True)
            (lib / "libgputap.so").write_bytes(content or LIBRARY.read_bytes())
        env = {"PYTHONPATH": str(tree / "client/python"), "GPUTAP_LIBRARY": ""}
        self.assertEqual(self.python("import gputap; print(gputap.library())", **env), str(tree / "build/debug/lib/libgputap.so"))
        for folder in ("gputap/_lib", "gputap"):
            beside = tree / "client/python" / folder / "libgputap.so"
            beside.parent.mkdir(exist_ok=True)
            shutil.copy(LIBRARY, beside)
            self.assertEqual(self.python("import gputap; print(gputap.library())", **env), str(beside))
            beside.unlink()

    def test_constants_and_signatures_are_the_headers(self):
        from gputap import _events, _library
        header = (ROOT / "client/include/gputap.h").read_text()
        for name in ("EINVAL", "ENOBROKER"):
            self.assertRegex(header, r"GPUTAP_%s = %d\b" % (name, getattr(_library, name)))
        for name, value in (("MAX_SPANS", _events.MAX_SPANS), ("MAX_GAUGES", _events.MAX_GAUGES), ("SPAN_DEVICES", _events.SPAN_DEVICES),
                            ("OPEN_DETACHED", _library.OPEN_DETACHED)):
            self.assertRegex(header, r"GPUTAP_%s = %d\b" % (name, value))
        self.assertRegex(header, r"GPUTAP_METRIC_SLOTS %d\b" % _library.METRIC_SLOTS)
        for number, name in enumerate(_events._TYPES, 1):
            self.assertRegex(header, r"GPUTAP_EVENT_%s = %d\b" % (name.upper(), number))
        plain = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
        for name, (_, arguments) in {**_library.SIGNATURES, **_library.WAITS}.items():
            declared = re.search(r"GPUTAP_API [^;]*?\bgputap_%s\(([^;]*)\);" % name, plain)
            self.assertIsNotNone(declared, name)
            if arguments is not None:
                count = 0 if declared.group(1) == "void" else declared.group(1).count(",") + 1
                self.assertEqual(len(arguments), count, name)
        self.assertEqual(gputap._calls.missing, [])

    def test_structs_have_the_headers_layout(self):
        from gputap import _answers, _events, _library, _samples, _session
        structs = {"gputap_snapshot": _samples.DeviceSample, "gputap_sums": _samples.Sums, "gputap_device": _answers.Device,
                   "gputap_host": _answers.Host, "gputap_memory_info": _answers.Memory, "gputap_tuning_info": _answers.Tuning,
                   "gputap_usage": _answers.Usage, "gputap_span": _events.SpanInfo, "gputap_gauge_value": _events.Gauge,
                   "gputap_session": _events.SessionInfo, "gputap_event": _events.Event, "gputap_cursor": _events.Cursor,
                   "gputap_annotator": _session.Connection, "gputap_metric": _library.MetricStruct}
        other_names = {"_rest": "reserved", "_valid0": "valid[0]", "_valid1": "valid[1]"}
        lines, expected = [], []
        for name, struct in structs.items():
            lines.append('printf("%s %%zu\\n", sizeof(%s));' % (name, name))
            expected.append("%s %d" % (name, ctypes.sizeof(struct)))
            for member in struct._fields_:
                if member[0].startswith("_m") and struct is _samples.DeviceSample and member[0] != "_mono_ns":
                    number = (getattr(struct, member[0]).offset - struct._m_vram_total.offset) // 8
                    c_name = "values[%d]" % number
                else:
                    c_name = other_names.get(member[0], member[0].lstrip("_"))
                lines.append('printf("%s.%s %%zu\\n", offsetof(%s, %s));' % (name, member[0], name, c_name))
                expected.append("%s.%s %d" % (name, member[0], getattr(struct, member[0]).offset))
        for metric in gputap.METRICS:
            lines.append('printf("%s %%d\\n", GPUTAP_%s);' % (metric.name, metric.name.upper()))
            expected.append("%s %d" % (metric.name, metric.number))
        source, program = self.folder / "layout.c", self.folder / "layout"
        source.write_text("#include <gputap.h>\n#include <stdio.h>\nint main(void) {\n%s\n}\n" % "\n".join(lines))
        compile_c("-I", ROOT / "client/include", "-I", BUILD / "generated/include", source, "-o", program)
        told = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(told, expected)


if __name__ == "__main__":
    main()
