"""One consistent sample of a device or of the host. The classes are laid out by the library's own table of metrics."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from ._library import HOST_METRICS, METRIC_SLOTS, METRICS, Metric, calls, static_text
from ._records import Record, field, number, record

if TYPE_CHECKING:
    from ._tap import Tap

_CTYPES = {"f64": ctypes.c_double, "u64": ctypes.c_uint64, "i64": ctypes.c_int64}


@record
class Sums(Record):
    """Running sums since the broker's start. The difference of two samples of one broker is what the time between them cost."""

    energy_joules: Optional[float] = field(ctypes.c_double, number, "J; energy.")
    busy_seconds: Optional[float] = field(ctypes.c_double, number, "s; time that the engine was busy.")
    throttled_seconds: Optional[float] = field(ctypes.c_double, number, "s; time that clocks were held down.")
    sampled_seconds: Optional[float] = field(ctypes.c_double, number, "s; time that the device was awake and read.")
    vram_byte_seconds: Optional[float] = field(ctypes.c_double, number, "B·s; memory in use, over time.")


class Reference(NamedTuple):
    """The device that a sample is of."""

    tap: "Tap"
    number: int  # HOST for the host


_HEAD: List[Tuple[str, Any]] = [
    ("_size", ctypes.c_uint32), ("_state", ctypes.c_uint32), ("_generation", ctypes.c_uint32), ("_reserved", ctypes.c_uint32),
    ("_sequence", ctypes.c_uint64), ("_tick", ctypes.c_uint64), ("_mono_ns", ctypes.c_uint64), ("_real_ns", ctypes.c_uint64),
    ("_age_ns", ctypes.c_uint64), ("_cost_ns", ctypes.c_uint64), ("_valid0", ctypes.c_uint64), ("_valid1", ctypes.c_uint64),
]


class Sample(ctypes.Structure):
    """One consistent sample. Every metric of the table is an attribute, decoded when it is read; None = unknown."""

    __slots__ = ()
    _rows: Dict[str, Tuple[Metric, Callable[[Any], Union[None, int, float]]]] = {}
    _of: Reference

    _state: int
    _generation: int
    _sequence: int
    _tick: int
    _mono_ns: int
    _real_ns: int
    _age_ns: int
    _cost_ns: int

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...

    @property
    def device(self) -> Optional[int]:
        """Number of the device; None for the host."""
        return self._of.number if self._of.number >= 0 else None

    @property
    def state(self) -> Optional[str]:
        """ok, asleep, settling (just woken), hung or gone."""
        return _state_text(self._state)

    @property
    def generation(self) -> int:
        """Grows when the device was away and came back."""
        return self._generation

    @property
    def sequence(self) -> int:
        """1 for the first sample since the broker's start."""
        return self._sequence

    @property
    def tick(self) -> int:
        """Number of the broker's tick."""
        return self._tick

    @property
    def mono_ns(self) -> int:
        """ns; the broker's monotonic clock, which now() and usage_between() use."""
        return self._mono_ns

    @property
    def time(self) -> float:
        """s; Unix time."""
        return self._real_ns / 1e9

    @property
    def age(self) -> float:
        """s; how old the sample was when it was read."""
        return self._age_ns / 1e9

    @property
    def cost(self) -> float:
        """s; what reading the device cost the broker."""
        return self._cost_ns / 1e9

    def reason(self, metric: str) -> Optional[str]:
        """Why a metric is unknown now ("not supported", "no permission", ...); None if it is known."""
        return self._of.tap._reason(self._of.number, self._rows[metric][0].number)

    def asdict(self) -> Dict[str, Union[None, int, float]]:
        """All metrics by name."""
        return {name: get(self) for name, (_, get) in self._rows.items()}

    def __getitem__(self, metric: str) -> Union[None, int, float]:
        return self._rows[metric][1](self)

    def __repr__(self) -> str:
        known = ("%s=%r" % item for item in self.asdict().items() if item[1] is not None)
        return "<%s %s: %s>" % (type(self).__name__, self._of.number, ", ".join(known))


_state_text = static_text(calls.state_text)


def _getter(row: Metric) -> Callable[[Any], Union[None, int, float]]:
    raw, valid, bit = "_m_" + row.name, "_valid%d" % (row.number // 64), 1 << row.number % 64
    if row.type == "f64":
        return lambda self: number(getattr(self, raw)) if getattr(self, valid) & bit else None
    return lambda self: getattr(self, raw) if getattr(self, valid) & bit else None


def _doc(row: Metric) -> str:
    return "%s%s\n\nNone = unknown; reason(%r) says why." % (row.unit + "; " if row.unit else "", row.help, row.name)


def _sample_class(name: str, doc: str, table: List[Metric]) -> Any:
    rows = {row.name: (row, _getter(row)) for row in table}
    members: Dict[str, Any] = {"__slots__": ("_of",), "__doc__": doc, "__module__": "gputap", "_rows": rows}
    layout = [("_m_" + row.name, _CTYPES[row.type]) for row in table]
    layout += [("_m%d" % i, ctypes.c_uint64) for i in range(len(table), METRIC_SLOTS)]
    members["_fields_"] = _HEAD + layout + [("sums", Sums)]
    for row in table:
        if not hasattr(Sample, row.name) and row.name != "sums":  # else it is to be had by [] alone
            members[row.name] = property(rows[row.name][1], doc=_doc(row))
    return type(name, (Sample,), members)


DeviceSample = _sample_class("DeviceSample", "One consistent sample of a device. None = unknown.", METRICS)
HostSample = _sample_class("HostSample", "One consistent sample of the host. None = unknown.", HOST_METRICS)
SAMPLE_SIZE = ctypes.sizeof(DeviceSample)
