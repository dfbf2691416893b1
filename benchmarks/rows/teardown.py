"""Teardown alone, of layered resources that do nothing; with few workers and with many."""

from __future__ import annotations

from functools import partial

from ..measure import Contestant, Row, Scale, Spent, Stopwatch, Tally, interleave
from ..ours import running
from ..peers import class_managers, kahn
from ..shapes import Shape, layered

__all__ = ["measure"]

PER_RESOURCE = 3.1  # times one class context manager among 1,000: 1.5 us where that takes 0.48
MANY_WORKERS = 1.4  # times the same with one worker
UNIT = 1000


def measure(scale: Scale) -> Row:
    """CPU for each resource, in units of one context manager; 64 workers against one."""
    row = Row("teardown", "Teardown alone, no-ops in ten layers")
    tally: Tally = {}
    for size in scale.sizes(1000, 10_000, 100_000):
        shape = layered(size)
        contest: dict[str, Contestant] = {
            f"{workers} worker{'s' * (workers > 1)}": partial(_torn_down, shape, workers) for workers in (1, 8, 64)
        }
        contest["unit"] = partial(class_managers, UNIT)
        contest["floor, Kahn on flat lists"] = partial(kahn, shape)
        found = interleave(contest, scale.rounds(size))
        units = [spent.cpu / UNIT for spent in found.pop("unit")]
        row.ratio(f"8 workers, {size:,}, CPU / one class context manager",
            [spent.cpu / size for spent in found["8 workers"]], units, PER_RESOURCE)  # fmt: skip
        for clock, name in ((0, "wall"), (1, "CPU")):
            row.ratio(f"64 workers / 1 worker, {size:,}, {name}",
                [spent[clock] for spent in found["64 workers"]], [spent[clock] for spent in found["1 worker"]],
                MANY_WORKERS)  # fmt: skip
        for name, rounds in found.items():
            tally.setdefault(name, {})[size] = rounds
    row.tally(tally)
    return row


def _torn_down(shape: Shape, workers: int) -> Spent:
    graph = running(shape, workers=workers)
    with Stopwatch() as watch:
        report = graph.teardown()
    assert report.ok
    return watch.spent
