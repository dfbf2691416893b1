"""What if one of them fails: the forecast, against the descendants of one node in networkx."""

from __future__ import annotations

import networkx as nx

from ..measure import Row, Scale, Spent, Stopwatch, Tally, interleave
from ..ours import filled
from ..peers import networkx_graph
from ..shapes import layered

__all__ = ["measure"]

DESCENDANTS = 0.3


def measure(scale: Scale) -> Row:
    """Both graphs stand already; the failing resource is the last, which reaches a great part of them."""
    row = Row("forecast", "what_if of one failing resource")
    sizes = scale.sizes(1000, 10_000, 100_000, 1_000_000)
    tally: Tally = {}
    for size in sizes:
        shape = layered(size, layers=100, edges=3)
        graph, theirs = filled(shape), networkx_graph(shape)
        *_, last = graph

        def forecast() -> Spent:
            with Stopwatch() as watch:
                report = graph.what_if(fail=[last])  # noqa: B023 - called within the loop
            assert not report.ok
            return watch.spent

        def descendants() -> Spent:
            with Stopwatch() as watch:
                nx.descendants(theirs, size - 1)  # noqa: B023 - the same
            return watch.spent

        found = interleave({"what_if": forecast, "networkx.descendants": descendants}, scale.rounds(size))
        for name, rounds in found.items():
            tally.setdefault(name, {})[size] = rounds
        row.cpu(
            f"{size:,} / networkx.descendants",
            found["what_if"],
            found["networkx.descendants"],
            DESCENDANTS if size == sizes[-1] else None,
        )
        graph.teardown()
    row.tally(tally)
    return row
