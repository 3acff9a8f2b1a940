"""A handle: reading, waiting and asking."""
from __future__ import annotations

import ctypes
import math
import operator
import os
import re
import threading
import time
import weakref
from ctypes import byref
from typing import Any, Dict, Iterable, List, Optional, Union

from ._answers import Device, History, Host, Memory, Status, Tuning, Usage
from ._events import Events, SessionInfo, read_sessions
from ._library import ENOBROKER, HOST, HOST_METRICS, METRICS, OPEN_DETACHED, calls
from ._processes import Processes, read_processes
from ._samples import SAMPLE_SIZE, DeviceSample, HostSample, Reference
from ._session import Session

DeviceLike = Union[int, str]

# Where there is no broker, nobody looks for one more often than that.
BACK_OFF = 0.25
_SLICE_MS = 100  # of a wait, so that signals and close() are heard

_IDENTITY = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:|sim:|platform:")  # in contrast to gfx90a:sramecc+

_latest = calls.latest
_clock = time.monotonic

_living: "weakref.WeakSet[Tap]" = weakref.WeakSet()


class Tap:
    """A handle of its own on an instance of the broker (default: $GPUTAP_INSTANCE, else "default").

    Opened when it is first used; follows restarts. `device` is a number (from 0), an id or a PCI address; numbers stay bound to the
    id for the handle's life. Any thread may call. What is not known, or where there is no broker or no such device, is None."""

    def __init__(self, instance: Optional[str] = None) -> None:
        self._instance = instance
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._references: Dict[DeviceLike, Reference] = {}  # devices that may be read without looking further
        self._host = Reference(self, HOST)
        self._attached = False
        self._closed = False
        self._retry = 0.0
        self._waiting = 0
        self._doomed: Optional[int] = None  # a handle to be closed by the last that waits with it
        self._session: "Optional[weakref.ref[Session]]" = None  # a handle has one session
        _living.add(self)

    def __enter__(self) -> "Tap":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass  # the interpreter is being taken down

    def close(self) -> None:
        """Ends the handle, and its session. Every later call answers None."""
        with self._lock:
            handle, self._handle.value = self._handle.value, None
            self._closed, self._attached = True, False
            self._references.clear()
            if handle and self._waiting:
                self._doomed = handle
            elif handle:
                calls.close(handle)

    # --- opening, and what is absent

    def _open(self) -> bool:
        """Makes the handle, with or without a broker."""
        with self._lock:
            if not self._handle.value and not self._closed and calls.path:
                handle = ctypes.c_void_p()
                instance = None if self._instance is None else self._instance.encode("utf-8", "replace")
                if calls.open(byref(handle), instance, OPEN_DETACHED) == 0:
                    self._handle.value = handle.value
            return bool(self._handle.value)

    def _ready(self) -> bool:
        """Is there something to read? Looks for it at most every BACK_OFF seconds."""
        if self._attached:
            return True
        if _clock() < self._retry:
            return False
        if self._open() and calls.epoch(self._handle, (ctypes.c_uint8 * 16)()) == 0:
            self._attached = True
        else:
            self._retry = _clock() + BACK_OFF if calls.path and not self._closed else math.inf
        return self._attached

    def _failed(self, result: int) -> None:
        if result == ENOBROKER:
            self._attached = False
            self._references.clear()
            self._retry = _clock() + BACK_OFF

    def _done(self, result: int) -> bool:
        if result < 0:
            self._failed(result)
        return result >= 0

    # --- devices

    def _resolve(self, device: DeviceLike) -> Optional[Reference]:
        if not self._ready():
            return None
        if isinstance(device, str):
            found = calls.find(self._handle, device.encode("utf-8", "replace"))
        else:
            found = operator.index(device)
            if not 0 <= found < calls.device_count(self._handle):
                return None
        if not self._done(found):
            return None
        reference = Reference(self, found)
        self._references[device] = reference
        return reference

    def _number(self, device: DeviceLike) -> Optional[int]:
        reference = self._references.get(device) or self._resolve(device)
        return reference.number if reference else None

    def _fill(self, function: Any, device: DeviceLike, out: Any) -> Optional[int]:
        """Calls function(handle, number, &out) for a struct that says its size. The number, or None where that failed."""
        number = self._number(device)
        if number is None:
            return None
        out._size = ctypes.sizeof(out)
        return number if self._done(function(self._handle, number, byref(out))) else None

    def devices(self) -> List[Device]:
        """Every device of the machine."""
        found: List[Device] = []
        if self._ready():
            for number in range(calls.device_count(self._handle)):
                device = self.device(number)
                if device is not None:
                    found.append(device)
        return found

    def device(self, device: DeviceLike = 0) -> Optional[Device]:
        """The facts of one device."""
        facts = Device()
        number = self._fill(calls.device_info, device, facts)
        if number is None:
            return None
        facts.number = number
        return facts

    def machine(self) -> Optional[Host]:
        """The facts of the host."""
        facts = Host()
        facts._size = ctypes.sizeof(facts)
        return facts if self._ready() and self._done(calls.host_info(self._handle, byref(facts))) else None

    # --- samples

    def latest(self, device: DeviceLike = 0) -> Any:
        """The newest sample of a device: a DeviceSample, decoded where it is read. None without one."""
        try:
            reference = self._references[device]
        except KeyError:
            found = self._resolve(device)
            if found is None:
                return None
            reference = found
        sample = DeviceSample()
        sample._size = SAMPLE_SIZE
        result = _latest(self._handle, reference.number, byref(sample))
        if result:
            return self._failed(result)
        sample._of = reference
        return sample

    def host(self) -> Any:
        """The newest sample of the host: a HostSample, decoded where it is read. None without one."""
        if not self._attached and not self._ready():
            return None
        sample = HostSample()
        sample._size = SAMPLE_SIZE
        result = _latest(self._handle, HOST, byref(sample))
        if result:
            return self._failed(result)
        sample._of = self._host
        return sample

    def _reason(self, number: int, metric: int) -> Optional[str]:
        why = calls.reason(self._handle, number, metric)
        found = calls.reason_text(why) if why > 0 else None
        return found.decode() if found else None

    def history(self, device: Optional[DeviceLike] = 0, seconds: float = 60, metrics: Optional[Iterable[str]] = None,
                points: int = 240) -> Optional[History]:
        """The last seconds (1 to 3600) of a device, or with None of the host, as at most `points` rows: means over slices of time,
        of counters the last value. By default all metrics that are kept that long."""
        if not self._ready():
            return None
        number = HOST if device is None else self._number(device)
        table = {row.name: row for row in (HOST_METRICS if device is None else METRICS)}
        rows = [row for row in table.values() if row.history] if metrics is None else [table[name] for name in metrics]
        points = min(max(int(points), 1), 4096)
        if number is None or not 1 <= len(rows) <= 64:
            return None
        wanted = (ctypes.c_int * len(rows))(*(row.number for row in rows))
        times, values = (ctypes.c_int64 * points)(), (ctypes.c_double * (points * len(rows)))()
        count = calls.history(self._handle, number, wanted, len(rows), min(max(math.ceil(seconds), 1), 3600), points, times, values)
        if not self._done(count):
            return None
        flat = [None if value != value else value for value in values[: count * len(rows)]]
        return History([t / 1e3 for t in times[:count]], {row.name: flat[i :: len(rows)] for i, row in enumerate(rows)})

    # --- answers

    def memory(self, device: DeviceLike = 0) -> Optional[Memory]:
        """How much memory there really is for work on a device."""
        answer = Memory()
        return answer if self._fill(calls.memory, device, answer) is not None else None

    def fits(self, device: DeviceLike, nbytes: int) -> Optional[bool]:
        """Do so many more bytes fit? None where that is not known."""
        number = self._number(device)
        if number is None or nbytes < 0:
            return None
        result = calls.fits(self._handle, number, min(int(nbytes), 2**63), None)
        return bool(result) if self._done(result) else None

    def oom_report(self, device: DeviceLike = 0) -> Optional[str]:
        """For the log after an allocation failed: the pools, who holds what, the last seconds."""
        number, size = self._number(device), 16384
        if number is None:
            return None
        report = ctypes.create_string_buffer(size)
        return report.value.decode("utf-8", "replace") if self._done(calls.oom_report(self._handle, number, report, size)) else None

    def processes(self, device: DeviceLike = 0) -> Optional[Processes]:
        """Who holds a device: a list of Process, the largest first, with `.others`, `.hidden` and more of those that are not in it. None
        where nobody looks for processes: that is not the same as an empty list."""
        number = self._number(device)
        return None if number is None else read_processes(self, number)

    def tuning(self, device: DeviceLike = 0) -> Optional[Tuning]:
        """How to run inference on a device, or on an architecture given by name (gfx1151, sm_86, 8.6), which needs no broker."""
        answer = Tuning()
        if self._fill(calls.device_tuning, device, answer) is not None:
            return answer
        if not isinstance(device, str) or _IDENTITY.match(device):
            return None
        answer._size = ctypes.sizeof(answer)
        return answer if calls.tuning(device.encode("utf-8", "replace"), byref(answer)) == 0 else None

    # --- time

    def now(self) -> Optional[int]:
        """ns; the broker's monotonic clock, for usage_between()."""
        return (calls.now(self._handle) or None) if self._ready() else None

    def usage_between(self, device: DeviceLike, start_ns: int, end_ns: Optional[int] = None) -> Optional[Usage]:
        """What a device took between two times of now() or sample.mono_ns; until now by default."""
        number = self._number(device)
        usage = Usage()
        if number is None or start_ns is None or start_ns < 0 or (end_ns is not None and end_ns < 1):
            return None
        return usage if self._done(calls.usage_between(self._handle, number, start_ns, end_ns or 0, byref(usage))) else None

    def status(self) -> Optional[Status]:
        """How the broker is; None where none was found yet. Makes system calls: once a second is often enough."""
        if not self._ready():
            return None
        return Status.of(calls.status(self._handle), calls.period(self._handle), calls.tick(self._handle))

    def request_period(self, seconds: float) -> bool:
        """Asks the broker to sample at least so often (0.001 to 60 s; 0 takes the wish back) while the handle is open. False without a
        broker; poll() brings the wish to one that comes."""
        milliseconds = min(max(math.ceil(seconds * 1000), 0), 60000)
        return self._open() and calls.request_period(self._handle, milliseconds) == 0 and self._ready()

    def poll(self) -> bool:
        """Connects again where that is due. True while the broker has the session, or the wish for a period."""
        return bool(self._handle.value) and calls.poll(self._handle) == 1

    def wait(self, timeout: Optional[float] = None, tick: Optional[int] = None) -> Optional[int]:
        """Waits for a tick of the broker other than `tick` (default: the one that is now) and answers its number; None when there was
        none in `timeout` seconds, and at once where there is nothing to wait for. Follows restarts. Other threads run meanwhile."""
        seen = ctypes.c_uint64(calls.tick(self._handle) if tick is None and self._ready() else tick or 0)
        return seen.value if self._sleep(calls.wait, seen, timeout) else None

    def _sleep(self, function: Any, seen: Any, timeout: Optional[float]) -> bool:
        """One of the library's waits, in slices."""
        if not self._ready():
            return False
        end = math.inf if timeout is None else _clock() + timeout
        while True:
            left = max(end - _clock(), 0)
            with self._lock:
                handle = self._handle.value
                if not handle:
                    return False
                self._waiting += 1
            try:
                result = function(handle, byref(seen), _SLICE_MS if left > _SLICE_MS / 1e3 else math.ceil(left * 1e3))
            finally:
                self._end_slice()
            if result == 0:
                return True
            if left <= _SLICE_MS / 1e3:
                return False

    def _end_slice(self) -> None:
        with self._lock:
            self._waiting -= 1
            if self._doomed and not self._waiting:
                calls.close(self._doomed)
                self._doomed = None

    # --- what processes say

    def session(self, label: str) -> Session:
        """Opens a session: `with tap.session("my pack") as s:`."""
        return Session(self, label)

    def sessions(self) -> List[SessionInfo]:
        """What the processes of this machine say that they do."""
        return read_sessions(self)

    def events(self, oldest: bool = True) -> Events:
        """What the sessions said: iterate over it for what is there; go on later for what is new."""
        return Events(self, oldest)

    def message(self) -> str:
        """Why the last call of this thread failed, for people."""
        if calls.problem:
            return calls.problem
        found = calls.message(self._handle)
        return found.decode("utf-8", "replace") if found else ""

    def _forked(self) -> None:
        """In a child process: no other thread is left, and what one of them was waiting with may be half re-attached."""
        self._lock = threading.Lock()
        self._session = None
        if self._waiting:
            self._waiting, self._doomed, self._attached, self._retry = 0, None, False, 0.0
            self._handle = ctypes.c_void_p()
            self._references.clear()


def _after_fork() -> None:
    for tap in list(_living):
        session = tap._session and tap._session()
        if session:
            session._disable()
        tap._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
