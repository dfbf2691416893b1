"""The second step: the order within each row, so that few edges cross.

Barycentre sweeps down and up, as in K. Sugiyama, S. Tagawa and M. Toda, Methods for visual understanding of hierarchical
system structures (1981), and exchanges of neighbours, as in E. R. Gansner et al., A technique for drawing directed graphs
(1993).
"""

from __future__ import annotations

from collections.abc import Sequence

from .crossings import between, total

__all__ = ["first_order", "ordered", "swept"]

_Rows = list[list[int]]
_PASSES = 10
_PATIENCE = 8  # rounds without a better order


def first_order(rank: Sequence[int], ahead: Sequence[Sequence[int]], *, upwards: bool = False) -> _Rows:
    """Rows in the order in which a walk from the top (or from the bottom), in declared order, comes across their items."""
    rows: _Rows = [[] for _ in range(max(rank, default=-1) + 1)]
    seen = bytearray(len(rank))
    for start in sorted(range(len(rank)), key=rank.__getitem__, reverse=upwards):
        work = [] if seen[start] else [start]
        while work:
            item = work.pop()
            if not seen[item]:
                seen[item] = 1
                rows[rank[item]].append(item)
                work += reversed(ahead[item])
    return rows


def ordered(
    starts: Sequence[_Rows], below: Sequence[Sequence[int]], above: Sequence[Sequence[int]], rounds: int
) -> _Rows:
    """The best order found from these starts, in so many rounds each; edges must lead from a row to the next one."""
    found = [_improved(rows, below, above, rounds) for rows in starts]
    return min(found, key=lambda result: result[0])[1]


def _improved(
    rows: _Rows, below: Sequence[Sequence[int]], above: Sequence[Sequence[int]], rounds: int
) -> tuple[int, _Rows]:
    place = [0] * len(below)
    _number(rows, place)
    best, fewest = [list(row) for row in rows], total(rows, below, place)
    idle = 0
    for turn in range(rounds):
        if not fewest or idle > _PATIENCE:
            break
        down = turn % 2 == 0
        for row in rows[1:] if down else rows[-2::-1]:
            _sweep(row, above if down else below, place, late=turn % 4 > 1)
        for _ in range(_PASSES):
            if not _exchange(rows, below, above, place, level=turn % 4 > 1):
                break
        count = total(rows, below, place)
        idle = 0 if count < fewest else idle + 1
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
    return fewest, best


def swept(rank: Sequence[int], below: Sequence[Sequence[int]], above: Sequence[Sequence[int]], rounds: int) -> _Rows:
    """A good order in linear time, for edges of any length: those between neighbouring rows decide."""
    near_below = [[other for other in others if rank[other] == rank[item] + 1] for item, others in enumerate(below)]
    near_above = [[other for other in others if rank[other] == rank[item] - 1] for item, others in enumerate(above)]
    rows, place = first_order(rank, near_below), [0] * len(rank)
    _number(rows, place)
    for turn in range(rounds):
        down = turn % 2 == 0
        for row in rows[1:] if down else rows[-2::-1]:
            _sweep(row, near_above if down else near_below, place, late=turn % 4 > 1)
    _exchange(rows, near_below, near_above, place, level=False)
    return rows


def _number(rows: _Rows, place: list[int]) -> None:
    for row in rows:
        for at, item in enumerate(row):
            place[item] = at


def _sweep(row: list[int], sides: Sequence[Sequence[int]], place: list[int], *, late: bool) -> None:
    """Sorts a row by the middle of its neighbours in the row before; what has none there keeps its place.

    `late` lets the later of two equals go first, so that ties are not frozen.
    """
    at = place.__getitem__
    movable = [item for item in row if sides[item]]
    keys = {item: sum(map(at, sides[item])) / len(sides[item]) for item in movable}
    if late:
        movable.reverse()
    movable.sort(key=keys.__getitem__)
    if len(movable) == len(row):
        row[:] = movable
    else:
        sorted_ones = iter(movable)
        row[:] = [next(sorted_ones) if sides[item] else item for item in row]
    for index, item in enumerate(row):
        place[item] = index


def _exchange(
    rows: _Rows, below: Sequence[Sequence[int]], above: Sequence[Sequence[int]], place: list[int], *, level: bool
) -> int:
    """Exchanges neighbours wherever that saves crossings (or, if `level`, costs none); returns how many it saved."""
    at = place.__getitem__
    saved = 0
    for row in rows:
        if len(row) < 2:
            continue
        ups = [sorted(map(at, above[item])) for item in row]
        downs = [sorted(map(at, below[item])) for item in row]
        for left in range(len(row) - 1):
            right = left + 1
            now = between(ups[left], ups[right]) + between(downs[left], downs[right])
            gain = now and now - between(ups[right], ups[left]) - between(downs[right], downs[left])
            if gain > 0 or (level and now and gain == 0):
                saved += gain
                row[left], row[right] = row[right], row[left]
                ups[left], ups[right] = ups[right], ups[left]
                downs[left], downs[right] = downs[right], downs[left]
        for index, item in enumerate(row):
            place[item] = index
    return saved
