"""Graphs of lifegraph to measure: made outside of the time, unless making them is what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter, sleep

from lifegraph import Graph, resource

from .shapes import Shape

__all__ = ["Adopted", "Noop", "Sleeper", "filled", "running", "sleeping"]


@resource
class Noop:
    """A resource whose release does nothing."""

    __slots__ = ("__weakref__",)

    def close(self) -> None:
        """Nothing."""


class Adopted:
    """The same, undescribed: the graph is told how to stop it."""

    __slots__ = ("__weakref__",)

    def close(self) -> None:
        """Nothing."""


@resource
class Sleeper:
    """A resource whose release takes so long, and notes how long it really took."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.took = 0.0

    def close(self) -> None:
        """Sleep, unless there is nothing to sleep."""
        began = perf_counter()
        if self.seconds:
            sleep(self.seconds)
        self.took = perf_counter() - began


def filled(shape: Shape, *, workers: int = 8) -> Graph:
    """A graph of no-ops with these edges, not started."""
    graph = Graph(workers=workers)
    things = [Noop() for _ in shape]
    for thing, dependencies in zip(things, shape, strict=True):
        if dependencies:
            graph.add(thing, depends_on=[things[d] for d in dependencies])
        else:
            graph.add(thing)
    return graph


def running(shape: Shape, *, workers: int = 8) -> Graph:
    """The same, started."""
    graph = filled(shape, workers=workers)
    graph.start()
    return graph


def sleeping(shape: Shape, seconds: Sequence[float], *, workers: int, told: bool) -> tuple[Graph, list[Sleeper]]:
    """A started graph of sleepers. ``told``: each has a limit in proportion to its time, which ranks it."""
    graph = Graph(workers=workers)
    sleepers = [Sleeper(each) for each in seconds]
    for sleeper, dependencies in zip(sleepers, shape, strict=True):
        needs = [sleepers[d] for d in dependencies]
        if told:
            graph.add(sleeper, depends_on=needs, stop_timeout=max(1.0, 1000 * sleeper.seconds))
        else:
            graph.add(sleeper, depends_on=needs)
    graph.start()
    return graph, sleepers
