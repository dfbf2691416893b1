"""Tiers that misbehave on purpose, and honestly: what fails is really left as it was, what hangs really runs."""

from __future__ import annotations

import errno
import os
import threading
from typing import Final

from .memory.view import View
from .tiers.disk_tier import DiskTier
from .tiers.peer_tier import PeerTier
from .tiers.tier import KEY_BYTES, Job
from .tiers.transfers import Transfers


class _FailsToStart:
    def start(self) -> None:
        raise OSError(errno.EIO, "injected: the start fails")


class _FailsToStop:
    def stop(self) -> None:
        """Its threads, and what they may touch, are as they were when it raises."""
        raise OSError(errno.EIO, "injected: the stop fails")

    def kill(self) -> None:
        raise OSError(errno.EIO, "injected: the kill fails")


class _StuckRead(Job):
    """A job that reads into a block of the region from a pipe that nobody writes to."""

    def __init__(self) -> None:
        super().__init__("load", [bytes(KEY_BYTES)], [0], lambda _: None)
        self.begun = threading.Event()

    def carry_out(self, view: View) -> list[bool]:
        reading, self._writing = os.pipe()
        print(f"injected  {threading.current_thread().name}: a read into the region that never returns", flush=True)
        self.begun.set()
        return [os.readv(reading, [view.block(0)]) > 0]


class _HangsAtStop:
    """When its end is near, one of its I/O threads enters a read that never returns; stop waits for that thread."""

    _transfers: Transfers
    _view: View
    _stuck: _StuckRead | None = None

    def drain(self) -> None:
        self._hang()
        self._transfers.close_door()

    def stop(self) -> None:
        self._hang()
        self._transfers.stop()

    def execute(self, job: Job) -> list[bool]:
        if isinstance(job, _StuckRead):
            return job.carry_out(self._view)
        return super().execute(job)  # type: ignore[misc, no-any-return]  # a mixin: the next class is a tier

    def _hang(self) -> None:
        if self._stuck is None:
            self._stuck = _StuckRead()
            self._transfers.submit(self._stuck)
            if self._stuck.outcome is None:
                self._stuck.begun.wait()


class DiskFailsToStart(_FailsToStart, DiskTier):
    """What `--fail disk:start` puts in the place of the tier."""


class DiskFailsToStop(_FailsToStop, DiskTier):
    """What `--fail disk:stop` puts in the place of the tier."""


class DiskHangs(_HangsAtStop, DiskTier):
    """What `--hang disk` puts in the place of the tier."""


class PeerFailsToStart(_FailsToStart, PeerTier):
    """What `--fail peer:start` puts in the place of the tier."""


class PeerFailsToStop(_FailsToStop, PeerTier):
    """What `--fail peer:stop` puts in the place of the tier."""


class PeerHangs(_HangsAtStop, PeerTier):
    """What `--hang peer` puts in the place of the tier."""


DISK: Final[dict[str, type[DiskTier]]] = {
    "": DiskTier,
    "start": DiskFailsToStart,
    "stop": DiskFailsToStop,
    "hang": DiskHangs,
}
"""The disk tier by the fault it is to show."""

PEER: Final[dict[str, type[PeerTier]]] = {
    "": PeerTier,
    "start": PeerFailsToStart,
    "stop": PeerFailsToStop,
    "hang": PeerHangs,
}
"""The peer tier by the fault it is to show."""

TIERS: Final = ("disk", "peer")
