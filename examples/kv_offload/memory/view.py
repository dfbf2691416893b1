"""What one tier may touch: a borrow cut from the region, block by block."""

from __future__ import annotations

from pickle import PickleBuffer

from lifegraph import resource

from .libc import address_of
from .pool import BlockPool
from .region import Mapping


@resource
class View:
    """One borrower's blocks. The dependency of a tier on the memory is this object.

    Each slot is one memoryview, cut at start and released at stop: a block that is inside a system call or otherwise
    exported at that moment makes `stop` raise BufferError, which is evidence of use. What somebody cut from a slot in
    turn is not seen here; it keeps the mapping, whose own stop then raises. Reading a slot is thread-safe.
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

    @property
    def block_size(self) -> int:
        """Bytes in a block."""
        return self._pool.block_size

    @property
    def nbytes(self) -> int:
        """Bytes of all its blocks together; they follow one another without a gap."""
        return self._pool.block_size * self._pool.capacity

    def hold(self) -> list[PickleBuffer]:
        """For who works with bare addresses: until each of these is released, `stop` raises.

        A slice of a slice would not do: it keeps the mapping, and not the slice that it was cut from.
        """
        return [PickleBuffer(block) for block in self._slots]

    @property
    def address(self) -> int:
        """Where its first block lies. An address keeps nothing mapped: `hold` the view for as long as it is used."""
        return address_of(self._slots[0])

    def is_stopped(self) -> bool:
        """Every slice has been released."""
        return all(_released(block) for block in self._slots)

    def block(self, slot: int) -> memoryview:
        """The bytes of a slot, shared and writable. After the view was stopped any use of them raises ValueError."""
        return self._slots[slot]


def _released(block: memoryview) -> bool:
    try:
        block.nbytes  # noqa: B018 - asking is the test
    except ValueError:
        return True
    return False
