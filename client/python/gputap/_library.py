"""Finds libgputap and binds its functions. Whatever is wrong with it, importing this never raises.

Reads and annotations go through PyDLL, which keeps the interpreter's lock: they take less than a microsecond, and to give the lock
away would cost up to the switch interval (5 ms) to get it back while another thread computes. Only waits go through CDLL.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import struct
import sys
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

HERE = pathlib.Path(__file__).resolve().parent

# enum gputap_error, as far as it matters here
EINVAL, ENOBROKER = -1, -2

HOST = -1
OPEN_DETACHED = 1
METRIC_SLOTS = 51


class MetricStruct(ctypes.Structure):
    """struct gputap_metric"""

    _fields_ = [
        ("name", ctypes.c_char_p), ("unit", ctypes.c_char_p), ("help", ctypes.c_char_p), ("type", ctypes.c_int),
        ("semantics", ctypes.c_int), ("decimals", ctypes.c_int), ("capsule", ctypes.c_int), ("history", ctypes.c_int),
    ]


_int, _u32, _u64, _i64, _f64 = ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_double
_str, _ptr, _size = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t

# Name without prefix: result, arguments. None leaves the arguments unconverted, which is faster; the caller then passes a c_void_p,
# checked small ints and byref() alone.
SIGNATURES: Dict[str, Tuple[Any, Optional[Tuple[Any, ...]]]] = {
    "open": (_int, (_ptr, _str, _u32)),
    "close": (None, (_ptr,)),
    "status": (_int, (_ptr,)),
    "epoch": (_int, (_ptr, _ptr)),
    "period": (_u64, (_ptr,)),
    "tick": (_u64, (_ptr,)),
    "now": (_u64, (_ptr,)),
    "device_count": (_int, (_ptr,)),
    "device_info": (_int, (_ptr, _int, _ptr)),
    "find": (_int, (_ptr, _str)),
    "host_info": (_int, (_ptr, _ptr)),
    "latest": (_int, None),
    "reason": (_int, (_ptr, _int, _int)),
    "source": (_int, (_ptr, _int, _int, _ptr, _size)),
    "history": (_int, (_ptr, _int, _ptr, _int, _int, _int, _ptr, _ptr)),
    "metric_info": (ctypes.POINTER(MetricStruct), (_int, _int)),
    "usage_between": (_int, (_ptr, _int, _u64, _u64, _ptr)),
    "attach": (_int, (_ptr, _str)),
    "detach": (_int, (_ptr,)),
    "poll": (_int, (_ptr,)),
    "request_period": (_int, (_ptr, _int)),
    "span_begin": (_int, (_ptr, _str, _str, _str, _u64, _ptr, _int, _ptr)),
    "span_step": (_int, (_ptr, _u64, _f64, _f64)),
    "span_end": (_int, (_ptr, _u64, _ptr, _int)),
    "instant": (_int, (_ptr, _str, _str, _str)),
    "gauge": (_int, (_ptr, _int, _u64, _u64, _u64)),
    "annotator_info": (_int, (_ptr, _ptr)),
    "session_slots": (_int, (_ptr,)),
    "session_info": (_int, (_ptr, _int, _ptr, _ptr, _int)),
    "processes": (_int, (_ptr, _int, _ptr, _ptr, _int)),
    "event_cursor_init": (_int, (_ptr, _ptr, _int)),
    "next_event": (_int, (_ptr, _ptr, _ptr)),
    "memory": (_int, (_ptr, _int, _ptr)),
    "fits": (_int, (_ptr, _int, _u64, _ptr)),
    "oom_report": (_int, (_ptr, _int, _ptr, _size)),
    "tuning": (_int, (_str, _ptr)),
    "device_tuning": (_int, (_ptr, _int, _ptr)),
    "reason_text": (_str, (_int,)),
    "state_text": (_str, (_int,)),
    "pool_text": (_str, (_int,)),
    "message": (_str, (_ptr,)),
    "version": (_str, ()),
}
WAITS = {
    "wait": (_int, (_ptr, _ptr, _int)),
    "wait_change": (_int, (_ptr, _ptr, _int)),
}


class Metric(NamedTuple):
    """A row of the library's table."""

    number: int
    name: str
    unit: str
    help: str
    type: str  # "f64", "u64" or "i64"
    semantics: str  # "gauge", "counter" or "bits"
    decimals: int
    capsule: bool
    history: bool


def _file_names() -> List[str]:
    if sys.platform == "win32":
        return ["libgputap.dll", "gputap.dll"]
    if sys.platform == "darwin":
        return ["libgputap.dylib", "libgputap.0.dylib"]
    return ["libgputap.so", "libgputap.so.0"]


