"""Structs of gputap.h as Python objects: filled by the library, decoded when an attribute is read."""
from __future__ import annotations

import ctypes
import math
from operator import attrgetter
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Type, TypeVar

UNKNOWN_BYTES = 2**64 - 1


class _Field(NamedTuple):
    ctype: Any
    decode: Optional[Callable[[Any], Any]]
    doc: str


def field(ctype: Any, decode: Optional[Callable[[Any], Any]] = None, doc: str = "") -> Any:
    """A member of a struct. Its name is the C name; one that begins with an underscore is not shown."""
    return _Field(ctype, decode, doc)


class Record(ctypes.Structure):
    """What the library answered. Attributes that are not known are None."""

    _names: Tuple[str, ...] = ()

    def asdict(self) -> Dict[str, Any]:
        """All attributes by name."""
        return {name: getattr(self, name) for name in self._names}

    def __repr__(self) -> str:
        known = ("%s=%r" % item for item in self.asdict().items() if item[1] is not None)
        return "%s(%s)" % (type(self).__name__, ", ".join(known))


R = TypeVar("R", bound=Record)


def record(cls: Type[R]) -> Type[R]:
    """Lays out a Record by the order of its fields, and makes each of them an attribute that decodes."""
    members: List[Tuple[str, Any]] = []
    names: List[str] = []
    for name, member in list(vars(cls).items()):
        if not isinstance(member, _Field):
            continue
        raw = name if name.startswith("_") else "_" + name
        members.append((raw, member.ctype))
        delattr(cls, name)
        if raw != name:
            setattr(cls, name, property(_reader(raw, member.decode), doc=member.doc))
            names.append(name)
    cls._fields_ = members
    cls._names = tuple(names)
    return cls


def _reader(raw: str, decode: Optional[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    if decode is None:
        return attrgetter(raw)
    return lambda self: decode(getattr(self, raw))


# --- decoders: of a raw member, None for what is not known


def number(value: float) -> Optional[float]:
    return value if math.isfinite(value) else None


def positive(value: Any) -> Any:
    return value if value > 0 else None


def index(value: int) -> Optional[int]:
    return value if value >= 0 else None


def level(value: int) -> Optional[int]:
    return None if value == UNKNOWN_BYTES else value


def text(value: bytes) -> Optional[str]:
    return value.decode("utf-8", "replace") or None


def written(value: bytes) -> str:
    """A text that somebody chose, and may have left empty."""
    return value.decode("utf-8", "replace")


def flag(bit: int) -> Callable[[int], bool]:
    return lambda value: bool(value & bit)
