"""Telemetry of this machine's GPUs, read in-process, and what pieces of work cost.

    import gputap

    now = gputap.latest(0)              # the newest sample of the first GPU
    if now:
        print(now.gfx_busy, now.vram_used, now.power_now)      # %, bytes, W; None = unknown

    with gputap.session("my program") as session:
        with session.span("KSampler", node="3", job="run 1") as span:
            for i in range(20):
                span.step(i, 20)
        print(span.usage[0].seconds, span.usage[0].energy, span.usage[0].vram_peak)

One broker (gputapd) samples for everybody; reading costs well under a microsecond. Without broker or library every call answers None,
False or an empty list, as fast, and nothing here raises; a broker that is started later is found by itself. The functions of this module
use one handle, opened when it is first needed; Tap(instance) is a handle of one's own."""
from typing import Optional

from ._answers import Device, History, Host, Memory, Status, Tuning, Usage, UsageMap
from ._events import Event, Events, Gauge, SessionInfo, SpanInfo
from ._library import HOST_METRICS, METRICS, Metric, calls as _calls
from ._processes import Process, Processes
from ._samples import DeviceSample, HostSample, Sample, Sums
from ._session import Connection, Session, Span
from ._tap import Tap
from ._torch import TorchDevice, torch_device as _torch_device

_default = Tap()

latest = _default.latest
host = _default.host
devices = _default.devices
device = _default.device
machine = _default.machine
memory = _default.memory
fits = _default.fits
oom_report = _default.oom_report
processes = _default.processes
tuning = _default.tuning
history = _default.history
usage_between = _default.usage_between
now = _default.now
wait = _default.wait
status = _default.status
request_period = _default.request_period
session = _default.session
sessions = _default.sessions
events = _default.events
message = _default.message


def torch_device(index: int) -> Optional[TorchDevice]:
    """Number of the device that torch calls cuda:<index> (or xpu:<index>): by torch's own word where it is imported and has opened its
    devices, else by HIP_, ROCR_ and CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER and ZE_AFFINITY_MASK in PCI order; `.guess` then is True.
    Never imports torch."""
    return _torch_device(_default, index)


def library() -> Optional[str]:
    """Where the library was found; None if it was not (message() then says why)."""
    return _calls.path


__all__ = [
    "Connection", "Device", "DeviceSample", "Event", "Events", "Gauge", "History", "Host", "HOST_METRICS", "HostSample", "METRICS", "Memory",
    "Metric", "Process", "Processes", "Sample", "Session", "SessionInfo", "Span", "SpanInfo", "Status", "Sums", "Tap", "TorchDevice", "Tuning", "Usage", "UsageMap",
    "device", "devices", "events", "fits", "history", "host", "latest", "library", "machine", "memory", "message", "now", "oom_report",
    "processes", "request_period", "session", "sessions", "status", "torch_device", "tuning", "usage_between", "wait",
]
