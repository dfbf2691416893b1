"""Who has which block of the region: fixed-size blocks, given up in the order of a policy.

A block is `free`, then `writing` (one writer), then `ready`; a ready block may be pinned by any number of owners. Only
ready blocks without a pin are ever evicted, in batches that happen whole or not at all.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lifegraph import resource

from .policies import Policy, PolicyName
from .registration import Registration


class BlockState(StrEnum):
    """What a key's block is doing. A key without a block is FREE."""

    FREE = "free"
    WRITING = "writing"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Counts:
    """Blocks by state; `pinned` are among the ready ones."""

    free: int
    writing: int
    ready: int
    pinned: int


@dataclass(frozen=True, slots=True)
class Holder:
    """Who keeps blocks from being evicted, how much, and for how long already."""

    owner: str
    blocks: int
    nbytes: int
    age: float
    """seconds since the oldest of its pins and writes that are still out"""


@dataclass(slots=True)
class _Pin:
    count: int
    since: float


@dataclass(slots=True, eq=False)
class _Block:
    slot: int
    writer: str | None
    since: float
    pins: dict[str, _Pin] = field(default_factory=dict)

    def pin(self, owner: str, now: float) -> None:
        pin = self.pins.get(owner)
        if pin is None:
            self.pins[owner] = _Pin(1, now)
        else:
            pin.count += 1


