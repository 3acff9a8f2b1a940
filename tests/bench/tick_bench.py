"""What a tick costs broker and workers, against a bare pread loop over the same files at the same rate: tick_bench.py BIN [SECONDS [ROOT]]

Once on this machine (or the root given), once below a root with eight GPUs. The files of that root are not a driver's, so reading one
costs less than in earnest, and what is not reading weighs more."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scenario"))
import fake_machine  # noqa: E402
from segment import Segment  # noqa: E402

GIB = 1 << 30


def children(pid):
    out = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            out.append(int(name))
    return out


def cpu_ns(pid):
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0])


def name_of(pid):
    with open("/proc/%d/comm" % pid) as f:
        return f.read().strip()


def open_files(pid, root):
    """Regular files below /proc and /sys (or the root given) that a worker keeps open."""
    files = []
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            path = os.readlink("/proc/%d/fd/%s" % (pid, name))
        except OSError:
            continue
        if os.path.isfile(path) and (path.startswith(root) if root else not path.startswith(("/dev/", "/tmp/gputap-bench"))):
            files.append(path)
    return files


def private_kb(pid):
    """Private memory without the shared segment, which counts as private while nobody else maps it."""
    total, counted = 0, True
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            if "-" in line.split(" ")[0]:
                counted = "telemetry" not in line
            elif counted and line.startswith(("Private_Clean", "Private_Dirty")):
                total += int(line.split()[1])
    return total


def measure(binary, period, seconds, root):
    with tempfile.TemporaryDirectory(prefix="gputap-bench") as folder:
        env = dict(os.environ, GPUTAP_DIR=folder, GPUTAP_INSTANCE="bench")
        arguments = [str(binary / "gputapd"), "--period", str(period)] + (["--root", root] if root else [])
        broker = subprocess.Popen(arguments, env=env, stdout=subprocess.DEVNULL)
        try:
            time.sleep(2)
            workers = children(broker.pid)
            files = [f for w in workers for f in open_files(w, root)]
            segment = os.path.join(folder, "bench", "telemetry")
            everybody = [broker.pid] + workers
            before, tick = [cpu_ns(p) for p in everybody], Segment(segment).tick
            floor = int(subprocess.run([str(binary / "bench/pread_floor"), str(period), str(seconds), *files], check=True,
                                       capture_output=True, text=True).stdout)
            ticks = Segment(segment).tick - tick
            costs = {name_of(p): (cpu_ns(p) - b) / ticks for p, b in zip(everybody, before)}
            memory = [private_kb(p) for p in [broker.pid] + workers]
            return costs, floor, len(files), len(workers), memory
        finally:
            broker.terminate()
            broker.wait()


def eight_gpus(folder):
    """A root with eight cards of a dozen files each that are read every tick."""
    machine = fake_machine.Machine(folder)
    for name in ("stat", "meminfo", "loadavg", "diskstats", "net/dev", "cpuinfo"):
        path = machine.root / "proc" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pathlib.Path("/proc", name).read_bytes())
    pair = (16 * GIB, 3 * GIB)
    for i in range(8):
        machine.gpu("0000:%02x:00.0" % (3 + 8 * i), render=128 + i, card=i, device=0x73bf, revision=0xc0,
                    files=dict(fake_machine.memory_files(pair, pair, pair), gpu_busy_percent="87\n", mem_busy_percent="17\n"),
                    hwmon={"temp1_label": "edge\n", "temp1_input": "63000\n", "temp2_label": "junction\n", "temp2_input": "70000\n",
                           "power1_label": "PPT\n", "power1_average": "190000000\n", "freq1_label": "sclk\n",
                           "freq1_input": "2300000000\n"})
    return str(machine.root)


def report(binary, seconds, root, what):
    for period in (1000, 100):
        costs, floor, files, workers, memory = measure(binary, period, max(seconds, 4 * period // 1000), root)
        cost = sum(costs.values())
        print("%stick at %4d ms: broker and %d workers / bare pread of the same %d files %6.2f  (%.0f us / %.0f us)  target <= 1.5"
              % (what, period, workers, files, cost / floor, cost / 1000, floor / 1000))
        print("   " + ", ".join("%s %.0f us" % (name, us / 1000) for name, us in costs.items()))
    print("%sprivate memory: broker %d KiB (target <= 4096), workers %s KiB (target <= 3072)" % (what, memory[0], memory[1:]))


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    root = sys.argv[3] if len(sys.argv) > 3 else None
    report(binary, seconds, root, "")
    with tempfile.TemporaryDirectory(prefix="gputap-root", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        report(binary, seconds, eight_gpus(folder), "8 GPUs: ")


if __name__ == "__main__":
    main()
