"""What one tier may touch: a borrow cut from the region, block by block."""

from __future__ import annotations

from lifegraph import resource

from .pool import BlockPool
from .region import Mapping


@resource
class View:
    """One borrower's blocks. The dependency of a tier on the memory is this object.

    Each slot is one memoryview, cut at start and released at stop: a block that is still handed to the kernel or to
    numpy at that moment makes `stop` raise BufferError, which is evidence of use. Reading a slot is thread-safe.
    """

    def __init__(self, borrower: str, pool: BlockPool, mapping: Mapping) -> None:
        self._borrower = borrower
        self._pool = pool
        self._mapping = mapping
        self._slots: list[memoryview] = []

    def start(self) -> None:
        """Cut one slice for each block of the pool."""
        size = self._pool.block_size
        self._slots = [self._mapping.cut(slot * size, size) for slot in range(self._pool.capacity)]

    def stop(self) -> None:
        """Release every slice; raises BufferError that lists the slots still in use, after trying all of them."""
        in_use: dict[int, memoryview] = {}
        for slot, block in enumerate(self._slots):
            try:
                block.release()
            except BufferError:
                in_use[slot] = block
        if in_use:
            raise BufferError(f"{len(in_use)} block(s) still in use by {self._borrower}: slots {sorted(in_use)}")
        self._slots = []

    @property
    def block_size(self) -> int:
        """Bytes in a block."""
        return self._pool.block_size

    def block(self, slot: int) -> memoryview:
        """The bytes of a slot, shared and writable. Raises ValueError on use after the view was stopped."""
        return self._slots[slot]
