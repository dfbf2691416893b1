"""The plan: the frozen, checked value that everything after reads.

Resources are dense numbers here, ``0 .. n-1`` in declared order; ``uses[i]`` and ``orders[i]`` are what
resource ``i`` depends on. Teardown walks along these very tuples.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Final, NamedTuple

from .events import Fate
from .view import Drawable, Drawn, Reported
from .walk import State

__all__ = ["Blast", "Edge", "Plan", "fate_of"]

_INF: Final = float("inf")
_REACHED: Final = bytes([State.DONE, State.BLOCKED]) + bytes(254)  # what it means to be hit, or not
_FLAGS: Final = bytes.maketrans(b"01", b"\0\1")  # digits as flags


class Edge(NamedTuple):
    """One dependency by name; ``uses`` is False for an order-only one."""

    dependent: str
    dependency: str
    uses: bool


class Blast(NamedTuple):
    """What the failure of ``name`` would poison: names in the plan's order, and their bytes where known."""

    name: str
    poisoned: tuple[str, ...]
    bytes: int


@dataclass(frozen=True)
class Plan(Drawn):
    """A graph as it stands: plain data, immutable, picklable; safe from any thread. Limits are in seconds."""

    title: str
    names: tuple[str, ...]
    uses: tuple[tuple[int, ...], ...]
    orders: tuple[tuple[int, ...], ...]
    where: tuple[str, ...]
    start_limits: tuple[float | None, ...]
    stop_limits: tuple[float | None, ...]
    workers: int = 32
    grace: float | None = None

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The number of each name."""
        return {name: node for node, name in enumerate(self.names)}

    @cached_property
    def sequence(self) -> Sequence[int]:
        """All numbers, dependents first; ties go by declaration."""
        ahead = [0] * len(self.names)
        for node in range(len(self.names)):
            for dependency in self.dependencies(node):
                ahead[dependency] += 1
        ready = [node for node, count in enumerate(ahead) if not count]
        found: list[int] = []
        while ready:
            node = heapq.heappop(ready)
            found.append(node)
            for dependency in self.dependencies(node):
                ahead[dependency] -= 1
                if not ahead[dependency]:
                    heapq.heappush(ready, dependency)
        return found

    @cached_property
    def upwards(self) -> Sequence[int]:
        """All numbers, dependencies first: declared order where that is one already."""
        size = len(self.names)
        straight = all(d < node for rows in (self.uses, self.orders) for node in range(size) for d in rows[node])
        return range(size) if straight else list(reversed(self.sequence))

    def dependencies(self, node: int) -> tuple[int, ...]:
        """What resource ``node`` depends on, over both kinds of edges."""
        return self.uses[node] + self.orders[node] if self.orders[node] else self.uses[node]

    def _drawn(self) -> tuple[Drawable, Reported | None]:
        return self, None

    @property
    def order(self) -> tuple[str, ...]:
        """All names, dependents first: the order of a teardown with one worker."""
        return tuple(self.names[node] for node in self.sequence)

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Names by how many edges lie between them and the last resource to depend on them; dependents first."""
        depth = [0] * len(self.names)
        for node in self.sequence:
            for dependency in self.dependencies(node):
                depth[dependency] = max(depth[dependency], depth[node] + 1)
        levels: list[list[str]] = [[] for _ in range(max(depth, default=-1) + 1)]
        for node, level in enumerate(depth):
            levels[level].append(self.names[node])
        return tuple(map(tuple, levels))

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Every edge, in declared order of the dependents."""
        name = self.names
        return tuple(
            Edge(name[node], name[dependency], uses)
            for node in range(len(name))
            for uses, row in ((True, self.uses[node]), (False, self.orders[node]))
            for dependency in row
        )

    @property
    def timeouts(self) -> dict[str, float | None]:
        """The stop limit of each resource, in seconds; None waits for ever."""
        return dict(zip(self.names, self.stop_limits, strict=True))

    @cached_property
    def _longest(self) -> tuple[list[float], list[int]]:
        """For each resource the seconds of the longest path of limits from it down, and its next on it (or -1)."""
        seconds, follow = [0.0] * len(self.names), [-1] * len(self.names)
        for node in reversed(self.sequence):
            best = 0.0
            for dependency in self.dependencies(node):
                if follow[node] < 0 or seconds[dependency] > best:
                    best, follow[node] = seconds[dependency], dependency
            limit = self.stop_limits[node]
            seconds[node] = best + (_INF if limit is None else limit)
        return seconds, follow

    @property
    def critical_path(self) -> tuple[str, ...]:
        """The path with the greatest sum of stop limits, dependents first."""
        seconds, follow = self._longest
        node = max(range(len(seconds)), key=seconds.__getitem__, default=-1)
        path = []
        while node >= 0:
            path.append(self.names[node])
            node = follow[node]
        return tuple(path)

    @property
    def worst_case(self) -> float:
        """An upper bound, in seconds, on a teardown in which every stop takes all its limit; infinity if one has none.

        Graham's bound for list scheduling on m workers: work / m + (1 - 1/m) * critical path (R. L. Graham,
        Bounds on multiprocessing timing anomalies, 1969). Cut by the grace, where there is one.
        """
        seconds, _ = self._longest
        path = max(seconds, default=0.0)
        if path == _INF:
            return _INF if self.grace is None else self.grace
        work = sum(limit for limit in self.stop_limits if limit is not None)
        bound = work / self.workers + (1 - 1 / self.workers) * path
        return bound if self.grace is None else min(bound, self.grace)

    def ranks(self, *, up: bool = False) -> list[int]:
        """How urgent each resource is: the longest path of limits (ms) from it down, or up for a start."""
        limits = self.start_limits if up else self.stop_limits
        weights = {limit: _weight(limit) for limit in set(limits)}
        ranks = [weights[limit] for limit in limits]
        if up:
            for node in reversed(self.upwards):
                for dependency in self.dependencies(node):
                    ranks[dependency] = max(ranks[dependency], ranks[node] + _weight(limits[dependency]))
        else:
            for node in self.upwards:
                if row := self.dependencies(node):
                    ranks[node] += max([ranks[dependency] for dependency in row])
        return ranks

    def forecast(self, unproven: Iterable[int]) -> bytearray:
        """Where the walk of a teardown ends in which these fail and all else stops: a `State` for each resource.

        Nothing else decides that than reach: blocked is what a failing one leads to over use edges, and a failing one
        fails unless it is blocked itself. So the walk need not be walked, and what is out of reach is not looked at.
        """
        bad, uses = list(unproven), self.uses
        hit = bytearray(len(self.names))
        work = list(bad)
        reach = work.append
        for node in work:  # grows while it is read
            for dependency in uses[node]:
                if not hit[dependency]:
                    hit[dependency] = 1
                    reach(dependency)
        states = hit.translate(_REACHED)
        for node in bad:
            if not hit[node]:
                states[node] = State.FAILED
        return states

    def blast(self, nbytes: Callable[[int], int]) -> tuple[Blast, ...]:
        """Every resource with what its failure would poison, largest first; memory grows with the square of the size."""
        place = [0] * len(self.names)  # of each in the plan's order: the bit that stands for it
        for at, node in enumerate(self.sequence):
            place[node] = at
        reach = [0] * len(self.names)
        for node in reversed(self.sequence):
            for dependency in self.uses[node]:
                reach[node] |= reach[dependency] | 1 << place[dependency]
        sizes = [nbytes(node) for node in self.sequence]
        names, sized = self.order, any(sizes)
        found = []
        for node, bits in enumerate(reach):
            hit = f"{bits:b}"[::-1].encode().translate(_FLAGS)
            size = sum(compress(sizes, hit)) if sized else 0
            found.append(Blast(self.names[node], tuple(compress(names, hit)), size))
        return tuple(sorted(found, key=lambda blast: (-len(blast.poisoned), -blast.bytes)))


def _weight(limit: float | None) -> int:
    return 3_600_000 if limit is None or limit > 3600 else int(limit * 1000) + 1


def fate_of(state: int, *, late: bool = False) -> Fate:
    """The fate that a settled state of a teardown's walk means."""
    if state == State.FAILED:
        return Fate.TIMED_OUT if late else Fate.FAILED
    return Fate.POISONED if state == State.BLOCKED else Fate.ABANDONED if state == State.CUT else Fate.RELEASED
