"""Who holds a device."""
from __future__ import annotations

import ctypes
from ctypes import byref
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ._library import calls
from ._records import Record, field, flag, level, number, record, text, written

if TYPE_CHECKING:
    from ._tap import Tap

_u32, _u64, _i64, _f64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_double

MAX_PROCESSES = 64
_KFD, _PARTIAL = 1, 2


@record
class Process(Record):
    """A process that holds a device."""

    pid: int = field(_u32, None, "As the broker sees it.")
    uid: int = field(_u32, None, "As the broker sees it.")
    _flags = field(_u32)
    sharers: int = field(_u32, None, "Other processes with the same allocations, after a fork.")
    _start_ms = field(_i64)
    vram: Optional[int] = field(_u64, level, "B.")
    gtt: Optional[int] = field(_u64, level, "B; host memory that the device maps.")
    gfx_busy: Optional[float] = field(_f64, number, "%, of one engine.")
    compute_busy: Optional[float] = field(_f64, number, "%, of one engine.")
    copy_busy: Optional[float] = field(_f64, number, "%, of one engine.")
    encode_busy: Optional[float] = field(_f64, number, "%, of one engine.")
    decode_busy: Optional[float] = field(_f64, number, "%, of one engine.")
    media_busy: Optional[float] = field(_f64, number, "%, of one engine, where encoding and decoding are not told apart.")
    comm: str = field(ctypes.c_char * 16, written, "Its name.")
    container: Optional[str] = field(ctypes.c_char * 16, text, "First digits of its container's id, or its name.")
    _reserved = field(_u64 * 4)

    @property
    def kfd(self) -> bool:
        """Known to AMD's compute driver."""
        return flag(_KFD)(self._flags)

    @property
    def partial(self) -> bool:
        """Not all of it could be read: its bytes are at least so many."""
        return flag(_PARTIAL)(self._flags)

    @property
    def start(self) -> Optional[float]:
        """s; Unix time."""
        return float(self._start_ms) / 1e3 if self._start_ms > 0 else None

    def asdict(self) -> Dict[str, Any]:
        """All attributes by name."""
        return dict(super().asdict(), **{name: getattr(self, name) for name in ("kfd", "partial", "start")})


@record
class _Table(Record):
    """struct gputap_process_table"""

    _size = field(_u32)
    count: int = field(_u32)
    others: int = field(_u32)
    hidden: int = field(_u32)
    partial: bool = field(_u32, bool)
    _reserved = field(_u32)
    others_vram: Optional[int] = field(_u64, level)
    others_gtt: Optional[int] = field(_u64, level)
    external_vram: Optional[int] = field(_u64, level)
    age_ns: Optional[int] = field(_u64, level)


class Processes(List[Process]):
    """The processes that hold a device, at most 64: the largest by VRAM, then GTT, then busy."""

    others: int  #: processes beyond them
    others_vram: Optional[int]  #: B; what those hold
    others_gtt: Optional[int]  #: B
    hidden: int  #: processes of other users that the broker may not look into
    partial: bool  #: processes may be missing
    external_vram: Optional[int]  #: B; in use by no process that is known
    age: Optional[float]  #: s; since the scan that it is of

    def __init__(self, rows: List[Process], table: _Table) -> None:
        super().__init__(rows)
        self.others, self.others_vram, self.others_gtt = table.others, table.others_vram, table.others_gtt
        self.hidden, self.partial, self.external_vram = table.hidden, table.partial, table.external_vram
        self.age = None if table.age_ns is None else table.age_ns / 1e9


def read_processes(tap: "Tap", device: int) -> Optional[Processes]:
    table, rows = _Table(), (Process * MAX_PROCESSES)()
    table._size = ctypes.sizeof(table)
    count = calls.processes(tap._handle, device, byref(table), rows, MAX_PROCESSES)
    return Processes(list(rows[:count]), table) if tap._done(count) else None
