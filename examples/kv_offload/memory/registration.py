"""Pinning the region, and how large a pinned region may be here."""

from __future__ import annotations

import mmap

from lifegraph import resource

from ..units import show_size
from . import libc, smaps
from .pinning import PinError, Pinner, choose_pinner, cuda_runtime, memlock_limit
from .region import Mapping


@resource
class Registration:
    """The pages of a mapping, pinned from start to stop.

    Stop is the unregistering, and its return code is the evidence: it raises PinError while anything is still pinned,
    and may be called again.
    """

    def __init__(self, mapping: Mapping, pinner: Pinner | None = None) -> None:
        self._mapping = mapping
        self._pinner = pinner
        self.how = ""

    def start(self) -> None:
        """Pin all of the mapping. Raises PinError, with the limit and the cure where a limit refused it."""
        self._pinner = self._pinner or choose_pinner()
        self.how = self._pinner.pin(self._mapping.address, self._mapping.size)

    def stop(self) -> None:
        """Unpin. Raises PinError where the kernel or the driver says no."""
        if self._pinner is not None:
            self._pinner.unpin()

    def is_stopped(self) -> bool:
        """Nothing is pinned any longer, says whoever pinned it."""
        return not self.pinned

    @property
    def pinned(self) -> int:
        """Bytes still pinned."""
        return 0 if self._pinner is None else self._pinner.pinned()


def pinnable(wanted: int, granule: int) -> tuple[int, str]:
    """The largest region of at most `wanted` bytes that may be pinned here, and a notice when that is less.

    The size is a multiple of `granule`. Raises PinError when not even one granule may be pinned.
    """
    if cuda_runtime() is not None or _may_lock(wanted):
        return wanted, ""
    limit = memlock_limit() or 0
    size = max(0, limit - smaps.locked_bytes()) // granule * granule
    if not size or not _may_lock(size):
        raise PinError(
            f"no region can be pinned: RLIMIT_MEMLOCK is {show_size(limit)}, at least {show_size(granule)} is needed. "
            f"Cure: `ulimit -l {granule // 1024}` or more"
        )
    notice = (
        f"the region is {show_size(size)}, not {show_size(wanted)}: RLIMIT_MEMLOCK allows no more pinned memory. "
        f"`ulimit -l {wanted // 1024}` allows all of it"
    )
    return size, notice


def _may_lock(length: int) -> bool:
    """Asks the kernel: locks an untouched mapping, so that the limit is checked and no page is used."""
    with mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as probe:
        address = libc.address_of(memoryview(probe))
        try:
            libc.mlock_on_fault(address, length)
        except OSError:
            return False
        libc.munlock(address, length)
    return True
