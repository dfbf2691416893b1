"""What the kernel says of a range of this process's memory (Linux, /proc/self/smaps)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SMAPS = Path("/proc/self/smaps")


@dataclass(frozen=True, slots=True)
class Extent:
    """The mappings that overlap a range, summed. All figures are bytes."""

    covered: int
    """bytes of the asked range that are mapped at all"""
    size: int
    """bytes of the mappings that overlap it (neighbours of equal kind may be merged into one mapping)"""
    locked: int
    huge: int
    permissions: tuple[str, ...]

    @property
    def fully_locked(self) -> bool:
        """True when every page of every overlapping mapping is locked."""
        return self.size > 0 and self.locked == self.size


@dataclass(slots=True)
class _Vma:
    start: int
    end: int
    permissions: str
    fields: dict[str, int] = field(default_factory=dict)


def extent(address: int, length: int) -> Extent:
    """Read back `length` bytes from `address`. An unmapped range has `covered == 0`."""
    end = address + length
    with _SMAPS.open() as lines:
        found = [vma for vma in _parse(lines) if vma.start < end and vma.end > address]
    return Extent(
        covered=sum(min(vma.end, end) - max(vma.start, address) for vma in found),
        size=sum(vma.end - vma.start for vma in found),
        locked=sum(vma.fields.get("Locked", 0) for vma in found),
        huge=sum(vma.fields.get("AnonHugePages", 0) for vma in found),
        permissions=tuple(vma.permissions for vma in found),
    )


def locked_bytes() -> int:
    """What counts against RLIMIT_MEMLOCK in this process (VmLck)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmLck:"):
            return int(line.split()[1]) * 1024
    return 0


def available_bytes() -> int:
    """What the machine could give without swapping (MemAvailable)."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo does not say MemAvailable")


def _parse(lines: Iterable[str]) -> Iterator[_Vma]:
    vma: _Vma | None = None
    for line in lines:
        name, _, rest = line.partition(":")
        if "-" in name and " " in name:
            if vma is not None:
                yield vma
            bounds, permissions, *_ = line.split()
            start, end = (int(part, 16) for part in bounds.split("-"))
            vma = _Vma(start, end, permissions)
        elif vma is not None and rest.rstrip().endswith("kB"):
            vma.fields[name] = int(rest.split()[0]) * 1024
    if vma is not None:
        yield vma