def _in_folder(folder: pathlib.Path) -> Iterator[str]:
    for name in _file_names():
        if (folder / name).is_file():
            yield str(folder / name)
            return


def _newest_builds(root: pathlib.Path) -> List[pathlib.Path]:
    """Folders of a source tree's builds: the release, then what was built last."""
    if not (root / "client" / "include" / "gputap.h").is_file():
        return []
    folders = [build / part for build in root.glob("build/*") for part in ("lib", "bin")]
    files = [(folder.parent.name != "release", -os.stat(name).st_mtime, folder) for folder in folders for name in _in_folder(folder)]
    return [folder for _, _, folder in sorted(files)]


def candidates() -> Iterator[str]:
    """Where the library may be, best first. GPUTAP_LIBRARY is meant: nothing else is tried then."""
    named = os.environ.get("GPUTAP_LIBRARY")
    if named:
        yield named
        return
    yield from _in_folder(HERE / "_lib")
    yield from _in_folder(HERE)
    for folder in _newest_builds(HERE.parents[2]):
        yield from _in_folder(folder)
    if HERE.parts[-4:-1] == ("share", "gputap", "python"):  # as cmake --install lays it out
        for folder in sorted(HERE.parents[3].glob("lib*")):
            yield from _in_folder(folder)
            for below in sorted(folder.glob("*-*")):
                yield from _in_folder(below)
    yield _file_names()[-1]  # the system's own search


def _check_whole(path: str) -> None:
    """The loader of Linux maps a file that was cut off, and dies of it (SIGBUS) when it touches what is missing."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":  # 64 bit, little-endian; others the loader refuses
                return
            (table,), (entry, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
            file.seek(table)
            segments = file.read(entry * count)
    except (OSError, ValueError):
        return  # a name for the loader to look up, or what it tells better
    if len(segments) < entry * count or entry < 56:
        raise OSError("%s: cut off" % path)
    for at in range(0, len(segments), entry):
        offset, length = struct.unpack_from("<Q", segments, at + 8)[0], struct.unpack_from("<Q", segments, at + 32)[0]
        if offset + length > size:
            raise OSError("%s: cut off" % path)


def _absent(result: Any) -> Callable[..., Any]:
    """In place of a function that is not there."""
    answer = {_int: EINVAL, _u64: 0}.get(result)
    return lambda *arguments: answer


class Calls:
    """The functions of the library, without their prefix. One that a library lacks answers that it failed."""

    def __init__(self) -> None:
        self.path: Optional[str] = None
        self.problem = ""
        self.missing: List[str] = []
        self._bind(None, None)
        self._load()

    def __getattr__(self, name: str) -> Any:  # for type checkers: the functions are set by _bind
        raise AttributeError(name)

    def _bind(self, library: Any, waiting: Any) -> None:
        self.missing = []
        for source, table in ((library, SIGNATURES), (waiting, WAITS)):
            for name, (result, arguments) in table.items():
                try:
                    function = source["gputap_" + name]
                    function.restype = result
                    if arguments is not None:
                        function.argtypes = arguments
                except Exception:
                    self.missing.append(name)
                    function = _absent(result)
                setattr(self, name, function)

    def _load(self) -> None:
        problems = []
        for path in candidates():
            try:
                _check_whole(path)
                library, waiting = ctypes.PyDLL(path), ctypes.CDLL(path)
                self._bind(library, waiting)
                if "metric_info" in self.missing or "open" in self.missing or "close" in self.missing:
                    raise OSError("%s: no library of gputap" % path)
                self.path = path
                return
            except Exception as error:
                problems.append(str(error))
                self._bind(None, None)
        self.problem = "libgputap was not found: " + "; ".join(problems)

    def metrics(self, host: bool) -> List[Metric]:
        """The table of metrics, as this library has it."""
        rows = []
        for number in range(METRIC_SLOTS):
            found = self.metric_info(HOST if host else 0, number)
            if not found:
                break
            row = found.contents
            rows.append(Metric(number, row.name.decode(), row.unit.decode(), row.help.decode(), _name(_TYPES, row.type),
                               _name(_SEMANTICS, row.semantics), row.decimals, bool(row.capsule), bool(row.history)))
        return rows


_TYPES = ("f64", "u64", "i64")
_SEMANTICS = ("gauge", "counter", "bits")


def _name(names: Tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else names[0]


calls = Calls()
METRICS = calls.metrics(False)
HOST_METRICS = calls.metrics(True)


def static_text(function: Callable[[int], Optional[bytes]]) -> Callable[[int], Optional[str]]:
    """Decodes a number by one of the library's lists of texts."""

    def decode(value: int) -> Optional[str]:
        found = function(value)
        return found.decode() if found else None

    return decode
