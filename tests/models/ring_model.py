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


def check_ring(depth, tickets, writer_form, reader_form):
    """Newest by head, in a ring of that depth."""
    writer, total = [], 0
    for ticket in range(1, tickets + 1):
        writer += write_slot("s%d" % (ticket % depth), ticket, **writer_form) + [store("head", ticket + 1, "release")]
    memory = empty(*("s%d" % i for i in range(depth)))
    for i in range(1, depth):
        memory["s%d.stamp" % i] = 1
    for head in range(1, tickets + 2):
        reader = [load("head", "h", "acquire")] + read_slot("s%d" % ((head - 1) % depth), **reader_form)
        states, results = outcomes(writer, reader, memory)
        total += states
        if any(r["h"] == head and r["a"] == 2 * head and torn(r) for r in results):
            return total, True
    return total, False


def publish_with_front(ticket, form, front_first=True):
    """As ring_publish does it into a ring of depth 2 with a front."""
    head = [store("head", ticket + 1, "release")]
    slot, front = write_slot("s%d" % (ticket % 2), ticket, **form), write_slot("f", ticket, **form)
    return slot + front + head if front_first else slot + head + front


def check_front_and_ring(writer_form, reader_form):
    """What ring_latest_words returns, by the front or, where that is being written, by head and the ring slot."""
    writer = publish_with_front(1, writer_form) + publish_with_front(2, writer_form)
    memory, total = empty("f", "s0", "s1"), 0
    memory["s1.stamp"] = 1
    for head in (None, 1, 2, 3):
        by_head = [load("head", "h", "acquire")] if head else []
        reader = by_head + read_slot("s%d" % ((head - 1) % 2) if head else "f", **reader_form)
        states, results = outcomes(writer, reader, memory)
        total += states
        if any(torn(r) for r in results if not head or (r["h"] == head and r["a"] == 2 * head)):
            return total, True
    return total, False


def check_backwards(front_first):
    """A record read through head, then the front: never an older one."""
    writer = []
    for ticket in (1, 2):
        front, head = write_slot("f", ticket), [store("head", ticket + 1, "release")]
        writer += front + head if front_first else head + front
    reader = [load("head", "h", "acquire"), load("f.stamp", "a", "acquire")]
    states, results = outcomes(writer, reader, empty("f"))
    return states, any(r["a"] % 2 == 0 and r["a"] // 2 - 1 < r["h"] - 1 for r in results)


def check_fallback(writer_form, reader_form):
    """A record read through the front, then head: it names that record or the one before, which the reader knows to refuse."""
    writer = publish_with_front(1, writer_form) + publish_with_front(2, writer_form)
    reader = read_slot("f", **reader_form) + [load("head", "h", "acquire")]
    memory = empty("f", "s0", "s1")
    states, results = outcomes(writer, reader, memory)
    return states, any(r["a"] % 2 == 0 and r["h"] - 1 < r["a"] // 2 - 2 for r in results)


RECIPE = ({}, {})
FENCE_FREE = (dict(barrier=None, data="release"), dict(barrier=None, data="acquire"))
MISTAKES = {
    "no release fence after the odd stamp": (dict(barrier=None), {}),
    "release on the odd stamp in place of the fence": (dict(odd="release", barrier=None), {}),
    "second look acquire in place of the fence": ({}, dict(barrier=None, again="acquire")),
    "no second look": ({}, dict(recheck=False)),
    "even stamp relaxed": (dict(even="relaxed"), {}),
    "first look relaxed": ({}, dict(first="relaxed")),
    "fence-free, data stores relaxed": (dict(barrier=None), FENCE_FREE[1]),
    "fence-free, data loads relaxed": (FENCE_FREE[0], dict(barrier=None)),
}
# Where a record is reached through head, head's release and acquire stand in for the last two of the recipe's own.
ONLY_WITHOUT_HEAD = ("even stamp relaxed", "first look relaxed")
FORMS = [
    ("one slot", check_slot),
    ("ring of depth 1", lambda w, r: check_ring(1, 2, w, r)),
    ("ring of depth 2", lambda w, r: check_ring(2, 3, w, r)),
    ("ring of depth 4", lambda w, r: check_ring(4, 5, w, r)),
    ("front and ring", check_front_and_ring),
]
ORDER = [
    ("front before head never goes backwards", False, lambda: check_backwards(True)),
    ("mistake: head before front", True, lambda: check_backwards(False)),
    ("head is at most one behind the front", False, lambda: check_fallback(*RECIPE)),
    ("head is at most one behind the front, fence-free", False, lambda: check_fallback(*FENCE_FREE)),
    ("mistake: head read with no order after the front", True,
     lambda: check_fallback({}, dict(first="relaxed", barrier=None, recheck=False))),
]


def cases():
    for form, check in FORMS:
        yield "recipe, " + form, False, lambda: check(*RECIPE)
        yield "recipe without fences, for ThreadSanitizer, " + form, False, lambda: check(*FENCE_FREE)
        for mistake, variant in MISTAKES.items():
            if not (form.startswith("ring") and mistake in ONLY_WITHOUT_HEAD):
                yield "mistake: %s, %s" % (mistake, form), True, lambda: check(*variant)
    yield from ORDER


def main():
    passed = wrong = 0
    for name, should_break, run in cases():
        states, broke = run()
        right = broke == should_break
        passed, wrong = passed + right, wrong + (not right)
        print("%-5s %-82s %s, %d states" % ("ok" if right else "WRONG", name, "breaks" if broke else "holds", states), flush=True)
    print("ring_model: %d passed, %d failed, 0 skipped" % (passed, wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
