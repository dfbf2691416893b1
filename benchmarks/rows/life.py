"""A whole life: register, start and tear down resources that do nothing, with names and the report."""

from __future__ import annotations

from functools import partial

from lifegraph import Graph

from ..measure import Contestant, Row, Scale, Spent, Stopwatch, Tally, interleave
from ..ours import Adopted, Noop
from ..peers import kahn, of_size
from ..shapes import Shape, layered

__all__ = ["measure"]

CALLBACK, CLASS = 0.8, 4.5  # times ExitStack.callback at the largest size, and ExitStack with classes at 1,000


def measure(scale: Scale) -> Row:
    """Ours against both kinds of `ExitStack`."""
    row = Row("life", "Register, start and tear down no-op resources, named, report read")
    sizes = scale.sizes(1000, 10_000, 100_000)
    tally: Tally = {}
    for size in sizes:
        shape = layered(size)
        contest: dict[str, Contestant] = {
            **of_size(size),
            "described": partial(_described, size),
            "adopted": partial(_adopted, size),
            "three edges each": partial(_with_edges, shape),
            "floor, Kahn on flat lists": partial(kahn, shape),
        }
        for name, rounds in interleave(contest, scale.rounds(size)).items():
            tally.setdefault(name, {})[size] = rounds
    for ours in ("described", "adopted", "three edges each"):
        for size in sizes:
            for theirs, target, at in (("ExitStack.callback", CALLBACK, sizes[-1]), ("ExitStack, class", CLASS, 1000)):
                row.cpu(
                    f"{ours}, {size:,} / {theirs}",
                    tally[ours][size],
                    tally[theirs][size],
                    target if size == at and ours == "described" else None,
                )
    row.tally(tally)
    return row


def _described(size: int) -> Spent:
    things, names = [Noop() for _ in range(size)], _names(size)
    with Stopwatch() as watch:
        graph = Graph(workers=8)
        for thing, name in zip(things, names, strict=True):
            graph.add(thing, name=name)
        _down(graph)
    return watch.spent


def _adopted(size: int) -> Spent:
    things, names = [Adopted() for _ in range(size)], _names(size)
    with Stopwatch() as watch:
        graph = Graph(workers=8)
        for thing, name in zip(things, names, strict=True):
            graph.add(thing, name=name, stop="close")
        _down(graph)
    return watch.spent


def _with_edges(shape: Shape) -> Spent:
    things, names = [Noop() for _ in shape], _names(len(shape))
    needs = [[things[d] for d in dependencies] for dependencies in shape]
    with Stopwatch() as watch:
        graph = Graph(workers=8)
        for thing, name, used in zip(things, names, needs, strict=True):
            graph.add(thing, name=name, depends_on=used)
        _down(graph)
    return watch.spent


def _down(graph: Graph) -> None:
    graph.start()
    report = graph.teardown()
    assert report.ok
    assert len(report.fates) == len(graph)


def _names(size: int) -> list[str]:
    return [f"resource {number}" for number in range(size)]
