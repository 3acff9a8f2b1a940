#!/usr/bin/env python3
"""Explores every order in which a weakly ordered processor may carry out the ring's recipe, and every way reader and writer may
interleave. Each recipe in shm/ring.h must come out clean; each listed mistake must come out broken, or the model proves nothing.

The machine is multi-copy atomic with free reordering inside a thread (ARMv8-like): two operations of one thread keep their order
only if they touch one location, or an acquire load, a release store or a fence says so.
"""
import sys

ODD, EVEN = 1, 2


def store(place, value, order="relaxed"):
    return ("store", place, value, order)


def load(place, register, order="relaxed"):
    return ("load", place, register, order)


def fence(kind):
    return ("fence", kind, None, None)


def must_follow(ops):
    """For each operation the set of earlier ones that must be done first."""
    out = []
    for j, later in enumerate(ops):
        before = set()
        for i in range(j):
            earlier = ops[i]
            if "fence" in (earlier[0], later[0]):
                continue
            between = [op[1] for op in ops[i + 1:j] if op[0] == "fence"]
            ordered = (earlier[1] == later[1]
                       or (earlier[0] == "load" and earlier[3] == "acquire")
                       or (later[0] == "store" and later[3] == "release")
                       or ("release" in between and later[0] == "store")
                       or ("acquire" in between and earlier[0] == "load"))
            if ordered:
                before.add(i)
        out.append(before)
    return out


def outcomes(writer, reader, memory):
    """Every set of registers that the reader can end with."""
    places = sorted(memory)
    index = {place: i for i, place in enumerate(places)}
    threads = (writer, reader)
    orders = tuple(must_follow(t) for t in threads)
    done = tuple(frozenset(i for i, op in enumerate(t) if op[0] == "fence") for t in threads)
    stack = [(done, tuple(memory[p] for p in places), ())]
    seen, results = set(), set()
    while stack:
        state = stack.pop()
        if state in seen:
            continue
        seen.add(state)
        done, cells, registers = state
        if len(done[1]) == len(reader):
            results.add(registers)
            continue
        for which, ops in enumerate(threads):
            for i, op in enumerate(ops):
                if i in done[which] or not orders[which][i] <= done[which]:
                    continue
                new_done = list(done)
                new_done[which] = done[which] | {i}
                new_cells, new_registers = cells, registers
                if op[0] == "store":
                    changed = list(cells)
                    changed[index[op[1]]] = op[2]
                    new_cells = tuple(changed)
                else:
                    new_registers = tuple(sorted(registers + ((op[2], cells[index[op[1]]]),)))
                stack.append((tuple(new_done), new_cells, new_registers))
    return len(seen), [dict(r) for r in results]


def write_slot(name, ticket, odd="relaxed", barrier="release", data="relaxed", even="release"):
    ops = [store(name + ".stamp", 2 * ticket + ODD, odd)]
    if barrier:
        ops.append(fence(barrier))
    ops += [store(name + ".word%d" % k, ticket, data) for k in range(2)]
    return ops + [store(name + ".stamp", 2 * ticket + EVEN, even)]


def read_slot(name, first="acquire", data="relaxed", barrier="acquire", again="relaxed", recheck=True):
    ops = [load(name + ".stamp", "a", first)] + [load(name + ".word%d" % k, "w%d" % k, data) for k in range(2)]
    if barrier:
        ops.append(fence(barrier))
    return ops + ([load(name + ".stamp", "b", again)] if recheck else [])


def torn(registers):
    stamp = registers["a"]
    if stamp % 2 or registers.get("b", stamp) != stamp:
        return False
    return any(registers["w%d" % k] != stamp // 2 - 1 for k in range(2))


def empty(*names):
    memory = {"head": 1}
    for name in names:
        memory.update({name + ".stamp": 2, name + ".word0": 0, name + ".word1": 0})
    return memory


def check_slot(writer_form, reader_form):
    """One slot written over and over: front, or a ring lapped under the reader."""
    writer = write_slot("f", 1, **writer_form) + write_slot("f", 2, **writer_form)
    states, results = outcomes(writer, read_slot("f", **reader_form), empty("f"))
    return states, any(map(torn, results))


def check_ring(depth, tickets, writer_form):
    """Newest by head, in a ring of that depth."""
    writer, total, bad = [], 0, False
    for ticket in range(1, tickets + 1):
        writer += write_slot("s%d" % (ticket % depth), ticket, **writer_form) + [store("head", ticket + 1, "release")]
    memory = empty(*("s%d" % i for i in range(depth)))
    for i in range(1, depth):
        memory["s%d.stamp" % i] = 1
    for head in range(1, tickets + 2):
        reader = [load("head", "h", "acquire")] + read_slot("s%d" % ((head - 1) % depth))
        states, results = outcomes(writer, reader, memory)
        total += states
        bad = bad or any(r["h"] == head and r["a"] == 2 * head and torn(r) for r in results)
    return total, bad


def check_backwards(front_first):
    """A record read through head, then the front: never an older one."""
    writer = []
    for ticket in (1, 2):
        front, head = write_slot("f", ticket), [store("head", ticket + 1, "release")]
        writer += front + head if front_first else head + front
    reader = [load("head", "h", "acquire"), load("f.stamp", "a", "acquire")]
    states, results = outcomes(writer, reader, empty("f"))
    return states, any(r["a"] % 2 == 0 and r["a"] // 2 - 1 < r["h"] - 1 for r in results)


GOOD = {}
FENCE_FREE = (dict(barrier=None, data="release"), dict(barrier=None, data="acquire"))
CASES = [
    ("recipe, one slot", False, lambda: check_slot(GOOD, GOOD)),
    ("recipe without fences, for ThreadSanitizer", False, lambda: check_slot(*FENCE_FREE)),
    ("recipe, ring of depth 2", False, lambda: check_ring(2, 3, GOOD)),
    ("recipe, ring of depth 4", False, lambda: check_ring(4, 5, GOOD)),
    ("front before head never goes backwards", False, lambda: check_backwards(True)),
    ("mistake: head before front", True, lambda: check_backwards(False)),
    ("mistake: no release fence after the odd stamp", True, lambda: check_slot(dict(barrier=None), GOOD)),
    ("mistake: release on the odd stamp in place of the fence", True, lambda: check_slot(dict(odd="release", barrier=None), GOOD)),
    ("mistake: even stamp relaxed", True, lambda: check_slot(dict(even="relaxed"), GOOD)),
    ("mistake: second look acquire in place of the fence", True, lambda: check_slot(GOOD, dict(barrier=None, again="acquire"))),
    ("mistake: no second look", True, lambda: check_slot(GOOD, dict(recheck=False))),
    ("mistake: first look relaxed", True, lambda: check_slot(GOOD, dict(first="relaxed"))),
    ("mistake: ring of depth 2 without the fence", True, lambda: check_ring(2, 3, dict(barrier=None))),
]


def main():
    wrong = 0
    for name, should_break, run in CASES:
        states, broke = run()
        wrong += broke != should_break
        print("%-5s %-60s %s, %d states" % ("ok" if broke == should_break else "WRONG", name, "breaks" if broke else "holds", states))
    print("ring_model: %d passed, %d failed, 0 skipped" % (len(CASES) - wrong, wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
