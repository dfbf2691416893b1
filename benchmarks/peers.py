"""What ours is compared with: the standard library, networkx, rustworkx where it is installed, and a floor."""

from __future__ import annotations

import graphlib
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

import networkx as nx

from .measure import Contestant, Spent, Stopwatch
from .shapes import Shape

__all__ = ["callbacks", "class_managers", "graphlib_drain", "graphlib_plan", "kahn", "networkx_sort", "rustworkx_sort"]


class _Manager:
    """A context manager that does nothing."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def close(self) -> None:
        """Nothing."""


def class_managers(size: int) -> Spent:
    """`ExitStack`: enter as many context managers (classes), and close."""
    managers = [_Manager() for _ in range(size)]
    with Stopwatch() as watch, ExitStack() as stack:
        for manager in managers:
            stack.enter_context(manager)
    return watch.spent


def callbacks(size: int) -> Spent:
    """`ExitStack.callback`: push as many bound methods, and close."""
    managers = [_Manager() for _ in range(size)]
    with Stopwatch() as watch, ExitStack() as stack:
        for manager in managers:
            stack.callback(manager.close)
    return watch.spent


def graphlib_plan(shape: Shape) -> tuple[Spent, graphlib.TopologicalSorter[int]]:
    """`graphlib`: build a sorter from the edges, and prepare it."""
    with Stopwatch() as watch:
        sorter = graphlib.TopologicalSorter[int]()
        for node, dependencies in enumerate(shape):
            sorter.add(node, *dependencies)
        sorter.prepare()
    return watch.spent, sorter


def graphlib_drain(shape: Shape) -> Spent:
    """`graphlib`: plan, and take everything out as it gets ready."""
    planned, sorter = graphlib_plan(shape)
    with Stopwatch() as watch:
        while sorter.is_active():
            for node in sorter.get_ready():
                sorter.done(node)
    return Spent(planned.wall + watch.spent.wall, planned.cpu + watch.spent.cpu)


def networkx_graph(shape: Shape) -> Any:
    """The same edges in `networkx`."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(shape)))
    graph.add_edges_from((node, d) for node, dependencies in enumerate(shape) for d in dependencies)
    return graph


def networkx_sort(shape: Shape) -> Spent:
    """`networkx`: build, and sort."""
    with Stopwatch() as watch:
        list(nx.topological_sort(networkx_graph(shape)))
    return watch.spent


def rustworkx_sort(shape: Shape) -> Contestant | None:
    """`rustworkx`: build, and sort; None where it is not installed."""
    if find_spec("rustworkx") is None:
        return None
    import rustworkx  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - optional

    def sort() -> Spent:
        with Stopwatch() as watch:
            graph = rustworkx.PyDiGraph()
            graph.add_nodes_from(range(len(shape)))
            graph.add_edges_from_no_data([(node, d) for node, dependencies in enumerate(shape) for d in dependencies])
            rustworkx.topological_sort(graph)
        return watch.spent

    return sort


def kahn(shape: Shape) -> Spent:
    """The floor: count dependents in a flat list, and walk along the tuples."""
    with Stopwatch() as watch:
        waiting = [0] * len(shape)
        for dependencies in shape:
            for dependency in dependencies:
                waiting[dependency] += 1
        ready = [node for node, count in enumerate(waiting) if not count]
        while ready:
            for dependency in shape[ready.pop()]:
                waiting[dependency] -= 1
                if not waiting[dependency]:
                    ready.append(dependency)
    return watch.spent


def of_size(size: int) -> dict[str, Contestant]:
    """The peers that release one thing after another."""
    return {"ExitStack, class": partial(class_managers, size), "ExitStack.callback": partial(callbacks, size)}
