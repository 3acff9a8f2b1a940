"""What the library tells of devices, memory, architectures and intervals."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Union

from ._library import calls, static_text
from ._records import Record, field, flag, index, level, number, positive, record, text, written

if TYPE_CHECKING:
    from ._tap import Tap

_u32, _i32, _u64, _f64 = ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_double

_pool_text = static_text(calls.pool_text)


def pool(value: int) -> Optional[str]:
    return _pool_text(value) if value else None


@record
class Device(Record):
    """What does not change at every sample."""

    number: int  # of the handle; bound to the id for the handle's life

    _size = field(_u32)
    state: Optional[str] = field(_u32, static_text(calls.state_text), "ok, asleep, settling (just woken), hung or gone.")
    generation: int = field(_u32, None, "Grows when the device was away and came back.")
    pool: Optional[str] = field(_u32, pool, "discrete, or unified: memory shared with the host.")
    simulated: bool = field(_u32, bool, "A device that does not exist.")
    vendor_id: Optional[int] = field(_u32, positive, "PCI.")
    device_id: Optional[int] = field(_u32, positive, "PCI.")
    subvendor_id: Optional[int] = field(_u32, positive, "PCI.")
    subdevice_id: Optional[int] = field(_u32, positive, "PCI.")
    revision: int = field(_u32, None, "PCI.")
    compute_units: Optional[int] = field(_u32, positive, "Compute units, streaming multiprocessors or Xe cores.")
    vram_bus_bits: Optional[int] = field(_u32, positive, "bit; width of the memory bus.")
    kfd_index: Optional[int] = field(_i32, index, "Node number of the kernel's compute driver.")
    nvml_index: Optional[int] = field(_i32, index, "Index in NVML.")
    id: str = field(ctypes.c_char * 48, written, "The identity: 0000:c5:00.0, .../xcp3, .../mig-<uuid>, sim:<model>:<n>.")
    pci: Optional[str] = field(ctypes.c_char * 16, text, "PCI address.")
    uuid: Optional[str] = field(ctypes.c_char * 48, text, "The vendor's unique id.")
    vendor: Optional[str] = field(ctypes.c_char * 16, text, "amd, nvidia, intel or other.")
    name: Optional[str] = field(ctypes.c_char * 96, text, "For people.")
    driver: Optional[str] = field(ctypes.c_char * 24, text, "Kernel driver.")
    driver_version: Optional[str] = field(ctypes.c_char * 40, text, "Of the kernel driver.")
    arch: Optional[str] = field(ctypes.c_char * 16, text, "Architecture: gfx1151, sm_89, ...")
    vram_type: Optional[str] = field(ctypes.c_char * 16, text, "Kind of memory.")
    tgp_watts: Optional[float] = field(_f64, positive, "W; what the card is built for.")
    gfx_clock_max: Optional[float] = field(_f64, positive, "MHz.")
    memory_clock_max: Optional[float] = field(_f64, positive, "MHz.")
    temperature_edge_critical: Optional[float] = field(_f64, positive, "°C.")
    temperature_junction_critical: Optional[float] = field(_f64, positive, "°C.")
    temperature_memory_critical: Optional[float] = field(_f64, positive, "°C.")
    temperature_slowdown: Optional[float] = field(_f64, positive, "°C; clocks are held down from there on.")
    idle_watts: Optional[float] = field(_f64, positive, "W; power while nothing runs, as seen so far.")


@record
class Memory(Record):
    """How much memory there really is for work on a device."""

    _size = field(_u32)
    pool: Optional[str] = field(_u32, pool, "discrete, or unified: memory shared with the host.")
    vram_total: Optional[int] = field(_u64, level, "B; dedicated memory, on an APU the carve-out.")
    vram_used: Optional[int] = field(_u64, level, "B.")
    vram_free: Optional[int] = field(_u64, level, "B.")
    gtt_total: Optional[int] = field(_u64, level, "B; host memory that the GPU may map.")
    gtt_used: Optional[int] = field(_u64, level, "B.")
    gtt_free: Optional[int] = field(_u64, level, "B.")
    host_total: Optional[int] = field(_u64, level, "B.")
    host_available: Optional[int] = field(_u64, level, "B; what a new process could get.")
    effective_free: Optional[int] = field(
        _u64, level, "B; discrete: free VRAM. Unified: free VRAM plus the smaller of free GTT and available host memory.")
    own: Optional[int] = field(_u64, level, "B; this process's share, while it has a session: as the driver counts it, else as the session's gauge told.")
    others: Optional[int] = field(_u64, level, "B; the rest of what is used.")
    _age_ns = field(_u64)

    @property
    def age(self) -> float:
        """s; how old the numbers are."""
        return float(self._age_ns) / 1e9


@record
class Tuning(Record):
    """How to run inference on an architecture: advice from the library's table, no measurement."""

    _size = field(_u32)
    unified: bool = field(_u32, bool, "An APU.")
    tile_min: Optional[int] = field(_i32, positive, "Pixels, for tiled VAE work.")
    tile_max: Optional[int] = field(_i32, positive, "Pixels, for tiled VAE work.")
    batch_cap: Optional[int] = field(_i32, positive, "Largest batch worth trying.")
    known: bool = field(_u32, bool, "False: only the vendor's default row fits.")
    arch: Optional[str] = field(ctypes.c_char * 16, text, "As it was understood.")
    family: Optional[str] = field(ctypes.c_char * 24, text, "rdna3_5, cdna, ampere, xe_hpg, ...")
    precision: Optional[str] = field(ctypes.c_char * 8, text, "fp16, bf16 or fp32.")


