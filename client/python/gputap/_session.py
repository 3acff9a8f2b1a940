"""Saying what this process does, and getting back what it took."""
from __future__ import annotations

import contextvars
import ctypes
import time
import weakref
from ctypes import byref
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Tuple, Union

from ._answers import Usage, UsageMap
from ._events import Cursor, Event, USAGE_EVENT, next_event
from ._library import calls
from ._records import UNKNOWN_BYTES, Record, field, record

if TYPE_CHECKING:
    from ._tap import DeviceLike, Tap

_NOTHING = ctypes.c_void_p()  # the handle of a session that is over: every call with it fails at once

_begin, _step, _end = calls.span_begin, calls.span_step, calls.span_end

# The innermost span that is entered, of whichever session. Threads and tasks have their own.
_current: "contextvars.ContextVar[Optional[Span]]" = contextvars.ContextVar("gputap_span", default=None)


@record
class Connection(Record):
    """How a session stands with the broker."""

    _size = field(ctypes.c_uint32)
    connected: bool = field(ctypes.c_uint32, bool, "The broker has the session.")
    slot: int = field(ctypes.c_int32, None, "Its place among the sessions; -1 while not connected.")
    generation: int = field(ctypes.c_uint32, None, "Of that place.")
    dropped: int = field(ctypes.c_uint64, None, "Spans beyond 32 open ones, and events that no broker has heard.")
    open_spans: int = field(ctypes.c_uint32, None, "Spans that are open.")
    connects: int = field(ctypes.c_uint32, None, "How often a broker has granted it.")


def _encoded(text: Any) -> bytes:
    return text.encode("utf-8", "replace") if isinstance(text, str) else str(text).encode("utf-8", "replace")


def _bytes(count: Optional[int]) -> int:
    return UNKNOWN_BYTES if count is None else min(max(int(count), 0), UNKNOWN_BYTES - 1)


class Session:
    """What this process says under a label. Made by gputap.session(label) or Tap.session(label).

    Nothing here raises, waits, or does harm where there is no broker: calls answer False then, and what is open is told to the next
    broker. In a forked child the session of the parent is off. Any thread may call."""

    def __init__(self, tap: "Tap", label: str) -> None:
        self.label = label
        self._over = False
        self._names = tap  # whose device numbers the caller uses
        self._tap = self._claim(tap)
        self._handle = _NOTHING
        if self._tap._open() and calls.attach(self._tap._handle, _encoded(label)) == 0:
            self._handle = self._tap._handle

    def _claim(self, tap: "Tap") -> "Tap":
        """A handle has one session: the first gets the tap's own handle, others a new one each."""
        with tap._lock:
            other = tap._session and tap._session()
            if not other or other._over:
                tap._session = weakref.ref(self)
                return tap
        own = type(tap)(tap._instance)
        own._session = weakref.ref(self)
        return own

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass  # the interpreter is being taken down

    def close(self) -> None:
        """Ends the session; what is still open in it ends as abandoned."""
        handle = self._handle
        self._disable()
        if handle is not _NOTHING:
            calls.detach(handle)
            if self._tap is not self._names:
                self._tap.close()

    def _disable(self) -> None:
        self._handle, self._over = _NOTHING, True

    # --- device numbers: the caller's are those of the tap that it asked

    def _number(self, device: "DeviceLike") -> Optional[int]:
        if self._tap is self._names:
            return self._tap._number(device)
        facts = self._names.device(device)
        return self._tap._number(facts.id) if facts else None

    def _told(self, number: int) -> Optional[int]:
        """The caller's number for one of the session's."""
        if self._tap is self._names:
            return number
        facts = self._tap.device(number)
        return self._names._number(facts.id) if facts else None

    def _usage_map(self, usages: Iterable[Usage]) -> UsageMap:
        told = {self._told(usage._device): usage for usage in usages if usage._device >= 0}
        return UsageMap(self._names, {number: usage for number, usage in told.items() if number is not None})

    # --- what it says

    def span(self, name: str, node: Any = "", job: Any = "", devices: "Union[DeviceLike, Iterable[DeviceLike], None]" = None,
             parent: "Union[Span, int, None]" = None) -> "Span":
        """A piece of work: what it is, which node of which job. `devices`: those that it uses (default all). `parent`: the span that
        it is part of (default: the one that this thread or task is inside of; 0: none)."""
        return Span(self, name, node, job, devices, parent)

    def instant(self, name: str, node: Any = "", job: Any = "") -> bool:
        """Something that happened, without length."""
        return bool(calls.instant(self._handle, _encoded(job), _encoded(node), _encoded(name)) == 0)

    def gauge(self, device: "DeviceLike", allocated: Optional[int] = None, reserved: Optional[int] = None,
              dynamic: Optional[int] = None) -> bool:
        """What this process's own allocator holds on a device, in bytes."""
        number = self._number(device)
        if number is None:
            return False
        return bool(calls.gauge(self._handle, number, _bytes(allocated), _bytes(reserved), _bytes(dynamic)) == 0)

    def poll(self) -> bool:
        """For a session that says nothing for long: connects again where that is due. True while the broker has it."""
        return bool(calls.poll(self._handle) == 1)

    def connection(self) -> Optional[Connection]:
        """How the session stands with the broker; None when it is over, or was never opened."""
        info = Connection()
        info._size = ctypes.sizeof(info)
        return info if calls.annotator_info(self._handle, byref(info)) == 0 else None


