"""What calls of the Python package cost, as ratios within one run: python_bench.py BIN [ROUNDS]. Never fails for being slow.

The no-op that reads are measured by is the same foreign call with the same kinds of arguments, on no handle, so that it returns at
once: what is left is what reading itself and its Python add."""
import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def prepare(binary, folder):
    """Before the package is imported: it looks for its library then."""
    os.environ.update(GPUTAP_DIR=folder, GPUTAP_INSTANCE="bench", GPUTAP_LIBRARY=str(binary.parent / "lib/libgputap.so"))
    sys.path.insert(0, str(ROOT / "client/python"))


def loop(function, count=2000):
    start = time.perf_counter_ns()
    for _ in range(count):
        function()
    return (time.perf_counter_ns() - start) / count


def ratios(candidates, base, rounds):
    """Median, p10 and p90 over rounds of each candidate's time in units of the base's, interleaved; and median ns."""
    times = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, function in candidates.items():
            times[name].append(loop(function))
    told = {}
    for name in candidates:
        told[name] = sorted(a / b for a, b in zip(times[name], times[base]))
    return {name: (statistics.median(r), r[len(r) // 10], r[-1 - len(r) // 10], statistics.median(times[name])) for name, r in told.items()}


def show(rows, base, targets):
    for name, (median, low, high, ns) in rows.items():
        if name == base:
            print("  %-44s        (%.0f ns)" % (name, ns))
            continue
        note = "  target <= %g" % targets[name] if name in targets else ""
        note += "  inconclusive: p90/p10 > 1.5" if high / low > 1.5 else ""
        print("  %-44s %6.2f  [%.2f .. %.2f]  (%.0f ns)%s" % (name, median, low, high, ns, note))


def percentile(function, share=0.99, count=20000):
    clock, times = time.perf_counter_ns, []
    for _ in range(count):
        start = clock()
        function()
        times.append(clock() - start)
    return sorted(times)[int(share * count)]


def beside_a_busy_thread(function):
    stop = threading.Event()

    def busy():
        x = 0
        while not stop.is_set():
            x += 1
    thread = threading.Thread(target=busy)
    thread.start()
    try:
        return percentile(function, count=4000)
    finally:
        stop.set()
        thread.join()


def bench(gputap, rounds):
    calls = gputap._calls
    nothing, sample = ctypes.c_void_p(), gputap.DeviceSample()
    no_op, byref, latest = calls.latest, ctypes.byref, gputap.latest
    session = gputap.session("bench")
    span = session.span("work")
    span.begin()
    step, no_step = span.step, calls.span_step

    def node():
        with session.span("node"):
            pass

    print("reads and annotations / ctypes no-op:")
    base = "ctypes no-op: (handle, number, struct)"
    rows = ratios({
        base: lambda: no_op(nothing, 0, byref(sample)),
        "latest(0)": lambda: latest(0),
        "latest(0).gfx_busy": lambda: latest(0).gfx_busy,
        "host()": gputap.host,
        "memory(0)": lambda: gputap.memory(0),
        "with span: begin and end, with usage": node,
    }, base, rounds)
    show(rows, base, {"latest(0)": 2.5})
    base = "ctypes no-op: (handle, span, value, max)"
    show(ratios({base: lambda: no_step(nothing, 1, 1.0, 2.0), "span.step(value, max)": lambda: step(1.0, 2.0)}, base, rounds), base,
         {"span.step(value, max)": 2.5})
    bare = calls.version
    base = "ctypes no-op: no arguments at all"
    show(ratios({base: bare, "latest(0), by that": lambda: latest(0)}, base, rounds), base, {})

    def read():
        return latest(0)
    quiet, beside = percentile(read), beside_a_busy_thread(read)
    print("  %-44s %6.2f  (%d / %d ns)  target <= 20" % ("latest(0), p99 beside a busy thread / alone", beside / quiet, beside, quiet))
    given = ctypes.CDLL(calls.path).gputap_latest
    handle = gputap._default._handle
    sample._size = ctypes.sizeof(sample)

    def giving():
        given(handle, 0, byref(sample))
    print("  %-44s %6.2f  (the lock given away in each call)" % ("the same through CDLL", beside_a_busy_thread(giving) / quiet))
    try:
        import psutil
    except ImportError:
        print("  psutil is not here")
    else:
        psutil.cpu_percent()
        pair = statistics.median(loop(lambda: (psutil.cpu_percent(), psutil.virtual_memory()), 50) for _ in range(rounds))
        one = statistics.median(loop(read) for _ in range(rounds))
        print("  %-44s %6.0f  (%.0f us)  target >= 50" % ("psutil's CPU and memory / latest(0)", pair / one, pair / 1e3))
    span.end()
    session.close()


ABSENT = """
import sys
sys.path.insert(0, sys.argv[1])
import gputap, timeit
session = gputap.session("x")
span, other = session.span("x"), session.span("x")
span.begin()
def node():
    with session.span("x"): pass
for name, function in (("latest(0)", lambda: gputap.latest(0)), ("host()", gputap.host), ("memory(0)", lambda: gputap.memory(0)),
                       ("fits(0, 1)", lambda: gputap.fits(0, 1)), ("devices()", gputap.devices), ("history(0, 60)", lambda: gputap.history(0, 60)),
                       ("status()", gputap.status), ("sessions()", gputap.sessions), ("wait(1)", lambda: gputap.wait(1)),
                       ("usage_between(0, 1)", lambda: gputap.usage_between(0, 1)), ("tuning(0)", lambda: gputap.tuning(0)),
                       ("span.step(1, 2)", lambda: span.step(1, 2)), ("span.begin(), span.end()", lambda: (other.begin(), other.end())),
                       ("session.gauge(0, 1)", lambda: session.gauge(0, 1)), ("session.instant(x)", lambda: session.instant("x")),
                       ("with session.span(x): all of it", node)):
    function()
    best = sorted(timeit.repeat(function, number=2000, repeat=15))[7] / 2000 * 1e9
    print("  %-44s (%.0f ns)%s" % (name, best, "" if best < 1000 or "end" in name or "all" in name else "  target < 1000"))
"""


def absent(folder):
    for title, env in (("without a broker:", {"GPUTAP_DIR": folder, "GPUTAP_INSTANCE": "nobody"}),
                       ("without a library:", {"GPUTAP_LIBRARY": os.path.join(folder, "nothing.so")})):
        print(title, flush=True)
        subprocess.run([sys.executable, "-B", "-c", ABSENT, str(ROOT / "client/python")], env=dict(os.environ, **env), check=False)


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 31
    with tempfile.TemporaryDirectory(prefix="gputap-bench") as folder:
        prepare(binary, folder)
        broker = subprocess.Popen([str(binary / "gputapd"), "--simulate", "rtx4090", "--period", "100", "--no-provider", "drm", "--no-provider", "amdgpu"],
                                  stdout=subprocess.DEVNULL)
        try:
            import gputap
            for _ in range(100):
                if gputap.latest(0):
                    break
                time.sleep(0.1)
            else:
                sys.exit("no broker: " + gputap.message())
            bench(gputap, rounds)
        finally:
            broker.terminate()
            broker.wait()
        absent(folder)


if __name__ == "__main__":
    main()
