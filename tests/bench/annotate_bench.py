"""Runs annotate_bench beside a broker of its own, and what Python users would pick: annotate_bench.py BIN"""
import ctypes
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import psutil
except ImportError:
    psutil = None


def python_rows(library):
    """psutil's processor and memory numbers / three fields read through ctypes, as in any binding without a build."""
    tap = ctypes.c_void_p()
    gputap = ctypes.PyDLL(str(library))
    if gputap.gputap_open(ctypes.byref(tap), None, 0) != 0:
        print("python: cannot open the broker")
        return
    metrics, values, read = (ctypes.c_int * 3)(0, 1, 2), (ctypes.c_double * 3)(), gputap.gputap_read

    def ours():
        read(tap, 0, metrics, 3, values)

    def theirs():
        psutil.cpu_percent()
        psutil.virtual_memory()

    def cost(call, turns):
        start = time.perf_counter_ns()
        for _ in range(turns):
            call()
        return (time.perf_counter_ns() - start) / turns
    ratios = sorted(cost(theirs, 20) / cost(ours, 400) for _ in range(60))
    print("%-58s %6.0f  (p10 %.0f, p90 %.0f)  target >= 50" % ("Python: psutil pair / three fields read by ctypes",
                                                            statistics.median(ratios), ratios[6], ratios[54]))
    gputap.gputap_close(tap)


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="gputap-bench", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        env = dict(os.environ, GPUTAP_DIR=folder, GPUTAP_INSTANCE="bench")
        os.environ.update(GPUTAP_DIR=folder, GPUTAP_INSTANCE="bench")
        broker = subprocess.Popen([str(binary / "gputapd"), "--period", "100", "--simulate", "mi300x:1"], env=env,
                                  stdout=subprocess.DEVNULL)
        try:
            for _ in range(200):
                if os.path.exists(folder + "/bench/telemetry"):
                    break
                time.sleep(0.02)
            time.sleep(0.5)
            subprocess.run([str(binary / "bench/annotate_bench"), folder], env=env, check=False)
            if psutil is None:
                print("Python: psutil pair: skipped, psutil is not installed")
            else:
                python_rows(next(binary.parent.glob("**/libgputap.so")))
        finally:
            broker.send_signal(signal.SIGTERM)
            broker.wait(10)


main()
