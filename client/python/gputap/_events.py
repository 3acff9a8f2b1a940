"""What the sessions of this machine say: what is open now, and the events."""
from __future__ import annotations

import ctypes
from ctypes import byref
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Tuple

from ._answers import Usage
from ._library import calls
from ._records import Record, field, flag, index, level, number, positive, record, written

if TYPE_CHECKING:
    from ._tap import Tap

_u32, _i32, _u64, _i64, _f64 = ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_double

MAX_SPANS, MAX_GAUGES, SPAN_DEVICES = 32, 16, 64

_TYPES = ("attach", "detach", "begin", "step", "end", "instant", "usage")
USAGE_EVENT = _TYPES.index("usage") + 1


def _type(value: int) -> Optional[str]:
    return _TYPES[value - 1] if 0 < value <= len(_TYPES) else None


def _device_numbers(record_: Any) -> Optional[Tuple[int, ...]]:
    count = record_._device_count
    return None if count == 0 else tuple(record_._devices[: max(count, 0)])


@record
class SpanInfo(Record):
    """An open span of a session."""

    id: int = field(_u64, None, "Its number in the session.")
    parent: Optional[int] = field(_u64, positive, "Number of the span that it is part of.")
    start_ns: int = field(_u64, None, "ns; the broker's monotonic clock.")
    _start_ms = field(_i64)
    seconds: Optional[float] = field(_f64, number, "s; so far.")
    value: float = field(_f64, None, "Progress.")
    max: Optional[float] = field(_f64, positive, "Of how much.")
    shared: bool = field(_u32, bool, "Another session's span overlaps on one of the devices.")
    _device_count = field(_i32)
    _devices = field(ctypes.c_int16 * SPAN_DEVICES)
    job: str = field(ctypes.c_char * 48, written, "Which run it belongs to.")
    node: str = field(ctypes.c_char * 32, written, "Number or name in that run.")
    name: str = field(ctypes.c_char * 64, written, "What it is.")

    devices = property(_device_numbers, doc="Numbers of its devices; None = all.")

    @property
    def start(self) -> float:
        """s; Unix time."""
        return float(self._start_ms) / 1e3


@record
class Gauge(Record):
    """What a session's own allocator holds on a device."""

    device: int = field(_i32, None, "Its number.")
    _reserved0 = field(_u32)
    allocated: Optional[int] = field(_u64, level, "B.")
    reserved: Optional[int] = field(_u64, level, "B.")
    dynamic: Optional[int] = field(_u64, level, "B.")


@record
class SessionInfo(Record):
    """A process that says what it does."""

    _size = field(_u32)
    slot: int = field(_i32, None, "Its place.")
    generation: int = field(_u32, None, "Of the place: together they name the session while the broker lives.")
    pid: int = field(_u32, None, "As the broker sees it.")
    uid: int = field(_u32, None, "As the broker sees it.")
    mine: bool = field(_u32, bool, "This handle's own.")
    _since_ms = field(_i64)
    dropped: int = field(_u64, None, "Spans and events that the client dropped.")
    lost: int = field(_u64, None, "Events that came faster than they were read.")
    rejected: int = field(_u64, None, "Records that made no sense.")
    ended: int = field(_u64, None, "Spans that have ended.")
    _span_count = field(_u32)
    _gauge_count = field(_u32)
    label: str = field(ctypes.c_char * 48, written, "What it calls itself.")
    comm: str = field(ctypes.c_char * 16, written, "Name of the process.")
    _gauges = field(Gauge * MAX_GAUGES)

    spans: List[SpanInfo]  # that are open, in the order of their start

    @property
    def since(self) -> float:
        """s; Unix time."""
        return float(self._since_ms) / 1e3

    @property
    def gauges(self) -> List[Gauge]:
        """What its allocator holds, device by device."""
        return [self._gauges[i] for i in range(min(self._gauge_count, MAX_GAUGES))]


