"""Where everything stands in a picture: layers from dependents down to dependencies, with few crossings.

`arranged` chooses: Graphviz for what is small, where it is installed; a careful layout of our own for what fits on a
page; a quick one for thousands. Nodes without any edge stand in lines below the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from .broad import GAP_X, GAP_Y, broad, page_width
from .graphviz import by_dot
from .layered import layered
from .picture import Box, Picture, Way
from .ranks import ranked
from .simplex import shortened

__all__ = ["Box", "Engine", "Picture", "Way", "arranged"]

Engine = Literal["auto", "dot", "layered", "broad"]

_DOT = 120  # nodes for which Graphviz is asked
_SIMPLEX = 600  # nodes for which the shortest edges are worth their time
_ITEMS = 7000  # nodes and bends that the careful layout takes
_WIDEST = 3.0  # times the width aimed at, beyond which a row must be folded
_ALWAYS = 3600.0  # a width that is never too much


def arranged(
    sizes: Sequence[Box], edges: Sequence[tuple[int, int]], turned: frozenset[tuple[int, int]] = frozenset(),
    engine: Engine = "auto",
) -> Picture:  # fmt: skip
    """Places for nodes of these sizes and ways for these edges, which are no pair twice and no loops.

    Without the edges in `turned` there must be no cycle: those lead upwards. `engine` says which layout it shall be.
    """
    touched = bytearray(len(sizes))
    for upper, lower in edges:
        touched[upper] = touched[lower] = 1
    inner = [node for node in range(len(sizes)) if touched[node]]
    place = {node: at for at, node in enumerate(inner)}
    straight = [(place[a], place[b]) if (a, b) not in turned else (place[b], place[a]) for a, b in edges]
    picture = _connected([sizes[node] for node in inner], straight, engine)
    if turned:
        ways = [_reversed(w) if e in turned else w for w, e in zip(picture.ways, edges, strict=True)]
        picture = Picture(picture.width, picture.height, picture.middles, ways, picture.rows, picture.crossings)
    return picture if len(inner) == len(sizes) else _with_lone(picture, sizes, inner)


def _connected(sizes: Sequence[Box], edges: Sequence[tuple[int, int]], engine: Engine) -> Picture:
    if engine == "dot" or (engine == "auto" and 0 < len(sizes) <= _DOT and len(edges) <= 3 * _DOT):
        found = by_dot(sizes, edges)
        if found is not None:
            return found
    below: list[list[int]] = [[] for _ in sizes]
    above: list[list[int]] = [[] for _ in sizes]
    for upper, lower in edges:
        below[upper].append(lower)
        above[lower].append(upper)
    rank = ranked(below, above)
    if len(sizes) <= _SIMPLEX:
        rank = shortened(rank, edges, 2 * len(sizes))
    bends = sum(rank[lower] - rank[upper] - 1 for upper, lower in edges)
    wide = engine == "broad" or (
        engine == "auto" and (len(sizes) + bends > _ITEMS or _widest(sizes, rank) > _limit(sizes))
    )
    return broad(sizes, edges, rank, below, above) if wide else layered(sizes, edges, rank, bends)


def _limit(sizes: Sequence[Box]) -> float:
    return max(_ALWAYS, _WIDEST * page_width(sizes))


def _widest(sizes: Sequence[Box], rank: Sequence[int]) -> float:
    widths = [0.0] * (max(rank, default=-1) + 1)
    for (width, _), row in zip(sizes, rank, strict=True):
        widths[row] += width + GAP_X
    return max(widths, default=0.0)


def _reversed(way: Way) -> Way:
    return tuple(value for at in range(len(way) - 2, -1, -2) for value in way[at : at + 2])


def _with_lone(picture: Picture, sizes: Sequence[Box], inner: Sequence[int]) -> Picture:
    """Nodes without edges, in declared order, in lines below the picture."""
    middles = [(0.0, 0.0)] * len(sizes)
    rows = [0] * len(sizes)
    for at, node in enumerate(inner):
        middles[node], rows[node] = picture.middles[at], picture.rows[at]
    lone = sorted(set(range(len(sizes))) - set(inner))
    page = max(picture.width, page_width([sizes[node] for node in lone]))
    x, y, line = 0.0, picture.height + (2 * GAP_Y if inner else 0.0), max(picture.rows, default=-1) + 1
    tallest = max(sizes[node][1] for node in lone)
    right = picture.width
    for node in lone:
        width, _ = sizes[node]
        if x and x + width > page:
            x, y, line = 0.0, y + tallest + GAP_Y, line + 1
        middles[node], rows[node] = (x + width / 2, y + tallest / 2), line
        right = max(right, x + width)
        x += width + GAP_X
    return Picture(right, y + tallest, middles, picture.ways, rows, picture.crossings)
