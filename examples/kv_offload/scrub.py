"""Verifies the files of a disk tier, block by block, and touches none of them."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import crc32c

from .tiers.pack_files import SUFFIX, TEMPORARY
from .tiers.pack_format import HEADER_BYTES, BadPack, ForeignPack, Header, decode
from .units import show_size


@dataclass(slots=True)
class Scrubbed:
    """What was found. Blocks are counted in packs that can be read at all."""

    packs: int = 0
    blocks: int = 0
    nbytes: int = 0
    wrong: list[str] = field(default_factory=list)
    """one line for each block, or whole pack, that would not be served"""
    foreign: list[str] = field(default_factory=list)
    """one line for each pack that another program, or another version, may read"""
    leftover: int = 0
    """temporary files that no living writer holds"""

    def text(self) -> str:
        """For people."""
        lines = [
            f"{self.packs} packs, {self.blocks} blocks ({show_size(self.nbytes)}) are right, {len(self.wrong)} wrong"
        ]
        lines += [f"wrong     {line}" for line in self.wrong]
        lines += [f"foreign   {line}: left alone" for line in self.foreign]
        lines += [f"leftover  {self.leftover} temporary file(s); the next start sweeps them"] if self.leftover else []
        return "\n".join(lines)


def scrub(directory: Path) -> Scrubbed:
    """Read everything. A pack that is evicted meanwhile is passed over. Raises OSError where the directory is none."""
    found = Scrubbed()
    for path in sorted(directory.iterdir()):
        if path.name.endswith(TEMPORARY):
            found.leftover += _is_left_over(path)
        elif path.name.endswith(SUFFIX):
            with suppress(FileNotFoundError):
                _scrub_pack(path, found)
    return found


def _scrub_pack(path: Path, found: Scrubbed) -> None:
    with path.open("rb") as file:
        try:
            header = decode(file.read(HEADER_BYTES))
        except ForeignPack as error:
            found.foreign.append(f"{path.name}: {error}")
            return
        except BadPack as error:
            found.wrong.append(f"{path.name}: {error}")
            return
        found.packs += 1
        for position, entry in enumerate(header.entries):
            payload = _payload(file.fileno(), header, position)
            if len(payload) < header.block_size:
                found.wrong.append(f"{path.name}: block {position} has {len(payload)} of {header.block_size} bytes")
            elif crc32c.crc32c(payload[: entry.length]) != entry.crc:
                found.wrong.append(f"{path.name}: block {position}: its checksum is wrong")
            else:
                found.blocks += 1
                found.nbytes += entry.length


def _payload(descriptor: int, header: Header, position: int) -> bytes:
    return os.pread(descriptor, header.block_size, header.offset(position))


def _is_left_over(path: Path) -> bool:
    with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
