"""The third step: where in its row everything stands, in the given order and without overlap."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["placed", "settled"]

_Link = tuple[int, float]  # the other item, and how much it pulls


def placed(
    rows: Sequence[Sequence[int]],
    halves: Sequence[float],
    gaps: Sequence[float],
    up: Sequence[Sequence[_Link]],
    down: Sequence[Sequence[_Link]],
    rounds: int,
) -> list[float]:
    """The middle of each item, near the middle of its neighbours.

    `halves` is half the width of each item, `gaps` the room to keep on either side of it. Rows are settled one after the
    other, down, up, and at last by both sides at once.
    """
    x = [0.0] * len(halves)
    offsets = [_offsets(row, halves, gaps) for row in rows]
    for row, offset in zip(rows, offsets, strict=True):
        middle = offset[-1] / 2 if offset else 0.0
        for item, at in zip(row, offset, strict=True):
            x[item] = at - middle
    turns = [*[(up,), (down,)] * (rounds // 2), (up, down), (down, up)]
    for sides in turns:
        pairs = list(zip(rows, offsets, strict=True))
        for row, offset in pairs if sides[0] is up else reversed(pairs):
            _settle(row, offset, sides, x)
    return x


def _offsets(row: Sequence[int], halves: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Where the items of a row stand when it is packed to the left."""
    found: list[float] = []
    at = 0.0
    for place, item in enumerate(row):
        if place:
            before = row[place - 1]
            at += halves[before] + halves[item] + max(gaps[before], gaps[item])
        found.append(at)
    return found


def _settle(
    row: Sequence[int], offset: Sequence[float], sides: tuple[Sequence[Sequence[_Link]], ...], x: list[float]
) -> None:
    wants, weights = [], []
    for item in row:
        pull = weight = 0.0
        for side in sides:
            for other, strength in side[item]:
                pull += x[other] * strength
                weight += strength
        if not weight:
            pull, weight = x[item] * 0.1, 0.1
        wants.append(pull / weight)
        weights.append(weight)
    for item, at in zip(row, settled(wants, weights, offset), strict=True):
        x[item] = at


def settled(wants: Sequence[float], weights: Sequence[float], offset: Sequence[float]) -> list[float]:
    """The places nearest to those wanted (by weighted squares) that keep the order and the distances of `offset`.

    What would overlap moves as one, to the middle of what its parts want: pool adjacent violators.
    """
    means: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for want, weight, at in zip(wants, weights, offset, strict=True):
        mean, mass, count = want - at, weight, 1
        while means and means[-1] > mean:
            other = masses.pop()
            mean = (mean * mass + means.pop() * other) / (mass + other)
            mass += other
            count += counts.pop()
        means.append(mean)
        masses.append(mass)
        counts.append(count)
    places: list[float] = []
    for mean, count in zip(means, counts, strict=True):
        places += [mean + at for at in offset[len(places) : len(places) + count]]
    return places
