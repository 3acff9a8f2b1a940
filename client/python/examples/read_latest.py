"""Prints a few numbers of every GPU at each tick of the broker, ten times."""
import sys

import gputap


def text(sample, name):
    value = sample[name]
    return "%s -" % name if value is None else "%s %.1f" % (name, value)


def main():
    found = gputap.devices()
    if not found:
        sys.exit(gputap.message() or "no GPU was found")
    tick = None
    for _ in range(10):
        for device in found:
            sample = gputap.latest(device.number)
            if sample:
                print(device.name, *(text(sample, name) for name in ("gfx_busy", "vram_used", "power_now", "temperature_edge")), sep="  ")
        tick = gputap.wait(5, tick)
        if tick is None:
            sys.exit("no tick in 5 s")


if __name__ == "__main__":
    main()