@record
class Event(Record):
    """Something that a session said, or that was found out about it."""

    _size = field(_u32)
    type: Optional[str] = field(_u32, _type, "attach, detach, begin, step, end, instant, or usage: the final numbers of a device.")
    _flags = field(_u32)
    slot: Optional[int] = field(_i32, index, "Of the session.")
    generation: int = field(_u32, None, "Of the slot.")
    pid: int = field(_u32, None, "As the broker sees it.")
    uid: int = field(_u32, None, "As the broker sees it.")
    _device_count = field(_i32)
    _devices = field(ctypes.c_int16 * SPAN_DEVICES)
    span: Optional[int] = field(_u64, positive, "Its number in the session.")
    parent: Optional[int] = field(_u64, positive, "The span that it is part of.")
    mono_ns: int = field(_u64, None, "ns; the broker's monotonic clock.")
    _real_ms = field(_i64)
    value: float = field(_f64, None, "Progress.")
    max: Optional[float] = field(_f64, positive, "Of how much.")
    seconds: Optional[float] = field(_f64, number, "s; since the begin, of end and step.")
    job: str = field(ctypes.c_char * 48, written, "Which run it belongs to.")
    node: str = field(ctypes.c_char * 32, written, "Number or name in that run.")
    name: str = field(ctypes.c_char * 64, written, "What it is; of attach and detach the label.")
    label: str = field(ctypes.c_char * 48, written, "Of the session, where its slot is still its own.")
    _usage = field(Usage)

    devices = property(_device_numbers, doc="Numbers of its devices; None = all.")

    @property
    def time(self) -> float:
        """s; Unix time."""
        return float(self._real_ms) / 1e3

    @property
    def abandoned(self) -> bool:
        """An end: the process went away without it."""
        return flag(1)(self._flags)

    @property
    def recovered(self) -> bool:
        """Concluded from what is open, since events were lost."""
        return flag(2)(self._flags)

    @property
    def device(self) -> Optional[int]:
        """Of a usage: the device."""
        return index(self._usage._device) if self._type == USAGE_EVENT else None

    @property
    def usage(self) -> Optional[Usage]:
        """Of a usage: the final numbers."""
        return self._usage if self._type == USAGE_EVENT else None


class Cursor(ctypes.Structure):
    """struct gputap_cursor"""

    _fields_ = [("device", _i32), ("restarts", _u32), ("got", _u64), ("lost", _u64), ("next", _u64), ("attach", _u64)]


def next_event(tap: "Tap", cursor: Cursor) -> Optional[Event]:
    event = Event()
    event._size = ctypes.sizeof(event)
    return event if calls.next_event(tap._handle, byref(cursor), byref(event)) == 1 else None


class Events:
    """A position in the events of all sessions. Iterating gives what is there and ends; iterating again goes on. Of the last 8192
    events none is missed; `lost` counts those that were overwritten before they were read."""

    def __init__(self, tap: "Tap", oldest: bool) -> None:
        self._tap = tap
        self._oldest = oldest
        self._cursor: Optional[Cursor] = None
        self._change = ctypes.c_uint64()
        self._start()

    def _start(self) -> None:
        if self._tap._ready():
            cursor = Cursor()
            if calls.event_cursor_init(self._tap._handle, byref(cursor), 1 if self._oldest else 0) == 0:
                self._cursor = cursor

    def __iter__(self) -> Iterator[Event]:
        event = self.next()
        while event is not None:
            yield event
            event = self.next()

    def next(self) -> Optional[Event]:
        """The next event; None if there is none yet."""
        if self._cursor is None:
            self._start()
        return None if self._cursor is None else next_event(self._tap, self._cursor)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until something is new. False when nothing was in `timeout` seconds, and at once without a broker."""
        return self._tap._sleep(calls.wait_change, self._change, timeout)

    @property
    def lost(self) -> int:
        """Events of this broker that were overwritten before they were read."""
        return self._cursor.lost if self._cursor is not None else 0


def read_sessions(tap: "Tap") -> List[SessionInfo]:
    found: List[SessionInfo] = []
    if not tap._ready():
        return found
    spans = (SpanInfo * MAX_SPANS)()
    info = SessionInfo()
    for slot in range(max(calls.session_slots(tap._handle), 0)):
        info._size = ctypes.sizeof(info)
        count = calls.session_info(tap._handle, slot, byref(info), spans, MAX_SPANS)
        if count < 0:
            continue
        info.spans = [SpanInfo.from_buffer_copy(spans[i]) for i in range(count)]
        found.append(info)
        info = SessionInfo()
    return found
