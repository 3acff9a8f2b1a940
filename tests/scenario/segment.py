"""Reads a segment file from the outside, by the layout's own description: an oracle that shares no code with the library."""
import json
import struct

STATES = {0: "init", 1: "live", 2: "closing", 3: "superseded", 0xDEAD: "dead"}
DEVICE_STATES = ["ok", "asleep", "settling", "hung", "gone"]
FRONT, RING, COARSE, DEVICE, STATS, SCHEMA, PROVIDER = 3, 4, 5, 2, 6, 7, 8


class Segment:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
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

    def _entry(self, kind, element):
        """Newest of a ring of depth 2, or None."""
        offset, _, stride, size, depth = self.regions[kind, 0]
        base = offset + element * stride
        first, head = struct.unpack_from("<Q", self.data, base)[0], struct.unpack_from("<Q", self.data, base + 64)[0]
        if first == head:
            return None
        ticket = (head - 1) % 2 ** 64
        at = base + 128 + (ticket % depth) * size
        stamp = struct.unpack_from("<Q", self.data, at)[0]
        return self.data[at + 8:at + size] if stamp == (2 * ticket + 2) % 2 ** 64 else None

    def snapshot(self, device):
        """{metric: value or None}, with tick, state and generation; device None is the host. None if nothing is there yet."""
        index, table, element = (1, "host", 0) if device is None else (0, "gpu", device)
        offset, _, stride, _, _ = self.regions[FRONT, index]
        words = struct.unpack_from("<64Q", self.data, offset + element * stride)
        reals = struct.unpack_from("<64d", self.data, offset + element * stride)
        if words[0] % 2 or words[1] == 0:
            return None
        out = {"tick": words[1], "mono_ns": words[2], "state": DEVICE_STATES[words[7] & 255], "generation": words[7] >> 32,
               "sums": dict(zip(self.schema["sums"], reals[59:64]))}
        for m in self.schema[table]:
            i = m["index"]
            valid = words[5 + i // 64] >> (i % 64) & 1
            out[m["name"]] = None if not valid else reals[8 + i] if m["type"] == "f64" else words[8 + i]
        return out

    def device(self, device):
        """Facts: id, name, state, pool, reasons by metric."""
        raw = self._entry(DEVICE, device)
        if raw is None:
            return None
        text = lambda at, size: raw[at:at + size].split(b"\0")[0].decode()
        reasons = raw[440:504]
        return {"id": text(0, 48), "pci": text(48, 16), "vendor": text(112, 16), "name": text(128, 96), "driver": text(224, 24),
                "arch": text(288, 16), "pool": ["unknown", "discrete", "unified"][struct.unpack_from("<I", raw, 340)[0]],
                "simulated": struct.unpack_from("<I", raw, 344)[0], "state": DEVICE_STATES[struct.unpack_from("<I", raw, 348)[0]],
                "reasons": {m["name"]: self.schema["reasons"][reasons[m["index"]]] for m in self.schema["gpu"]}}

    def devices(self):
        return [self.device(i) for i in range(self.device_count)]

    def stats(self):
        names = ["ticks", "missed_ticks", "late_samples", "publish_ns", "broker_cpu_ns", "workers_cpu_ns", "workers_alive",
                 "worker_restarts", "workers_killed", "workers_abandoned", "bad_messages", "recreated"]
        raw = self._entry(STATS, 0)
        return dict(zip(names, struct.unpack_from("<12Q", raw))) if raw else None
