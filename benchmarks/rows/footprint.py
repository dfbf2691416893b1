"""Bytes for each resource, with its handle, its name and its outcome."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack

from lifegraph import Graph

from ..measure import Row, Scale, spread
from ..ours import Noop
from ..peers import networkx_graph
from ..shapes import layered

__all__ = ["measure"]

BYTES = 400


def measure(scale: Scale) -> Row:
    """By tracemalloc: while it runs, at the peak of a teardown, and afterwards with the report."""
    row = Row("footprint", "Bytes for each resource, with handle, name and outcome")
    for size in scale.sizes(1000, 10_000, 100_000):
        for edges in (0, 3):
            up, peak, after = _ours(size, edges)
            what = f"{size:,}, {edges or 'no'} edges each, "
            row.figures.append(spread(what + "running", [up / size], BYTES))
            row.figures.append(spread(what + "closed, with its report", [after / size], BYTES))
            row.figures.append(spread(what + "at the peak of the teardown", [peak / size]))
        row.context.append(
            f"{size:,}: ExitStack.callback {_traced(lambda: _pushed(size)) / size:.0f}, "  # noqa: B023 - called at once
            f"networkx with three edges {_traced(lambda: networkx_graph(layered(size))) / size:.0f}"  # noqa: B023 - the same
        )
    return row


def _ours(size: int, edges: int) -> tuple[int, int, int]:
    things = [Noop() for _ in range(size)]
    needs = [[things[d] for d in row] for row in layered(size)] if edges else [[] for _ in things]
    gc.collect()
    tracemalloc.start()
    try:
        graph = Graph(workers=8)
        for number, (thing, used) in enumerate(zip(things, needs, strict=True)):
            graph.add(thing, name=f"resource {number}", depends_on=used)
        graph.start()
        gc.collect()
        up, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        report = graph.teardown()
        _, peak = tracemalloc.get_traced_memory()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        assert report.ok
        return up, peak, after
    finally:
        tracemalloc.stop()


def _traced(make: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        kept = make()
        gc.collect()
        found, _ = tracemalloc.get_traced_memory()
        del kept
        return found
    finally:
        tracemalloc.stop()


def _pushed(size: int) -> ExitStack:
    stack = ExitStack()
    for _ in range(size):
        stack.callback(print)
    return stack
