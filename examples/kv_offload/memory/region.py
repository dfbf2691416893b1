"""The memory: one private anonymous mapping, and the views that are cut from it.

Nobody is ever given the mapping itself: closing an mmap under a raw address succeeds and the next access is a
segmentation fault. A guard memoryview is held until the mapping is released, and everybody works on slices of it, so a
slice still in use makes the close raise BufferError.
"""

from __future__ import annotations

import errno
import mmap

import crc32c

from lifegraph import resource

from ..units import show_size
from . import numa, smaps
from .libc import MADV_POPULATE_WRITE, address_of

PAGE = mmap.PAGESIZE


@resource
class Mapping:
    """`size` bytes of `MAP_PRIVATE|MAP_ANONYMOUS` memory: huge pages preferred, prefaulted, not inherited over fork.

    `node` binds it to a NUMA node.
    Private anonymous memory leaves no name behind when the process is killed. What the kernel would not give is in
    `notes`. Not thread-safe in `start` and `stop`; `cut` may be called from any thread between the two.
    """

    def __init__(self, size: int, *, huge: bool = True, node: int | None = None) -> None:
        if size <= 0 or size % PAGE:
            raise ValueError(f"a mapping is a positive multiple of {PAGE} bytes, not {size}")
        self.size = size
        self.notes: list[str] = []
        self._huge = huge
        self._node = node
        self._map: mmap.mmap | None = None
        self._guard: memoryview | None = None
        self._address = 0

    def start(self) -> None:
        """Map and prefault. Raises OSError where the kernel refuses the mapping."""
        self._map = self._map_memory()
        self._guard = memoryview(self._map)
        self._address = address_of(self._guard)
        huge = self._huge and self._advise(mmap.MADV_HUGEPAGE, "huge pages refused, using ordinary ones")
        if self._node is not None:
            self._bind(self._node)
        self._advise(mmap.MADV_DONTFORK, "a fork will copy the region")
        if not self._advise(MADV_POPULATE_WRITE, "prefaulted by touching each page"):
            for offset in range(0, self.size, PAGE):
                self._guard[offset] = self._guard[offset]  # others may have written there already
        if huge and self.huge_bytes < self.size:
            self.notes.append(f"huge pages for {show_size(self.huge_bytes)} of {show_size(self.size)} only")

    def stop(self) -> None:
        """Unmap. Raises BufferError, and keeps the mapping and its guard, while any slice is still exported."""
        if self._map is None:
            return
        if self._guard is not None:
            self._guard.release()
        try:
            self._map.close()
        except BufferError:
            self._guard = memoryview(self._map)
            raise
        self._map = self._guard = None

    def is_stopped(self) -> bool:
        """It has been unmapped, or never was mapped."""
        return self._map is None

    @property
    def mapped(self) -> bool:
        """True from start until the unmapping succeeded."""
        return self._map is not None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.size if self.mapped else 0

    @property
    def address(self) -> int:
        """Where the region lies, or lay."""
        return self._address

    @property
    def huge_bytes(self) -> int:
        """Bytes of it that lie in huge pages, as the kernel says."""
        return min(self.size, smaps.extent(self._address, self.size).huge) if self.mapped else 0

    def cut(self, offset: int, length: int) -> memoryview:
        """A writable slice, which keeps the region mapped until it is released."""
        if self._guard is None:
            raise RuntimeError("the region is not mapped")
        if offset < 0 or length <= 0 or offset + length > self.size:
            raise ValueError(f"{length} bytes at {offset} lie outside a region of {self.size} bytes")
        return self._guard[offset : offset + length]

    def checksum(self) -> int:
        """The crc32c of the whole region."""
        with self.cut(0, self.size) as whole:
            return crc32c.crc32c(whole)

    def _map_memory(self) -> mmap.mmap:
        return mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def _bind(self, node: int) -> None:
        try:
            numa.bind(self._address, self.size, node)
        except OSError as error:
            self.notes.append(f"not bound to NUMA node {node}: {error}")

    def _advise(self, advice: int, otherwise: str) -> bool:
        assert self._map is not None
        try:
            self._map.madvise(advice)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self.notes.append(f"{otherwise} ({error})")
            return False
        return True
