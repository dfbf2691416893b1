"""How good a schedule can be: the lower bound, and the ideal critical-path schedule, for durations really taken."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from .measure import Stopwatch
from .ours import sleeping
from .shapes import Shape, critical_path

__all__ = ["ideal", "lower_bound", "makespan"]


def lower_bound(shape: Shape, seconds: Sequence[float], workers: int) -> float:
    """No schedule is shorter than the critical path, nor than the work shared out evenly."""
    return max(*critical_path(shape, seconds), sum(seconds) / workers)


def ideal(shape: Shape, seconds: Sequence[float], workers: int) -> float:
    """The makespan of critical path first on as many workers, when scheduling costs nothing."""
    urgency = critical_path(shape, seconds)
    waiting = [0] * len(shape)
    for dependencies in shape:
        for dependency in dependencies:
            waiting[dependency] += 1
    ready = [(-urgency[node], node) for node, count in enumerate(waiting) if not count]
    ready.sort()
    busy: list[tuple[float, int]] = []
    now = 0.0
    while ready or busy:
        while ready and len(busy) < workers:
            _, node = heappop(ready)
            heappush(busy, (now + seconds[node], node))
        now, node = heappop(busy)
        for dependency in shape[node]:
            waiting[dependency] -= 1
            if not waiting[dependency]:
                heappush(ready, (-urgency[dependency], dependency))
    return now


def makespan(shape: Shape, wanted: Sequence[float], workers: int, *, told: bool) -> tuple[float, float, float]:
    """One teardown: what it took on the wall, the lower bound, and the ideal. ``told``: limits rank the resources."""
    graph, sleepers = sleeping(shape, wanted, workers=workers, told=told)
    with Stopwatch() as watch:
        report = graph.teardown()
    assert report.ok
    took = [sleeper.took for sleeper in sleepers]
    return watch.spent.wall, lower_bound(shape, took, workers), ideal(shape, took, workers)
