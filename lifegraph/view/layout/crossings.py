"""How often edges between two rows cross."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence

__all__ = ["between", "crossings", "total"]


def crossings(heads: Iterable[Sequence[int]]) -> int:
    """The crossings of edges whose tails stand in a row, in this order; `heads` are places in the row below."""
    seen: list[int] = []
    count = 0
    for places in heads:
        for place in places:
            count += len(seen) - bisect_right(seen, place)
        for place in places:
            insort(seen, place)
    return count


def total(rows: Sequence[Sequence[int]], below: Sequence[Sequence[int]], place: Sequence[int]) -> int:
    """The crossings of a drawing all of whose edges lead from a row to the next one."""
    at = place.__getitem__
    return sum(crossings(list(map(at, below[item])) for item in row) for row in rows)


def between(left: Sequence[int], right: Sequence[int]) -> int:
    """The crossings of the edges of two neighbours in a row, by the sorted places of their other ends."""
    if not left or not right or left[-1] <= right[0]:
        return 0
    if len(right) == 1:
        return len(left) - bisect_right(left, right[0])
    return sum(len(left) - bisect_right(left, place) for place in right)