class Span:
    """A piece of work. `with session.span(...) as sp:` or sp.begin() and sp.end(); may be used again when it has ended.

    An exception passes through and ends it all the same."""

    __slots__ = ("_session", "_texts", "_devices", "_parent", "_id", "_outer", "_token", "_depth", "_usages", "_cursor", "_slot", "_ended",
                 "__weakref__")

    def __init__(self, session: Session, name: str, node: Any, job: Any, devices: Any, parent: Any) -> None:
        self._session = session
        self._texts = (job, node, name)
        self._devices = devices
        self._parent = parent
        self._id = 0
        self._outer: Optional[Span] = None
        self._token: Any = None
        self._depth = 0
        self._usages: Any = None
        self._cursor: Optional[Cursor] = None
        self._slot: Tuple[int, int] = (-1, 0)
        self._ended = 0

    @property
    def open(self) -> bool:
        """Begun and not ended."""
        return self._id != 0

    @property
    def id(self) -> int:
        """Its number while it is open, else that of its last use; 0 = none."""
        return self._id or self._ended

    def _parent_id(self) -> int:
        parent = self._parent
        if parent is None:
            span = _current.get()
            while span is not None and (span._id == 0 or span._session is not self._session):
                span = span._outer
            return span._id if span is not None else 0
        return parent._id if isinstance(parent, Span) else int(parent)

    def _numbers(self) -> Optional[List[int]]:
        """None: a device that is not there."""
        wanted = self._devices
        if wanted is None:
            return []
        if isinstance(wanted, (int, str)):
            wanted = (wanted,)
        numbers = [self._session._number(device) for device in wanted]
        known = [number for number in numbers if number is not None]
        return known if len(known) == len(numbers) else None

    def begin(self) -> bool:
        """Begins it. False where it could not, or is open already."""
        handle = self._session._handle
        if handle is _NOTHING or self._id:
            return False
        devices, count = None, 0
        if self._devices is not None:
            numbers = self._numbers()
            if not numbers:
                return False
            devices, count = (ctypes.c_int * len(numbers))(*numbers), len(numbers)
        job, node, name = self._texts
        box = ctypes.c_uint64()
        if _begin(handle, _encoded(job), _encoded(node), _encoded(name), self._parent_id(), devices, count, byref(box)) != 0:
            return False
        self._id = box.value
        self._usages = self._cursor = None
        return True

    def step(self, value: float, max: float = 0) -> bool:
        """Progress: value of max; max 0 = how much is not known. Costs less than a microsecond."""
        if not self._id:
            return False
        result: int
        try:
            result = _step(self._session._handle, self._id, value, max)
        except ctypes.ArgumentError:  # a number of another library
            result = _step(self._session._handle, self._id, float(value), float(max))
        return result == 0

    def end(self) -> bool:
        """Ends it; `usage` then is what is known by now. False where it was not open."""
        ended, self._id = self._id, 0
        if not ended:
            return False
        session = self._session
        handle = session._handle
        if not session._tap._ready():  # nobody to ask what it took
            self._ended = ended
            return bool(_end(handle, ended, None, 0) >= 0)
        info = session.connection()
        if info is not None and info.connected:
            self._slot = (info.slot, info.generation)
            self._cursor = Cursor()
            if calls.event_cursor_init(handle, byref(self._cursor), 0) != 0:
                self._cursor = None
        capacity = max(calls.device_count(handle), 0)
        usages = (Usage * capacity)()
        result: int = _end(handle, ended, usages, capacity)
        self._ended = ended
        self._usages = (usages, result) if result > 0 else None
        return result >= 0

    def __enter__(self) -> "Span":
        if self._id:  # entered again while it is open: one span
            self._depth += 1
        elif self.begin():
            self._outer = _current.get()
            self._token = _current.set(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._depth:
            self._depth -= 1
            return
        token, self._token = self._token, None
        if token is not None:
            try:
                _current.reset(token)
            except ValueError:
                pass  # left in another context than it was entered in
            self.end()

    @property
    def usage(self) -> UsageMap:
        """What it took, by device: as known when it ended, mostly `estimated`; after final() the final numbers."""
        if isinstance(self._usages, tuple):
            usages, count = self._usages
            self._usages = self._session._usage_map(usages[i] for i in range(count))
        return UsageMap(self._session._names, {}) if self._usages is None else self._usages

    def final(self, timeout: float = 5.0) -> Optional[UsageMap]:
        """Waits for the final numbers, which the broker publishes after the sample that follows the end, and answers them. None where
        they did not come in `timeout` seconds. Other threads run meanwhile."""
        cursor = self._cursor
        if self._id or cursor is None:
            return None
        expected = len(self.usage)
        found: Dict[int, Usage] = {}
        tap, change, end = self._session._tap, ctypes.c_uint64(), time.monotonic() + timeout
        while True:
            tap._sleep(calls.wait_change, change, min(max(end - time.monotonic(), 0), 1.0))
            event: Optional[Event] = next_event(tap, cursor)
            while event is not None:
                if event._type == USAGE_EVENT and event._span == self._ended and (event._slot, event._generation) == self._slot:
                    found[event._usage._device] = event._usage
                event = next_event(tap, cursor)
            if found and len(found) >= expected:
                self._cursor = None
                return self._settle(found)
            if time.monotonic() >= end or not tap._ready():
                return None

    def _settle(self, found: Dict[int, Usage]) -> UsageMap:
        """Keeps the final numbers. Of gauges the span's own process knows more: the broker sees them now and then."""
        early, final = self.usage, self._session._usage_map(found.values())
        for device, usage in final.items():
            known = [peak for peak in (early[device].own_vram_peak, usage.own_vram_peak) if peak is not None]
            usage._own_vram_peak = max(known, default=float("nan"))
        self._usages = final
        return final
