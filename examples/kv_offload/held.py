"""What is still there after a teardown, read back from the kernel and not from our own books."""

from __future__ import annotations

from dataclasses import dataclass

from .memory import smaps
from .memory.region import Mapping
from .units import show_size


@dataclass(frozen=True, slots=True)
class Held:
    """A region as the kernel shows it. Sizes are bytes."""

    address: int
    size: int
    mapped: int
    locked: int
    permissions: str
    intact: bool | None
    """whether its checksum is still what it was; None where nothing is mapped"""

    def __str__(self) -> str:
        where = f"{show_size(self.size)} at {self.address:#x}"
        if not self.mapped:
            return f"{where}: unmapped"
        state = {True: "bytes intact", False: "BYTES CHANGED", None: "bytes not compared"}[self.intact]
        return (
            f"{where}: held, {show_size(self.mapped)} still mapped {self.permissions}, "
            f"{show_size(self.locked)} locked, {state}"
        )


def inspect(mapping: Mapping, checksum: int | None) -> Held:
    """Look the region up in /proc/self/smaps, and compare its bytes with the checksum from before, if there is one."""
    extent = smaps.extent(mapping.address, mapping.size)
    held = mapping.mapped and extent.covered > 0
    return Held(
        address=mapping.address,
        size=mapping.size,
        mapped=extent.covered if held else 0,
        locked=extent.locked if held else 0,
        permissions=extent.permissions[0] if held else "",
        intact=mapping.checksum() == checksum if held and checksum is not None else None,
    )
