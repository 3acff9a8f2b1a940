"""What the simulator's load "workflow" takes by its own script."""

# The simulator's load "workflow", as its table says (broker/providers/sim_load.c): seconds, share of the TGP, share of the memory.
PHASES = ((2.0, 0.40, 0.50), (6.0, 0.95, 0.80), (2.0, 0.60, 0.90))
TGP, VRAM = 450.0, 24 * 2**30


def workflow_joules(start, end):
    """Of an rtx4090 between two times of the monotonic clock."""
    def until(moment):
        rounds, left = divmod(moment, sum(p[0] for p in PHASES))
        joules = rounds * sum(p[0] * p[1] for p in PHASES)
        for seconds, share, _ in PHASES:
            joules += min(left, seconds) * share
            left = max(left - seconds, 0)
        return joules * TGP
    return until(end) - until(start)


def workflow_memory(moment):
    left = moment % sum(p[0] for p in PHASES)
    for seconds, _, memory in PHASES:
        if left < seconds:
            return memory
        left -= seconds
    raise AssertionError
