"""Paths and cycles among dependencies. The only room that knows networkx."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

__all__ = ["Rows", "cycles", "path"]

Rows = Sequence[tuple[int, ...]]


def path(uses: Rows, orders: Rows, source: int, goal: int) -> list[int]:
    """A shortest path over dependencies from ``source`` to ``goal``, both included; empty when there is none."""
    came: dict[int, int] = {source: source}
    work = deque([source])
    while work:
        node = work.popleft()
        if node == goal:
            found = [node]
            while found[-1] != source:
                found.append(came[found[-1]])
            return found[::-1]
        for dependency in (*uses[node], *orders[node]):
            if dependency not in came:
                came[dependency] = node
                work.append(dependency)
    return []


def cycles(uses: Rows, orders: Rows) -> list[list[int]]:
    """One cycle from each knot of members that wait for each other; found cheaply when there is none."""
    waiting = [0] * len(uses)
    for rows in (uses, orders):
        for row in rows:
            for dependency in row:
                waiting[dependency] += 1
    free = [node for node, count in enumerate(waiting) if not count]
    settled = 0
    while free:
        node = free.pop()
        settled += 1
        for dependency in (*uses[node], *orders[node]):
            waiting[dependency] -= 1
            if not waiting[dependency]:
                free.append(dependency)
    return [] if settled == len(uses) else _knots(lambda node: (*uses[node], *orders[node]), waiting)


def _knots(dependencies: Callable[[int], tuple[int, ...]], waiting: Sequence[int]) -> list[list[int]]:
    import networkx as nx  # noqa: PLC0415 - slow to import, and needed here only

    tangle = nx.DiGraph()
    for node, count in enumerate(waiting):
        if count:
            tangle.add_edges_from((node, d) for d in dependencies(node) if waiting[d])
    knots = [
        knot for knot in nx.strongly_connected_components(tangle) if len(knot) > 1 or tangle.has_edge(*[*knot] * 2)
    ]
    return [[edge[0] for edge in nx.find_cycle(tangle.subgraph(knot), min(knot))] for knot in sorted(knots, key=min)]