_PARTIAL, _ESTIMATED, _SHARED, _UNIFIED = 1, 2, 4, 8


@record
class Usage(Record):
    """What an interval took on one device."""

    _device = field(_i32)
    _flags = field(_u32)
    samples: int = field(_u64, None, "Samples inside the interval.")
    seconds: Optional[float] = field(_f64, number, "s; length of the interval.")
    sampled_seconds: Optional[float] = field(_f64, number, "s; of them, while the device was awake and read.")
    energy: Optional[float] = field(_f64, number, "J.")
    net_energy: Optional[float] = field(_f64, number, "J; above what the device draws while idle.")
    busy_mean: Optional[float] = field(_f64, number, "%.")
    busy_peak: Optional[float] = field(_f64, number, "%.")
    throttled_seconds: Optional[float] = field(_f64, number, "s; time that clocks were held down.")
    vram_mean: Optional[float] = field(_f64, number, "B; of the device, all processes; on a unified pool of both pools.")
    vram_peak: Optional[float] = field(_f64, number, "B; of the device, all processes.")
    unified_peak: Optional[float] = field(_f64, number, "B; VRAM and GTT, on a unified pool.")
    own_vram_peak: Optional[float] = field(_f64, number, "B; the largest `reserved` that the session's gauge told.")
    temperature_peak: Optional[float] = field(_f64, number, "°C; edge, else junction.")
    _rest = field(_f64 * 4)

    def asdict(self) -> Dict[str, Any]:
        """All attributes by name."""
        flags = ("known", "partial", "estimated", "shared", "unified")
        return dict(super().asdict(), **{name: getattr(self, name) for name in flags})

    @property
    def known(self) -> bool:
        """False: nothing is known, since there was no broker or no such device."""
        return bool(self._device >= -1)

    @property
    def partial(self) -> bool:
        """The records of the start are gone: seconds are right, sums and peaks cover the rest."""
        return bool(self._flags & _PARTIAL)

    @property
    def estimated(self) -> bool:
        """No sample inside, or none after the end yet: the last power and load were carried on."""
        return bool(self._flags & _ESTIMATED)

    @property
    def shared(self) -> bool:
        """Another session's span overlapped: the numbers are the device's, not the process's."""
        return bool(self._flags & _SHARED)

    @property
    def unified(self) -> bool:
        """vram_mean is of both pools of an APU."""
        return bool(self._flags & _UNIFIED)


def unknown_usage() -> Usage:
    nan = float("nan")
    usage = Usage()
    usage._device = -2
    for member in Usage._fields_[3:-1]:
        setattr(usage, member[0], nan)
    return usage


class UsageMap(Dict[int, Usage]):
    """Usage by device number. A device that is not in it answers a Usage in which all is unknown; an id finds its number."""

    def __init__(self, tap: "Tap", usages: Dict[int, Usage]) -> None:
        super().__init__(usages)
        self._tap = tap

    def __missing__(self, device: Union[int, str]) -> Usage:
        found = self._tap._number(device) if isinstance(device, str) else None
        return self[found] if found is not None and found in self else unknown_usage()


class History(Dict[str, List[Optional[float]]]):
    """Columns by metric, oldest row first; None = unknown. `times` are Unix seconds."""

    def __init__(self, times: List[float], columns: Dict[str, List[Optional[float]]]) -> None:
        super().__init__(columns)
        self.times = times

    def rows(self) -> Iterator[Dict[str, Optional[float]]]:
        """Row by row, each with its `time`."""
        for i, time in enumerate(self.times):
            yield dict({name: column[i] for name, column in self.items()}, time=time)


class Status(NamedTuple):
    """How the broker is."""

    running: bool  # lives, and its beat moves
    stale: bool  # lives, but its beat stands still
    dead: bool  # the last numbers stay readable
    simulated: bool  # simulated devices were asked for
    restarted: bool  # attached to another segment since the last call
    changed: bool  # a device appeared, went, or changed since the last call
    period: float  # s; of sampling
    tick: int

    @classmethod
    def of(cls, bits: int, period_ns: int, tick: int) -> "Status":
        return cls(flag(1)(bits), flag(2 | 8)(bits), flag(4)(bits), flag(128)(bits), flag(16)(bits), flag(32)(bits), period_ns / 1e9,
                   tick)


@record
class Host(Record):
    """The machine."""

    _size = field(_u32)
    cpu_threads: Optional[int] = field(_u32, positive, "Threads of all CPUs.")
    hostname: Optional[str] = field(ctypes.c_char * 64, text, "Name of the host.")
    cpu_name: Optional[str] = field(ctypes.c_char * 96, text, "Of the CPU.")
    kernel: Optional[str] = field(ctypes.c_char * 64, text, "Its version.")
    os: Optional[str] = field(ctypes.c_char * 64, text, "Operating system.")
    broker_version: Optional[str] = field(ctypes.c_char * 32, text, "Version of gputapd.")
    broker_pid: Optional[int] = field(_u32, positive, "To show only.")
    _reserved = field(_u32)
    boot_id: Optional[str] = field(ctypes.c_char * 37, text, "Names one boot.")