@resource
class BlockPool:
    """Blocks of `block_size` bytes over a pinned region of `size` bytes. Every method is thread-safe and brief."""

    def __init__(
        self, registration: Registration, size: int, block_size: int, policy: PolicyName = PolicyName.LRU
    ) -> None:
        if block_size <= 0 or size < block_size:
            raise ValueError(f"a region of {size} bytes holds no block of {block_size} bytes")
        self._registration = registration
        self.block_size = block_size
        self.capacity = size // block_size
        self._lock = threading.Lock()
        self._free = list(range(self.capacity - 1, -1, -1))
        self._blocks: dict[bytes, _Block] = {}
        self._policy_name = policy
        self._policy = policy.make(self.capacity)
        self.evicted = 0

    def state(self, key: bytes) -> BlockState:
        """The state of a key's block, without counting as a use."""
        with self._lock:
            block = self._blocks.get(key)
        if block is None:
            return BlockState.FREE
        return BlockState.WRITING if block.writer is not None else BlockState.READY

    def reserve(self, keys: Sequence[bytes], writer: str) -> list[int] | None:
        """Slots to write these new keys into, evicting as needed; None, with nothing changed, where there is no room.

        Raises ValueError for a key that already has a block, or comes twice.
        """
        with self._lock:
            known = [key for key in keys if key in self._blocks]
            if known or len(set(keys)) != len(keys):
                raise ValueError(f"{len(known)} of {len(keys)} keys already have a block, or a key comes twice")
            if not self._make_room(len(keys)):
                return None
            slots = [self._free.pop() for _ in keys]
            now = time.monotonic()
            for key, slot in zip(keys, slots, strict=True):
                self._blocks[key] = _Block(slot, writer, now)
                self._policy.arrive(key)
            return slots

    def commit(self, keys: Iterable[bytes], writer: str, pin_for: Iterable[str] = ()) -> list[int]:
        """The writer is done: the blocks are ready, and pinned at once for each owner named. Says where they are."""
        owners = tuple(pin_for)
        with self._lock:
            written = self._written_by(keys, writer)
            now = time.monotonic()
            for key, block in written:
                block.writer = None
                for owner in owners:
                    block.pin(owner, now)
                if not owners:
                    self._policy.idle(key)
            return [block.slot for _, block in written]

    def abort(self, keys: Iterable[bytes], writer: str) -> None:
        """The writer gave up: what it wrote is never served, and the blocks are free."""
        with self._lock:
            for key, block in self._written_by(keys, writer):
                del self._blocks[key]
                self._policy.forget(key)
                self._free.append(block.slot)

    def pin(self, keys: Sequence[bytes], owner: str) -> list[int] | None:
        """Keep these ready blocks where they are, once more for `owner`; None, with nothing changed, if one is not."""
        with self._lock:
            blocks = [self._blocks.get(key) for key in keys]
            ready = [block for block in blocks if block is not None and block.writer is None]
            if len(ready) != len(keys):
                return None
            now = time.monotonic()
            for key, block in zip(keys, ready, strict=True):
                self._use(key, block, owner, now)
            return [block.slot for block in ready]

    def pin_each(self, keys: Sequence[bytes], owner: str) -> list[int | None]:
        """Pin those of the blocks that are ready, and say where they are; None for each of the others."""
        slots: list[int | None] = []
        now = time.monotonic()
        with self._lock:
            for key in keys:
                block = self._blocks.get(key)
                if block is None or block.writer is not None:
                    slots.append(None)
                    continue
                self._use(key, block, owner, now)
                slots.append(block.slot)
        return slots

    def unpin(self, keys: Iterable[bytes], owner: str) -> None:
        """Give one pin of `owner` back for each key. Raises KeyError for a pin that does not exist."""
        with self._lock:
            for key in keys:
                block = self._blocks[key]
                pin = block.pins.get(owner)
                if pin is None:
                    raise KeyError(f"{owner} has no pin on block {block.slot}")
                pin.count -= 1
                if not pin.count:
                    del block.pins[owner]
                if not block.pins:
                    self._policy.idle(key)

    def evict(self, count: int) -> bool:
        """Free at least `count` blocks in all, or change nothing and say False."""
        with self._lock:
            return self._make_room(count)

    def room(self) -> int:
        """Blocks that a reserve could have now: free ones and evictable ones."""
        with self._lock:
            return len(self._free) + self._policy.idle_count()

    def counts(self) -> Counts:
        """Blocks by state, at one moment."""
        with self._lock:
            writing = sum(block.writer is not None for block in self._blocks.values())
            pinned = sum(bool(block.pins) for block in self._blocks.values())
            return Counts(len(self._free), writing, len(self._blocks) - writing, pinned)

    def owners(self) -> dict[str, int]:
        """Blocks pinned or being written, by owner."""
        return {holder.owner: holder.blocks for holder in self.holders()}

    def holders(self) -> list[Holder]:
        """Who has blocks pinned or is writing some, those who have waited longest first."""
        blocks: Counter[str] = Counter()
        oldest: dict[str, float] = {}
        with self._lock:
            for block in self._blocks.values():
                held = [(owner, pin.since) for owner, pin in block.pins.items()]
                if block.writer is not None:
                    held.append((block.writer, block.since))
                for owner, since in held:
                    blocks[owner] += 1
                    oldest[owner] = min(since, oldest.get(owner, since))
        now = time.monotonic()
        ordered = sorted(oldest, key=oldest.__getitem__)
        return [Holder(owner, blocks[owner], blocks[owner] * self.block_size, now - oldest[owner]) for owner in ordered]

    def reset(self) -> int:
        """Forget every block that nobody uses; says how many are kept because somebody does."""
        with self._lock:
            self._drop(self._policy.give_up(self._policy.idle_count()))
            self._policy = self._fresh_policy()
            return len(self._blocks)

    def stop(self) -> None:
        """Forget every block. Raises RuntimeError that names the owners while one is pinned or being written."""
        owners = self.owners()
        if owners:
            held = ", ".join(f"{owner} ({count})" for owner, count in sorted(owners.items()))
            raise RuntimeError(f"blocks still in use by {held}")
        with self._lock:
            self._free = list(range(self.capacity - 1, -1, -1))
            self._blocks.clear()
            self._policy = self._policy_name.make(self.capacity)

    def is_stopped(self) -> bool:
        """It knows of no block any longer, so nobody has one."""
        with self._lock:
            return not self._blocks

    def _make_room(self, count: int) -> bool:
        missing = count - len(self._free)
        if missing > self._policy.idle_count():
            return False
        if missing > 0:
            self._drop(self._policy.give_up(missing))
            self.evicted += missing
        return True

    def _drop(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._free.append(self._blocks.pop(key).slot)

    def _use(self, key: bytes, block: _Block, owner: str, now: float) -> None:
        block.pin(owner, now)
        self._policy.use(key)
        self._policy.busy(key)

    def _fresh_policy(self) -> Policy:
        """One that knows the blocks that are there, all of them in use, and nothing of the past."""
        policy = self._policy_name.make(self.capacity)
        for key in self._blocks:
            policy.arrive(key)
        return policy

    def _written_by(self, keys: Iterable[bytes], writer: str) -> list[tuple[bytes, _Block]]:
        found = [(key, self._blocks.get(key)) for key in keys]
        mine = [(key, block) for key, block in found if block is not None and block.writer == writer]
        if len(mine) != len(found):
            raise KeyError(f"{writer} is not writing {len(found) - len(mine)} of these {len(found)} blocks")
        return mine
