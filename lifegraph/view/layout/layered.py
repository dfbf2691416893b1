"""The careful layout, for what fits on a page: long edges are led round everything, and crossings are counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from .coordinates import placed
from .crossings import total
from .ordering import first_order, ordered
from .picture import Box, Picture, curved

__all__ = ["layered"]

_NODE_GAP, _EDGE_GAP = 26.0, 12.0
_ROW_GAP = 46.0
_WORK = 24_000  # items times rounds
_TWICE = 1_200  # items for which a second beginning is tried
_STRAIGHT = (1.0, 2.0, 8.0)  # how much an edge pulls: between two nodes, at a bend and a node, between two bends


def layered(sizes: Sequence[Box], edges: Sequence[tuple[int, int]], rank: Sequence[int], bends: int) -> Picture:
    """Places for nodes of these sizes; `edges` lead downwards, and `bends` of their places lie between two rows."""
    chains, ranks = _chains(edges, rank)
    below: list[list[int]] = [[] for _ in ranks]
    above: list[list[int]] = [[] for _ in ranks]
    for chain in chains:
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    rounds = max(5, min(24, _WORK // (len(ranks) + 1)))
    starts = [first_order(ranks, below), first_order(ranks, above, upwards=True)]
    rows = ordered(starts if len(ranks) < _TWICE else starts[:1], below, above, rounds)
    place = [0] * len(ranks)
    for row in rows:
        for at, item in enumerate(row):
            place[item] = at
    count = len(sizes)
    halves = [width / 2 for width, _ in sizes] + [0.0] * bends
    gaps = [_NODE_GAP] * count + [_EDGE_GAP] * bends
    x = placed(rows, halves, gaps, _pulls(above, count), _pulls(below, count), 8)
    tops, bottoms = _heights(rows, sizes)
    left = min((at - half for at, half in zip(x, halves, strict=True)), default=0.0)
    x = [at - left for at in x]
    middles = [(x[node], (tops[ranks[node]] + bottoms[ranks[node]]) / 2) for node in range(count)]
    ways = [curved(list(_points(chain, x, ranks, tops, bottoms, middles, sizes))) for chain in chains]
    width = max((at + half for at, half in zip(x, halves, strict=True)), default=0.0)
    return Picture(width, bottoms[-1] if bottoms else 0.0, middles, ways, rank, total(rows, below, place))


def _chains(edges: Sequence[tuple[int, int]], rank: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Each edge as a chain of items from row to row, and the ranks of all items: nodes first, then bends."""
    ranks = list(rank)
    chains = []
    for upper, lower in edges:
        bends = range(len(ranks), len(ranks) + rank[lower] - rank[upper] - 1)
        ranks += range(rank[upper] + 1, rank[lower])
        chains.append([upper, *bends, lower])
    return chains, ranks


def _pulls(sides: Sequence[Sequence[int]], count: int) -> list[list[tuple[int, float]]]:
    return [[(o, _STRAIGHT[(item >= count) + (o >= count)]) for o in others] for item, others in enumerate(sides)]


def _heights(rows: Sequence[Sequence[int]], sizes: Sequence[Box]) -> tuple[list[float], list[float]]:
    """Where each row begins and ends."""
    tops, bottoms = [], []
    y = 0.0
    for row in rows:
        height = max((sizes[item][1] for item in row if item < len(sizes)), default=0.0)
        tops.append(y)
        bottoms.append(y + height)
        bends = len(row) - sum(item < len(sizes) for item in row)
        y += height + _ROW_GAP + min(40.0, bends)
    return tops, bottoms


def _points(
    chain: Sequence[int],
    x: Sequence[float],
    ranks: Sequence[int],
    tops: Sequence[float],
    bottoms: Sequence[float],
    middles: Sequence[tuple[float, float]],
    sizes: Sequence[Box],
) -> list[tuple[float, float]]:
    """The way of one edge: from its dependent's lower side, straight through each row between, to its dependency."""
    upper, *bends, lower = chain
    points = [(x[upper], middles[upper][1] + sizes[upper][1] / 2)]
    if bottoms[ranks[upper]] > points[0][1]:
        points.append((x[upper], bottoms[ranks[upper]]))
    for bend in bends:
        points.append((x[bend], tops[ranks[bend]]))
        if bottoms[ranks[bend]] > tops[ranks[bend]]:
            points.append((x[bend], bottoms[ranks[bend]]))
    end = (x[lower], middles[lower][1] - sizes[lower][1] / 2)
    if tops[ranks[lower]] < end[1]:
        points.append((x[lower], tops[ranks[lower]]))
    return [*points, end]
