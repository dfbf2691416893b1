"""Packs as files: written under a temporary name and renamed, read straight into the blocks.

Nothing here knows which blocks are where; see pack_index.py. Safe from any number of threads and processes: names are
never used twice, and a temporary file is locked for as long as its writer lives.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from .pack_format import HEADER_BYTES, BadPack, ForeignPack, Header, decode, encode

SUFFIX = ".kvpack"
TEMPORARY = ".tmp"


class Sync(StrEnum):
    """When written blocks are forced to the device. Bytes torn by a power cut are found by their checksum either way."""

    NEVER = "never"
    BATCH = "batch"
    """one fdatasync for each pack, before it gets its name"""


class PackFiles:
    """The files of one directory. `notes` says where direct I/O was not to be had."""

    def __init__(self, directory: Path, block_size: int, sync: Sync = Sync.BATCH) -> None:
        self.directory = directory
        self.block_size = block_size
        self.notes: list[str] = []
        self._sync = sync
        self._direct = 0

    def open(self) -> None:
        """Make the directory, and find out whether it takes direct I/O."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._direct = os.O_DIRECT if self._takes_direct_io() else 0

    @property
    def direct(self) -> bool:
        """True where the page cache is passed by."""
        return bool(self._direct)

    def write(self, header: Header, blocks: Sequence[memoryview]) -> Path:
        """Write one pack and give it its name. Leaves nothing behind where it raises OSError."""
        path, descriptor = self._create()
        try:
            page = mmap.mmap(
                -1, HEADER_BYTES
            )  # aligned, as direct I/O needs it; not closed, so that no slice forbids it
            page[:] = encode(header)
            _write_all(descriptor, [memoryview(page), *blocks])
            if self._sync is Sync.BATCH:
                os.fdatasync(descriptor)
            final = path.with_name(path.name.removeprefix(".").removesuffix(TEMPORARY) + SUFFIX)
            path.rename(final)
        except BaseException:  # the half-written file goes whatever ended the write, and the error goes on
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return final

    def read(self, path: Path, header: Header, wanted: Sequence[tuple[int, memoryview]]) -> list[bool]:
        """Read entries by position into whole blocks; says for each whether all its bytes came. Checks no checksum.

        Neighbours are read in one call. Raises FileNotFoundError where the pack was evicted meanwhile.
        """
        order = sorted(range(len(wanted)), key=lambda index: wanted[index][0])
        came = [False] * len(wanted)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | self._direct)
        try:
            for run in _runs(order, wanted):
                first, blocks = wanted[run[0]][0], [wanted[index][1] for index in run]
                whole = _read_all(descriptor, blocks, header.offset(first)) // self.block_size
                for index in run[:whole]:
                    came[index] = True
        finally:
            os.close(descriptor)
        return came

    def scan(self) -> tuple[list[tuple[Path, Header]], list[tuple[Path, str]]]:
        """The whole packs by age, oldest first; and the damaged ones, with what is wrong with them.

        Packs of another version or block size are neither: they are left alone, and noted.
        """
        good, bad, foreign = [], [], Counter[str]()
        for path in self.directory.glob(f"*{SUFFIX}"):
            try:
                with path.open("rb") as file:
                    header = decode(file.read(HEADER_BYTES))
                    status = os.fstat(file.fileno())
                if header.block_size != self.block_size:
                    raise ForeignPack(f"blocks of {header.block_size} bytes, not {self.block_size}")
                if status.st_size != header.file_bytes:
                    raise BadPack(f"{status.st_size} of {header.file_bytes} bytes")
            except FileNotFoundError:
                continue
            except ForeignPack as error:
                foreign[str(error)] += 1
            except BadPack as error:
                bad.append((path, str(error)))
            else:
                good.append((status.st_mtime_ns, path, header))
        self.notes += [f"{count} pack(s) left alone: {why}" for why, count in foreign.items()]
        return [(path, header) for _, path, header in sorted(good, key=lambda item: item[:2])], bad

    def sweep(self) -> int:
        """Remove the temporary files that no living writer holds; says how many."""
        swept = 0
        for path in self.directory.glob(f".*{TEMPORARY}"):
            with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
                swept += 1
        return swept

    def _create(self) -> tuple[Path, int]:
        """A locked temporary file. A sweep may take it before it is locked: then another one is made."""
        while True:
            path = self.directory / f".{secrets.token_hex(16)}{TEMPORARY}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | self._direct
            descriptor = os.open(path, flags, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    return path, descriptor
            os.close(descriptor)

    def _takes_direct_io(self) -> bool:
        if self.block_size % mmap.PAGESIZE:
            self.notes.append(f"no direct I/O: blocks of {self.block_size} bytes are not whole pages")
            return False
        probe = self.directory / f".{secrets.token_hex(16)}{TEMPORARY}"
        try:
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_DIRECT, 0o600))
        except OSError as error:
            self.notes.append(f"no direct I/O on {self.directory}: {error.strerror}")
            return False
        finally:
            probe.unlink(missing_ok=True)
        return True


def _write_all(descriptor: int, buffers: list[memoryview]) -> None:
    offset = 0
    while buffers:
        written = os.pwritev(descriptor, buffers, offset)
        offset += written
        buffers = _after(buffers, written)


def _read_all(descriptor: int, buffers: list[memoryview], offset: int) -> int:
    """Bytes read: fewer than asked for only where the file ends."""
    total = 0
    while buffers:
        count = os.preadv(descriptor, buffers, offset + total)
        if count == 0:
            break
        total += count
        buffers = _after(buffers, count)
        if buffers and count % mmap.PAGESIZE:
            break  # the file ends inside a page; direct I/O refuses to go on from there
    return total


def _after(buffers: list[memoryview], count: int) -> list[memoryview]:
    for index, buffer in enumerate(buffers):
        if count < len(buffer):
            return [buffer[count:], *buffers[index + 1 :]]
        count -= len(buffer)
    return []


def _runs(order: Sequence[int], wanted: Sequence[tuple[int, memoryview]]) -> list[list[int]]:
    """Indices whose positions follow one another, together."""
    runs: list[list[int]] = []
    for index in order:
        if runs and wanted[runs[-1][-1]][0] + 1 == wanted[index][0]:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs
