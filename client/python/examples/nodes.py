"""Three pieces of work, as nodes of a workflow would be, and what each of them cost: seconds, joules, peak VRAM.

    gputapd --simulate rtx4090 --sim-load workflow &
    python3 nodes.py

The simulated load repeats load 2 s, sample 6 s, decode 2 s by the monotonic clock; the nodes here keep in step with it, with a little
time between them."""
import sys
import time

import gputap

NODES = (("Load Checkpoint", "4", 2.0), ("KSampler", "3", 6.0), ("VAE Decode", "8", 2.0))
ROUND = sum(seconds for _, _, seconds in NODES)
BETWEEN = 0.03


def number(value, scale, unit):
    return "unknown" if value is None else "%.2f %s" % (value / scale, unit)


def work(session, job, name, node, until):
    """A node that computes until then, and tells how far it is."""
    with session.span(name, node=node, job=job) as span:
        start = time.monotonic()
        while time.monotonic() < until:
            span.step(time.monotonic() - start, until - start)
            time.sleep(min(0.05, max(until - time.monotonic(), 0)))
    return span


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    if not gputap.devices():
        sys.exit(gputap.message() or "no GPU was found")
    with gputap.session("nodes.py") as session:
        start = (time.monotonic() // ROUND + 1) * ROUND  # of the simulator's next round
        for turn in range(rounds):
            job = "round %d" % (turn + 1)
            spans = []
            for name, node, seconds in NODES:
                time.sleep(max(start + BETWEEN - time.monotonic(), 0))
                start += seconds
                spans.append(work(session, job, name, node, start - BETWEEN))
            for span, (name, _, _) in zip(spans, NODES):
                span.final(timeout=3)
                for device, usage in span.usage.items():
                    print("%-16s GPU %d  %s  %s  %s%s" % (
                        name, device, number(usage.seconds, 1, "s"), number(usage.energy, 1, "J"),
                        number(usage.vram_peak, 2**30, "GiB"), "  (estimated)" if usage.estimated else ""), flush=True)


if __name__ == "__main__":
    main()
