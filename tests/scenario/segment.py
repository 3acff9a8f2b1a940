"""Reads a segment file from the outside, by the layout's own description: an oracle that shares no code with the library."""
import json
import mmap
import struct

STATES = {0: "init", 1: "live", 2: "closing", 3: "superseded", 0xDEAD: "dead"}
DEVICE_STATES = ["ok", "asleep", "settling", "hung", "gone"]
FRONT, RING, COARSE, DEVICE, STATS, SCHEMA, PROVIDER, SESSION, EVENT = 3, 4, 5, 2, 6, 7, 8, 9, 10
EVENT_TYPES = ["", "attach", "detach", "begin", "step", "end", "instant", "usage"]


def text_at(raw, at, size):
    return raw[at:at + size].split(b"\0")[0].decode()


class Segment:
    """A copy of the file, or with live=True a view of it that changes under the reader."""

    def __init__(self, path, live=False):
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) if live else f.read()
        d = self.data
        assert d[:8] == b"GPUTAP1\n", d[:8]
        self.epoch = d[32:48]
        self.pid = struct.unpack_from("<I", d, 64)[0]
        self.state = STATES[struct.unpack_from("<I", d, 256)[0]]
        self.period_ns = struct.unpack_from("<Q", d, 328)[0]
        self.tick = struct.unpack_from("<Q", d, 392)[0]
        self.device_count = struct.unpack_from("<Q", d, 448)[0]
        count = struct.unpack_from("<I", d, 136)[0]
        self.regions = {}
        for i in range(count):
            kind, index, n, offset, stride, element, depth, _ = struct.unpack_from("<HHIQIIII", d, 1024 + 32 * i)
            self.regions[kind, index] = (offset, n, stride, element, depth)
        offset, _, _, size, _ = self.regions[SCHEMA, 0]
        self.schema = json.loads(d[offset:offset + size])

    def _record(self, kind, index, element, back=0):
        """Where the payload of a ring's newest record begins, or of the one `back` before it, and the bytes of a slot; None if there
        is none, or it was being written when the file was copied."""
        offset, _, stride, size, depth = self.regions[kind, index]
        base = offset + element * stride
        first, head = struct.unpack_from("<Q", self.data, base)[0], struct.unpack_from("<Q", self.data, base + 64)[0]
        if back >= (head - first) % 2 ** 64:
            return None
        ticket = (head - 1 - back) % 2 ** 64
        at = base + 128 + (ticket % depth) * size
        stamp = struct.unpack_from("<Q", self.data, at)[0]
        return (at + 8, size) if stamp == (2 * ticket + 2) % 2 ** 64 else None

    def _entry(self, kind, element):
        """Newest of a ring of depth 2, or None."""
        found = self._record(kind, 0, element) or self._record(kind, 0, element, 1)
        return self.data[found[0]:found[0] + found[1] - 8] if found else None

    def snapshot(self, device):
        """{metric: value or None}, with tick, state and generation; device None is the host. None if nothing is there yet. A front
        that was being written when the file was copied is passed over for the ring, as every reader does."""
        index, table, element = (1, "host", 0) if device is None else (0, "gpu", device)
        offset, _, stride, _, _ = self.regions[FRONT, index]
        at = offset + element * stride
        if struct.unpack_from("<Q", self.data, at)[0] % 2:
            found = self._record(RING, index, element) or self._record(RING, index, element, 1)
            at = found[0] - 8 if found else at
        words = struct.unpack_from("<64Q", self.data, at)
        reals = struct.unpack_from("<64d", self.data, at)
        if words[0] % 2 or words[1] == 0:
            return None
        out = {"tick": words[1], "mono_ns": words[2], "state": DEVICE_STATES[words[7] & 255], "generation": words[7] >> 32,
               "sums": dict(zip(self.schema["sums"], reals[59:64]))}
        for m in self.schema[table]:
            i = m["index"]
            valid = words[5 + i // 64] >> (i % 64) & 1
            out[m["name"]] = None if not valid else reals[8 + i] if m["type"] == "f64" else words[8 + i]
        return out

    def newest(self, device):
        """(records published, whether the front is whole) of a device's ring."""
        offset, _, stride, _, _ = self.regions[RING, 0]
        base = offset + device * stride
        head, first = struct.unpack_from("<Q", self.data, base + 64)[0], struct.unpack_from("<Q", self.data, base)[0]
        offset, _, stride, _, _ = self.regions[FRONT, 0]
        return (head - first) % 2 ** 64, struct.unpack_from("<Q", self.data, offset + device * stride)[0] % 2 == 0

    def device(self, device):
        """Facts: id, name, state, pool, reasons by metric."""
        raw = self._entry(DEVICE, device)
        if raw is None:
            return None
        text = lambda at, size: raw[at:at + size].split(b"\0")[0].decode()
        reasons = raw[440:504]
        return {"id": text(0, 48), "pci": text(48, 16), "vendor": text(112, 16), "name": text(128, 96), "driver": text(224, 24),
                "arch": text(288, 16), "pool": ["unknown", "discrete", "unified"][struct.unpack_from("<I", raw, 340)[0]],
                "vram_type": text(304, 16), "compute_units": struct.unpack_from("<I", raw, 356)[0],
                "vram_bus_bits": struct.unpack_from("<I", raw, 360)[0], "simulated": struct.unpack_from("<I", raw, 344)[0], "state": DEVICE_STATES[struct.unpack_from("<I", raw, 348)[0]],
                "reasons": {m["name"]: self.schema["reasons"][reasons[m["index"]]] for m in self.schema["gpu"]}}

    def devices(self):
        return [self.device(i) for i in range(self.device_count)]

    def stats(self):
        names = ["ticks", "missed_ticks", "late_samples", "publish_ns", "broker_cpu_ns", "workers_cpu_ns", "workers_alive",
                 "worker_restarts", "workers_killed", "workers_abandoned", "bad_messages", "recreated"]
        raw = self._entry(STATS, 0)
        return dict(zip(names, struct.unpack_from("<12Q", raw))) if raw else None

    def session(self, slot):
        """What the broker shows of a client, or None for a slot that never had one. state: 1 open, 0 free."""
        raw = self._entry(SESSION, slot)
        if raw is None:
            return None
        out = dict(zip(["state", "generation", "pid", "uid"], struct.unpack_from("<4I", raw)))
        out.update(zip(["since_ns", "since_real_ns", "updated_ns", "dropped", "lost", "rejected", "ended"],
                       struct.unpack_from("<7Q", raw, 16)))
        count, = struct.unpack_from("<I", raw, 72)
        out.update(slot=slot, label=text_at(raw, 80, 48), comm=text_at(raw, 128, 16), spans=[])
        for at in range(848, 848 + 248 * count, 248):
            out["spans"].append({"id": struct.unpack_from("<Q", raw, at)[0], "name": text_at(raw, at + 152, 64)})
        return out

    def sessions(self):
        """Those that are open."""
        found = [self.session(slot) for slot in range(self.regions[SESSION, 0][1])]
        return [s for s in found if s and s["state"] == 1]

    def events(self, since=0):
        """Events still there, from that place in the ring on, the oldest first."""
        base, _, _, size, depth = self.regions[EVENT, 0]
        first, head = struct.unpack_from("<Q", self.data, base)[0], struct.unpack_from("<Q", self.data, base + 64)[0]
        out, published = [], (head - first) % 2 ** 64
        for place in range(max(since, published - depth), published):
            ticket = (first + place) % 2 ** 64
            at, stamp = base + 128 + ticket % depth * size, struct.pack("<Q", (2 * ticket + 2) % 2 ** 64)
            before, raw = self.data[at:at + 8], self.data[at + 8:at + size]
            if before != stamp or self.data[at:at + 8] != stamp:
                continue  # overwritten, perhaps just now
            event = dict(zip(["type", "flags", "slot", "generation", "pid", "uid"], struct.unpack_from("<6I", raw, 16)))
            event.update(zip(["mono_ns", "real_ns"], struct.unpack_from("<2Q", raw)))
            event.update(place=place, span=struct.unpack_from("<Q", raw, 40)[0], type=EVENT_TYPES[event["type"]])
            if event["type"] == "usage":
                event["seconds"], _, event["energy"] = struct.unpack_from("<3d", raw, 88)
            else:
                event["name"] = text_at(raw, 168, 64)
            out.append(event)
        return out
