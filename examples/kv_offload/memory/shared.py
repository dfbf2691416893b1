"""A region that several processes map: under a name for as short a time as possible, or under none at all.

The name is its own resource, and the mapping depends on it for order only: whatever becomes of the mapping, the name goes.
A memory that must be held is so never turned into a name in /dev/shm that nobody removes.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from lifegraph import order_only, resource

from .region import PAGE, Mapping

DIRECTORY = Path("/dev/shm")  # noqa: S108 - where POSIX shared memory is
PREFIX = "kv_offload-"
HEADER_BYTES = PAGE
MAX_WORKERS = 1024
POLL_SECONDS = 0.005

_MAGIC = b"KVSHM001"
_HEAD = struct.Struct("<8sQI")
_RANKS = 64
"""where the byte of the first worker is, in the header"""


class RendezvousError(RuntimeError):
    """The workers did not come together. The message says who waited for what, and for how long."""


@resource
class SharedName:
    """A name in /dev/shm under which `workers` processes find one memory of `size` bytes.

    Exactly one of them creates it; the others join, and wait for that at most `limit` seconds. A name that a dead run
    left behind is told by its locks, which nobody holds any longer, and is taken away. Once all have mapped the memory
    the name is removed, by whoever sees it first; a name of the same text that belongs to others is left alone.
    """

    def __init__(self, name: str, size: int, workers: int, rank: int, *, limit: float = 30.0) -> None:
        if not 0 <= rank < workers <= MAX_WORKERS:
            raise ValueError(
                f"worker {rank} of {workers}: ranks are 0 to workers - 1, and at most {MAX_WORKERS} workers"
            )
        if not name or "/" in name:
            raise ValueError(f"not a name: {name!r}")
        self.text = name
        self.path = DIRECTORY / f"{PREFIX}{name}"
        self.size, self.rank, self.created = size, rank, False
        self._workers, self._limit = workers, limit
        self.descriptor = -1

    def start(self) -> None:
        """Create the memory or join it. Raises RendezvousError."""
        deadline = time.monotonic() + self._limit
        while not (self._create() or self._join()):
            if time.monotonic() > deadline:
                raise RendezvousError(f"worker {self.rank} waited {self._limit} s for {self.path} to be made ready")
            _pause()
        try:
            fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _RANKS + self.rank)
        except BlockingIOError:
            self._leave()
            raise RendezvousError(f"there is a worker {self.rank} already at {self.path}") from None

    def stop(self) -> None:
        """Remove the name, if it is still ours."""
        if self.descriptor >= 0:
            self._unlink()
            self._leave()

    def is_stopped(self) -> bool:
        """No name leads to this memory through us."""
        return self.descriptor < 0

    def arrive(self) -> None:
        """Say that this worker has mapped it, and wait for the others. The name is gone then. Raises RendezvousError."""
        os.pwrite(self.descriptor, b"\1", _RANKS + self.rank)
        deadline = time.monotonic() + self._limit
        while missing := self._missing():
            if time.monotonic() > deadline:
                raise RendezvousError(
                    f"worker {self.rank} waited {self._limit} s for worker(s) {missing} to map {self.path}"
                )
            _pause()
        self._unlink()

    def _create(self) -> bool:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, HEADER_BYTES + self.size)
        os.pwrite(descriptor, _HEAD.pack(_MAGIC, self.size, self._workers), 0)
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # not atomic: in between it may have been taken for a dead one's
        return self._keep(descriptor, created=True)

    def _join(self) -> bool:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with suppress(BlockingIOError):  # it is being made, or taken away
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return self._keep(descriptor, created=False)
        else:
            self._unlink(descriptor)  # nobody holds it any longer
        os.close(descriptor)
        return False

    def _keep(self, descriptor: int, *, created: bool) -> bool:
        if not self._is_named(descriptor):
            os.close(descriptor)
            return False
        magic, size, workers = _HEAD.unpack(os.pread(descriptor, _HEAD.size, 0))
        if (magic, size, workers) != (_MAGIC, self.size, self._workers):
            os.close(descriptor)
            raise RendezvousError(
                f"{self.path} is for {workers} workers and {size} bytes, not for {self._workers} and {self.size}"
            )
        self.descriptor, self.created = descriptor, created
        return True

    def _missing(self) -> list[int]:
        marks = os.pread(self.descriptor, self._workers, _RANKS)
        return [rank for rank, mark in enumerate(marks) if not mark]

    def _unlink(self, descriptor: int | None = None) -> None:
        with suppress(FileNotFoundError):
            if self._is_named(self.descriptor if descriptor is None else descriptor):
                self.path.unlink()

    def _is_named(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(self.path.stat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def _leave(self) -> None:
        os.close(self.descriptor)
        self.descriptor = -1


@resource
class SharedFile:
    """The descriptor of a shared memory: that of a name, or of a nameless one which is inherited or sent."""

    def __init__(self, name: Annotated[SharedName, order_only] | None = None, *, inherited: int = -1) -> None:
        self._name = name
        self._inherited = inherited
        self.descriptor = -1

    def start(self) -> None:
        """Have a descriptor of our own."""
        self.descriptor = os.dup(self._inherited if self._name is None else self._name.descriptor)

    def stop(self) -> None:
        """Close it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def is_stopped(self) -> bool:
        """It has been closed."""
        return self.descriptor < 0


def nameless(size: int) -> int:
    """A memory that other processes can map and that has no name: a descriptor, to be inherited or sent."""
    descriptor = os.memfd_create("kv_offload")
    os.ftruncate(descriptor, HEADER_BYTES + size)
    return descriptor


@resource
class SharedMapping(Mapping):
    """The memory of a `SharedFile`. Where `gather` is said, start waits until every worker has mapped it, too."""

    def __init__(
        self,
        file: SharedFile,
        size: int,
        name: Annotated[SharedName, order_only] | None = None,
        *,
        gather: bool = False,
    ) -> None:
        super().__init__(size, huge=False)
        self._file = file
        self._name = name
        self._gather = gather

    def start(self) -> None:
        """Map, prefault, and perhaps wait for the others. Raises OSError and RendezvousError."""
        super().start()
        if self._gather and self._name is not None:
            self._name.arrive()

    def _map_memory(self) -> mmap.mmap:
        return mmap.mmap(self._file.descriptor, self.size, flags=mmap.MAP_SHARED, offset=HEADER_BYTES)


def _pause() -> None:
    threading.Event().wait(POLL_SECONDS)
