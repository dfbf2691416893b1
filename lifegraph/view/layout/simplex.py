"""Ranks under which the edges of a drawing are as short as can be, altogether: a network simplex.

After E. R. Gansner et al., A technique for drawing directed graphs (1993). A cut value needs no update here: what leaves
the part of the tree below an edge, less what enters it, is the sum of `out - in` over its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["shortened"]

_Edge = tuple[int, int]


def shortened(rank: Sequence[int], edges: Sequence[_Edge], pivots: int) -> list[int]:
    """Better ranks than these (which must be feasible), after at most so many exchanges."""
    found = list(rank)
    touching: list[list[_Edge]] = [[] for _ in found]
    for edge in edges:
        touching[edge[0]].append(edge)
        touching[edge[1]].append(edge)
    tree = _tight(found, touching)
    surplus = [sum(1 if edge[0] == node else -1 for edge in mine) for node, mine in enumerate(touching)]
    for _ in range(pivots):
        if not _pivoted(found, edges, tree, surplus):
            break
    lowest = min(found, default=0)
    return [value - lowest for value in found]


def _tight(rank: list[int], touching: Sequence[Sequence[_Edge]]) -> set[_Edge]:
    """A tree of edges of length one over each connected part; ranks move until there is one."""
    tree: set[_Edge] = set()
    done: set[int] = set()
    for start in range(len(rank)):
        part, fresh = set[int](), [start] if start not in done else []
        while fresh:
            for node in fresh:  # grows while it is read
                part.add(node)
                for edge in touching[node]:
                    other = edge[1] if edge[0] == node else edge[0]
                    if other not in part and rank[edge[1]] - rank[edge[0]] == 1:
                        part.add(other)
                        fresh.append(other)
                        tree.add(edge)
            out = [edge for node in part for edge in touching[node] if (edge[0] in part) != (edge[1] in part)]
            fresh = []
            if out:
                nearest = min(out, key=lambda edge: (rank[edge[1]] - rank[edge[0]], edge))
                slack = rank[nearest[1]] - rank[nearest[0]] - 1
                for node in part:
                    rank[node] += slack if nearest[0] in part else -slack
                fresh = sorted(part)
        done |= part
    return tree


def _pivoted(rank: list[int], edges: Sequence[_Edge], tree: set[_Edge], surplus: Sequence[int]) -> bool:
    """One exchange: the worst edge leaves the tree, the tightest that closes the gap comes in."""
    order, parent = _hung(tree, len(rank))
    sums = list(surplus)
    worst, leaving, below = 0, None, -1
    for node in reversed(order):
        edge = parent[node]
        if edge is None:
            continue
        cut = sums[node] if edge[0] == node else -sums[node]
        sums[edge[0] + edge[1] - node] += sums[node]
        if cut < worst:
            worst, leaving, below = cut, edge, node
    if leaving is None:
        return False
    part = _part(order, parent, below)
    down = leaving[0] != below  # the part below hangs at the edge's head, and moves further down
    crossing = [edge for edge in edges if part[edge[0]] != part[edge[1]] and bool(part[edge[0]]) == down]
    entering = min(crossing, key=lambda edge: rank[edge[1]] - rank[edge[0]])
    slack = rank[entering[1]] - rank[entering[0]] - 1
    for node in order:
        if part[node]:
            rank[node] += slack if down else -slack
    tree.remove(leaving)
    tree.add(entering)
    return True


def _hung(tree: set[_Edge], count: int) -> tuple[list[int], list[_Edge | None]]:
    """All nodes, parents first, and for each the edge to its parent."""
    near: list[list[_Edge]] = [[] for _ in range(count)]
    for edge in sorted(tree):
        near[edge[0]].append(edge)
        near[edge[1]].append(edge)
    parent: list[_Edge | None] = [None] * count
    seen = bytearray(count)
    order: list[int] = []
    for start in range(count):
        fresh = [] if seen[start] else [start]
        seen[start] = 1
        for node in fresh:  # grows while it is read
            for edge in near[node]:
                other = edge[0] + edge[1] - node
                if not seen[other]:
                    seen[other] = 1
                    parent[other] = edge
                    fresh.append(other)
        order += fresh
    return order, parent


def _part(order: Sequence[int], parent: Sequence[_Edge | None], root: int) -> bytearray:
    part = bytearray(len(parent))
    part[root] = 1
    for node in order:
        edge = parent[node]
        if edge is not None and not part[node]:
            part[node] = part[edge[0] + edge[1] - node]
    return part
