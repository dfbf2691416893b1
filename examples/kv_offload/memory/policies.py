"""Which ready block goes first when room is needed: least recently used, or ARC.

A policy knows keys only, and only those with a block. It never proposes a key that is busy (pinned or being written).
Not thread-safe: the pool calls it under its own lock.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum
from typing import Protocol


class Policy(Protocol):
    """The order in which idle blocks are given up."""

    def arrive(self, key: bytes) -> None:
        """A key gets a block, busy at first."""

    def use(self, key: bytes) -> None:
        """Somebody asked for a block that was here."""

    def busy(self, key: bytes) -> None:
        """It must not be proposed until it is idle."""

    def idle(self, key: bytes) -> None:
        """It may be proposed."""

    def idle_count(self) -> int:
        """How many could be proposed."""

    def give_up(self, count: int) -> list[bytes]:
        """The keys that go, and are known no longer; `count` is at most `idle_count`."""

    def forget(self, key: bytes) -> None:
        """A key lost its block for another reason, and is not to be remembered."""


class Lru:
    """The one whose last use is the longest ago goes first."""

    def __init__(self) -> None:
        self._idle: OrderedDict[bytes, None] = OrderedDict()

    def arrive(self, key: bytes) -> None:
        pass

    def use(self, key: bytes) -> None:
        pass  # a use pins, and the unpinning is what puts it last

    def busy(self, key: bytes) -> None:
        self._idle.pop(key, None)

    def idle(self, key: bytes) -> None:
        self._idle[key] = None

    def idle_count(self) -> int:
        return len(self._idle)

    def give_up(self, count: int) -> list[bytes]:
        return [self._idle.popitem(last=False)[0] for _ in range(count)]

    def forget(self, key: bytes) -> None:
        self._idle.pop(key, None)


class _Side:
    """The keys with a block that were used once (or often), the idle ones in order; and those lately given up."""

    def __init__(self) -> None:
        self.here: set[bytes] = set()
        self.idle: OrderedDict[bytes, None] = OrderedDict()
        self.ghosts: OrderedDict[bytes, None] = OrderedDict()

    def give_up(self) -> bytes:
        key, _ = self.idle.popitem(last=False)
        self.here.discard(key)
        self.ghosts[key] = None
        return key


class Arc:
    """The adaptive replacement cache of Megiddo and Modha (FAST 2003), for blocks that may be busy.

    Blocks used once and blocks used more often are kept apart, so that one long scan does not wash the latter out. How
    many blocks the former may have is learned from what is asked for again soon after it was given up.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._once, self._often = _Side(), _Side()
        self._share = 0.0
        """how many blocks those used once may have; between 0 and the capacity"""

    @property
    def share(self) -> float:
        """Blocks that keys used once may have, as learned so far."""
        return self._share

    def remembered(self) -> list[bytes]:
        """Keys that were given up lately, and would be taken for old acquaintances."""
        return [*self._once.ghosts, *self._often.ghosts]

    def arrive(self, key: bytes) -> None:
        once, often = self._once, self._often
        if key in once.ghosts:
            self._share = min(self._capacity, self._share + max(1.0, len(often.ghosts) / len(once.ghosts)))
            del once.ghosts[key]
            often.here.add(key)
        elif key in often.ghosts:
            self._share = max(0.0, self._share - max(1.0, len(once.ghosts) / len(often.ghosts)))
            del often.ghosts[key]
            often.here.add(key)
        else:
            once.here.add(key)
        self._trim()

    def use(self, key: bytes) -> None:
        if key in self._once.here:
            self._once.here.discard(key)
            was_idle = self._once.idle.pop(key, key) is None
            self._often.here.add(key)
            if was_idle:
                self._often.idle[key] = None

    def busy(self, key: bytes) -> None:
        self._once.idle.pop(key, None)
        self._often.idle.pop(key, None)

    def idle(self, key: bytes) -> None:
        side = self._often if key in self._often.here else self._once
        side.idle[key] = None

    def idle_count(self) -> int:
        return len(self._once.idle) + len(self._often.idle)

    def give_up(self, count: int) -> list[bytes]:
        given = [self._next().give_up() for _ in range(count)]
        self._trim()
        return given

    def forget(self, key: bytes) -> None:
        self.busy(key)
        for side in (self._once, self._often):
            side.here.discard(key)

    def _next(self) -> _Side:
        """The side that is over its share, unless all that it has is busy."""
        first, other = self._once, self._often
        if len(first.here) <= self._share:
            first, other = other, first
        return first if first.idle else other

    def _trim(self) -> None:
        while len(self._once.here) + len(self._once.ghosts) > self._capacity and self._once.ghosts:
            self._once.ghosts.popitem(last=False)
        while self._known() > 2 * self._capacity and self._often.ghosts:
            self._often.ghosts.popitem(last=False)

    def _known(self) -> int:
        return sum(len(side.here) + len(side.ghosts) for side in (self._once, self._often))


class PolicyName(StrEnum):
    """The policies there are."""

    LRU = "lru"
    ARC = "arc"

    def make(self, capacity: int) -> Policy:
        """A fresh one for so many blocks."""
        return Lru() if self is PolicyName.LRU else Arc(capacity)
