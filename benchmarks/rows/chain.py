"""A chain as long as you like: nothing recurses, and the time grows with the length."""

from __future__ import annotations

import sys
from functools import partial

from ..measure import Row, Scale, Spent, Stopwatch, Tally, growth, interleave, spread
from ..ours import filled
from ..peers import callbacks
from ..shapes import Shape
from ..shapes import chain as chain_of

__all__ = ["measure"]

EXPONENT = 1.1  # linear, with room for caches that no longer fit


def measure(scale: Scale) -> Row:
    """Up to a million, each depending on the one before, at the default recursion limit."""
    row = Row("chain", f"A chain, whole life, recursion limit {sys.getrecursionlimit()}")
    tally: Tally = {}
    for size in scale.sizes(1000, 10_000, 100_000, 1_000_000):
        contest = {"chain": partial(_lived, chain_of(size)), "ExitStack.callback": partial(callbacks, size)}
        found = interleave(contest, scale.rounds(size), warm=size < 1_000_000)
        for name, rounds in found.items():
            tally.setdefault(name, {})[size] = rounds
        row.cpu(f"{size:,} / ExitStack.callback", found["chain"], found["ExitStack.callback"])
    row.figures.append(spread("exponent of growth", [growth(tally["chain"])], EXPONENT))
    row.tally(tally)
    return row


def _lived(shape: Shape) -> Spent:
    with Stopwatch() as watch:
        graph = filled(shape)
        graph.start()
        report = graph.teardown()
    assert report.ok
    return watch.spent
