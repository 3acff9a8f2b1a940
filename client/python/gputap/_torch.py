"""Which device torch means by an index. Never imports torch, and never makes it open a device."""
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, List, Mapping, Optional

if TYPE_CHECKING:
    from ._answers import Device
    from ._tap import Tap


class TorchDevice(int):
    """A device number. `guess`: concluded from the environment, since torch has not opened its devices, or does not tell them."""

    guess: bool
    id: str

    def __new__(cls, device: "Device", guess: bool) -> "TorchDevice":
        self = super().__new__(cls, device.number)
        self.guess = guess
        self.id = device.id
        return self

    def __repr__(self) -> str:
        return "TorchDevice(%d, id=%r, guess=%r)" % (self, self.id, self.guess)


def torch_device(tap: "Tap", index: int, environment: Optional[Mapping[str, str]] = None) -> Optional[TorchDevice]:
    """The device that torch calls cuda:<index> (or xpu:<index>)."""
    devices = tap.devices()
    if not devices or index < 0:
        return None
    torch = sys.modules.get("torch")
    told = _told_by_torch(torch, index, devices)
    if told is not None:
        return TorchDevice(told, False)
    vendor = _vendor(torch, devices, environment if environment is not None else os.environ)
    visible = _visible([d for d in devices if d.vendor == vendor], vendor, environment if environment is not None else os.environ)
    return TorchDevice(visible[index], True) if index < len(visible) else None


# --- torch's own word


def _told_by_torch(torch: Any, index: int, devices: "List[Device]") -> "Optional[Device]":
    for name in ("cuda", "xpu"):
        try:
            module = getattr(torch, name)
            if not module.is_initialized():
                continue
            properties = module.get_device_properties(index)
        except Exception:  # a torch of another make, or one that cannot tell
            continue
        found = _by_uuid(properties, devices) or _by_address(properties, devices)
        if found is not None:
            return found
    return None


def _letters(uuid: Any) -> str:
    text = str(uuid or "").lower()
    return text.split("gpu-")[-1].replace("-", "")


def _by_uuid(properties: Any, devices: "List[Device]") -> "Optional[Device]":
    wanted = _letters(getattr(properties, "uuid", None))
    found = [d for d in devices if wanted.strip("0") and _letters(d.uuid) == wanted]
    return found[0] if len(found) == 1 else None


def _by_address(properties: Any, devices: "List[Device]") -> "Optional[Device]":
    try:
        address = "%04x:%02x:%02x." % (properties.pci_domain_id, properties.pci_bus_id, properties.pci_device_id)
    except (AttributeError, TypeError):
        return None
    found = [d for d in devices if (d.pci or d.id).lower().startswith(address)]
    return found[0] if len(found) == 1 else None  # partitions of a card share its address


# --- by the environment


def _vendor(torch: Any, devices: "List[Device]", environment: Mapping[str, str]) -> Optional[str]:
    """Whose devices torch counts: as it was built, else what the environment speaks of, else what is there."""
    version = getattr(torch, "version", None)
    for attribute, vendor in (("hip", "amd"), ("cuda", "nvidia"), ("xpu", "intel")):
        if getattr(version, attribute, None):
            return vendor
    present = [vendor for vendor in ("nvidia", "amd", "intel") if any(d.vendor == vendor for d in devices)]
    for vendor, names in (("amd", ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")), ("nvidia", ("CUDA_VISIBLE_DEVICES",)),
                          ("intel", ("ZE_AFFINITY_MASK",))):
        if vendor in present and any(name in environment for name in names):
            return vendor
    return present[0] if present else None


def _speed(device: "Device") -> float:
    return (device.compute_units or 0) * (device.gfx_clock_max or 0)


def _visible(devices: "List[Device]", vendor: Optional[str], environment: Mapping[str, str]) -> "List[Device]":
    """Devices of a vendor in PCI order, as far and in the order that its variables let them be seen."""
    devices = sorted(devices, key=lambda d: (d.pci or d.id, d.number))
    if vendor == "amd":
        devices = _chosen(devices, environment.get("ROCR_VISIBLE_DEVICES"))
        mask = environment.get("HIP_VISIBLE_DEVICES")
        return _chosen(devices, mask if mask is not None else environment.get("CUDA_VISIBLE_DEVICES"))
    if vendor == "nvidia":
        if environment.get("CUDA_DEVICE_ORDER", "FASTEST_FIRST") != "PCI_BUS_ID" and all(_speed(d) for d in devices):
            devices = sorted(devices, key=_speed, reverse=True)
        return _chosen(devices, environment.get("CUDA_VISIBLE_DEVICES"))
    return _chosen(devices, environment.get("ZE_AFFINITY_MASK"))


def _chosen(devices: "List[Device]", mask: Optional[str]) -> "List[Device]":
    """The devices that a list of indices and uuids names. As the runtimes do, it ends at the first entry that names none."""
    if mask is None:
        return devices
    chosen: "List[Device]" = []
    for entry in mask.split(","):
        found = _entry(devices, entry.strip())
        if found is None:
            break
        if found not in chosen:  # tiles of one card
            chosen.append(found)
    return chosen


def _entry(devices: "List[Device]", entry: str) -> "Optional[Device]":
    index = entry.split(".")[0]  # 0.1 is a tile of card 0
    if index.isdigit():
        return devices[int(index)] if int(index) < len(devices) else None
    wanted = _letters(entry)
    found = [d for d in devices if wanted and _letters(d.uuid).startswith(wanted)]
    return found[0] if len(found) == 1 else None
