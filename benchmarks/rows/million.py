"""Planning, and planning and running, up to a million resources with three edges each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lifegraph import Graph

from ..measure import Contestant, Row, Scale, Spent, Stopwatch, Tally, interleave
from ..ours import running
from ..peers import graphlib_drain, graphlib_plan, kahn, networkx_sort, rustworkx_sort
from ..shapes import Shape, layered

__all__ = ["measure"]

PLAN, RUN = 0.1, 0.4  # times graphlib at the largest size


def measure(scale: Scale) -> Row:
    """Ours against `graphlib`, with networkx and rustworkx beside them."""
    row = Row("million", "Plan, and plan and run, three edges for each resource")
    sizes = scale.sizes(1000, 10_000, 100_000, 1_000_000)
    tally: Tally = {}
    for size in sizes:
        shape = layered(size)
        contest: dict[str, Contestant] = {
            "plan": partial(_ours, shape, _plan),
            "plan and run": partial(_ours, shape, _run),
            "graphlib, plan": lambda shape=shape: graphlib_plan(shape)[0],  # type: ignore[misc]  # bound at once
            "graphlib, plan and drain": partial(graphlib_drain, shape),
            "networkx, build and sort": partial(networkx_sort, shape),
            "floor, Kahn on flat lists": partial(kahn, shape),
        }
        if size < 1_000_000:
            contest["plan with its order"] = partial(_ours, shape, _order)
        if (rustworkx := rustworkx_sort(shape)) is not None:
            contest["rustworkx, build and sort"] = rustworkx
        found = interleave(contest, scale.rounds(size), warm=size < 1_000_000)
        for name, rounds in found.items():
            tally.setdefault(name, {})[size] = rounds
        for ours, theirs, target in (
            ("plan", "graphlib, plan", PLAN),
            ("plan with its order", "graphlib, plan", None),
            ("plan and run", "graphlib, plan and drain", RUN),
        ):
            if ours in found:
                row.cpu(
                    f"{ours}, {size:,} / {theirs}", found[ours], found[theirs], target if size == sizes[-1] else None
                )
    if "rustworkx, build and sort" not in tally:
        row.context.append("rustworkx: skipped, not installed")
    row.tally(tally)
    return row


def _ours(shape: Shape, act: Callable[[Graph], object]) -> Spent:
    graph = running(shape)
    with Stopwatch() as watch:
        act(graph)
    if graph.state != "closed":
        graph.teardown()
    return watch.spent


def _plan(graph: Graph) -> None:
    graph.plan()


def _order(graph: Graph) -> None:
    assert graph.plan().order


def _run(graph: Graph) -> None:
    graph.plan()
    assert graph.teardown().ok
