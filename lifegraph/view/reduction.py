"""Which edges of a graph say nothing that longer paths do not say."""

from __future__ import annotations

from collections.abc import Sequence

from .cycles import peeled

__all__ = ["implied"]

_BITS = 1 << 29  # bits of reachability held at once: 64 MiB


def implied(below: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """The edges `(a, b)` for which another path leads from `a` to `b`; `below[a]` are the heads of a's edges.

    Without them the graph reaches exactly what it reached, and no further edge can go. Edges on a cycle, or above one,
    are never implied: there the answer would not be unique.

    Reachability is one integer a node, a bit for each node that an implied edge could lead to (entered twice, from a
    node with two ways out), and in several passes where that would be too much memory. A chain costs one look.
    """
    targets = _targets(below)
    found: set[tuple[int, int]] = set()
    if not targets:
        return found
    order = _bottom_up(below)
    block = max(256, _BITS // len(below))
    for start in range(0, len(targets), block):
        _one_pass(below, order, targets[start : start + block], found)
    return found


def _targets(below: Sequence[Sequence[int]]) -> list[int]:
    entered = [0] * len(below)
    forked = bytearray(len(below))
    for heads in below:
        for head in heads:
            entered[head] += 1
            forked[head] |= len(heads) > 1
    return [node for node, count in enumerate(entered) if count > 1 and forked[node]]


def _one_pass(
    below: Sequence[Sequence[int]], order: Sequence[int], targets: Sequence[int], found: set[tuple[int, int]]
) -> None:
    bit = {node: 1 << place for place, node in enumerate(targets)}
    reached = [0] * len(below)
    for node in order:
        further = direct = 0
        for head in below[node]:
            further |= reached[head]
        for head in below[node]:
            mine = bit.get(head, 0)
            direct |= mine
            if further & mine:
                found.add((node, head))
        reached[node] = further | direct


def _bottom_up(below: Sequence[Sequence[int]]) -> list[int]:
    """Every node after all it leads to; nodes on a cycle, or above one, are left out."""
    above: list[list[int]] = [[] for _ in below]
    for node, heads in enumerate(below):
        for head in heads:
            above[head].append(node)
    return peeled(above)
