"""Writers that come too late: each has a piece of the region in hand when its owner is told to stop."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pickle import PickleBuffer
from typing import Any

from lifegraph import Graph

from ..assembly import TIERS
from ..faults import StuckRead
from ..memory.pinning import PinError, Pinner
from ..memory.pool import BlockPool
from ..memory.region import Mapping
from ..memory.registration import Registration
from ..serving.content import SyntheticContent
from ..tiers.tier import KEY_BYTES

LATE_BYTES = b"\xee" * 4096

Fire = Callable[[], None]


class StuckContent(SyntheticContent):
    """Once armed, the next block is not computed, but read from a pipe to which nobody writes yet."""

    def __init__(self) -> None:
        super().__init__()
        self.read: StuckRead | None = None

    def write(self, prompt: Sequence[tuple[bytes, memoryview]], missing: AbstractSet[bytes]) -> None:
        if self.read is None:
            super().write(prompt, missing)
        else:
            self.read.carry_out(_OneBlock(prompt[0][1]))


class _OneBlock:
    """Looks like a view of one block."""

    def __init__(self, block: memoryview) -> None:
        self._block = block

    def block(self, slot: int) -> memoryview:
        return self._block


class _Refused(Pinner):
    """Pages that the device does not give back."""

    def __init__(self, real: Pinner) -> None:
        self._real = real

    def pin(self, address: int, length: int) -> str:
        return self._real.pin(address, length)

    def unpin(self) -> None:
        raise PinError("injected: the device may still reach these pages")

    def pinned(self) -> int:
        return self._real.pinned()


def arm(graph: Graph, node: str, content: StuckContent) -> Fire:
    """Put a late writer into a running resource; the function that is returned lets it write."""
    if node in TIERS:
        tier: Any = graph[node]
        return lambda: tier.stuck.late(LATE_BYTES)
    if node == "engine":
        return _arm_engine(graph, content)
    if node.startswith("view("):
        export = PickleBuffer(graph[node].block(0))
        return lambda: _write(memoryview(export))
    region, pool = graph[Mapping], graph[BlockPool]
    if node == "registration":
        registration: Any = graph[Registration]
        registration._pinner = _Refused(registration._pinner)  # noqa: SLF001 - a fault reaches where nobody should
        return partial(_poke, region.address)
    if node == "pool":
        pool.evict(1)
        [slot] = pool.reserve([b"late".ljust(KEY_BYTES)], "a late writer") or [0]
        taken = region.cut(slot * pool.block_size, pool.block_size)
    else:
        taken = region.cut(0, pool.block_size)
    return lambda: _write(taken)


def _arm_engine(graph: Graph, content: StuckContent) -> Fire:
    read = content.read = StuckRead()
    engine: Any = graph["engine"]
    orders: Iterator[tuple[bytes, ...]] = iter([(b"late".ljust(KEY_BYTES, b"!"),)])
    threading.Thread(target=_serve, args=(engine, orders), daemon=True).start()
    read.begun.wait()
    return lambda: read.late(LATE_BYTES)


def _serve(engine: Any, orders: Iterator[tuple[bytes, ...]]) -> None:
    try:
        engine.serve(orders)
    except Exception:  # noqa: BLE001 - by then the hierarchy has been stopped, and says so
        return


def _poke(address: int) -> None:
    ctypes.memmove(address, LATE_BYTES, len(LATE_BYTES))


def _write(block: memoryview) -> None:
    block[: len(LATE_BYTES)] = LATE_BYTES
