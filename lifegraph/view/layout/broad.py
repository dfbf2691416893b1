"""The quick layout, for thousands: rows of many nodes are folded into bands, and edges run straight behind them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt

from .coordinates import placed
from .ordering import swept
from .picture import Box, Picture, curved

__all__ = ["GAP_X", "GAP_Y", "broad", "page_width"]

GAP_X, GAP_Y = 22.0, 16.0
_SHAPE = 1.6  # width by height that is aimed at
_SWEEPS = 8


def page_width(sizes: Sequence[Box]) -> float:
    """How wide a picture of all this should be."""
    return sqrt(_SHAPE * 2.0 * sum((width + GAP_X) * (height + GAP_Y) for width, height in sizes))


def broad(
    sizes: Sequence[Box],
    edges: Sequence[tuple[int, int]],
    rank: Sequence[int],
    below: Sequence[Sequence[int]],
    above: Sequence[Sequence[int]],
) -> Picture:
    """Places for nodes of these sizes, in time linear in nodes and edges."""
    rows = swept(rank, below, above, _SWEEPS)
    columns = _folded(rows, sizes, page_width(sizes))
    x = _across(columns, sizes, below, above, len(rank))
    y = _down(columns, sizes, edges, x)
    left = min((at - size[0] / 2 for at, size in zip(x, sizes, strict=True)), default=0.0)
    middles = [(across - left, down) for across, down in zip(x, y, strict=True)]
    ways = [_way(middles, sizes, edge) for edge in edges]
    width = max((m[0] + size[0] / 2 for m, size in zip(middles, sizes, strict=True)), default=0.0)
    height = max((m[1] + size[1] / 2 for m, size in zip(middles, sizes, strict=True)), default=0.0)
    return Picture(width, height, middles, ways, rank)


def _way(middles: Sequence[tuple[float, float]], sizes: Sequence[Box], edge: tuple[int, int]) -> tuple[float, ...]:
    (x, y), (to_x, to_y) = middles[edge[0]], middles[edge[1]]
    return curved(((x, y + sizes[edge[0]][1] / 2), (to_x, to_y - sizes[edge[1]][1] / 2)))


def _folded(rows: Sequence[Sequence[int]], sizes: Sequence[Box], page: float) -> list[list[list[int]]]:
    """Each row as columns: neighbours stand one below the other where all beside each other would be too wide."""
    bands = []
    for row in rows:
        deep = max(1, ceil(sum(sizes[node][0] + GAP_X for node in row) / page))
        bands.append([list(row[at : at + deep]) for at in range(0, len(row), deep)])
    return bands


def _across(
    bands: Sequence[Sequence[Sequence[int]]],
    sizes: Sequence[Box],
    below: Sequence[Sequence[int]],
    above: Sequence[Sequence[int]],
    count: int,
) -> list[float]:
    """The middle of each node: columns are placed as single items are."""
    column_of = [0] * count
    halves: list[float] = []
    rows: list[range] = []
    for band in bands:
        rows.append(range(len(halves), len(halves) + len(band)))
        for column in band:
            for node in column:
                column_of[node] = len(halves)
            halves.append(max(sizes[node][0] for node in column) / 2)
    columns = [column for band in bands for column in band]
    up, down = (
        [[(column_of[other], 1.0) for node in column for other in sides[node]] for column in columns]
        for sides in (above, below)
    )
    x = placed(rows, halves, [GAP_X] * len(halves), up, down, 4)
    return [x[column] for column in column_of]


def _down(
    bands: Sequence[Sequence[Sequence[int]]], sizes: Sequence[Box], edges: Sequence[tuple[int, int]], x: Sequence[float]
) -> list[float]:
    """How far down each node stands; between bands there is more room where edges run far across."""
    across = sum(abs(x[upper] - x[lower]) for upper, lower in edges) / max(len(edges), 1)
    gap = max(48.0, min(across * 0.15, 400.0, max(x, default=0.0) / max(len(bands), 1)))
    y = [0.0] * len(sizes)
    top = 0.0
    for band in bands:
        deep = max(len(column) for column in band)
        for line in range(deep):
            here = [column[line] for column in band if len(column) > line]
            height = max(sizes[node][1] for node in here)
            for node in here:
                y[node] = top + height / 2
            top += height + GAP_Y
        top += gap - GAP_Y
    return y
