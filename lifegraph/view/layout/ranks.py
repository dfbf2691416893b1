"""The first step of a layered drawing: for each node the row it stands in, every edge leading downwards."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ranked"]

_ROUNDS = 4


def ranked(below: Sequence[Sequence[int]], above: Sequence[Sequence[int]]) -> list[int]:
    """The rank of each node of a graph without cycles; edges lead from lower to higher ranks and are kept short.

    Longest paths first, then each node moves within its bounds to where more of its edges lead: what a network simplex
    would find, nearly, in linear time.
    """
    order, rank = _longest(below, above)
    for _ in range(_ROUNDS):
        if not (_tightened(order[::-1], rank, below, above) + _tightened(order, rank, below, above)):
            break
    lowest = min(rank, default=0)
    return [value - lowest for value in rank]


def _longest(below: Sequence[Sequence[int]], above: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    waits = [len(tails) for tails in above]
    order = [node for node, count in enumerate(waits) if not count]
    rank = [0] * len(below)
    for node in order:  # grows while it is read
        under = rank[node] + 1
        for head in below[node]:
            rank[head] = max(rank[head], under)
            waits[head] -= 1
            if not waits[head]:
                order.append(head)
    return order, rank


def _tightened(
    order: Sequence[int],
    rank: list[int],
    below: Sequence[Sequence[int]],
    above: Sequence[Sequence[int]],
) -> int:
    """How many nodes moved, each as far as its edges allow towards the side with more of them."""
    moved = 0
    row = rank.__getitem__
    for node in order:
        heads, tails = below[node], above[node]
        if len(heads) > len(tails):
            best = min(map(row, heads)) - 1
        elif len(tails) > len(heads):
            best = max(map(row, tails)) + 1
        else:
            continue
        if best != rank[node]:
            rank[node] = best
            moved += 1
    return moved
