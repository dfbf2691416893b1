"""What a layout is: places of nodes and ways of edges, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Box", "Picture", "Way", "curved"]

Box = tuple[float, float]  # width and height
Way = tuple[float, ...]  # x, y of the beginning; then for each cubic curve two control points and its end


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes by their middles, edges as curves from the dependent's lower side to the dependency's upper one."""

    width: float
    height: float
    middles: Sequence[tuple[float, float]]
    ways: Sequence[Way]
    rows: Sequence[int]  # for each node the row it stands in, counted from the top
    crossings: int | None = None  # of a layered drawing in which they were counted


def curved(points: Sequence[tuple[float, float]]) -> Way:
    """A curve through these points that leaves and enters each of them vertically."""
    (x, y), *rest = points
    way = [x, y]
    for to_x, to_y in rest:
        half = (y + to_y) / 2
        way += (x, half, to_x, half, to_x, to_y)
        x, y = to_x, to_y
    return tuple(way)
