"""Brisk and sleepy together: no-ops mixed with releases of 1 to 5 ms, which must not wait behind each other."""

from __future__ import annotations

from random import Random

from ..measure import Row, Scale, spread
from ..schedules import makespan
from ..shapes import Shape, layered

__all__ = ["measure"]

IDEAL = 1.03


def measure(scale: Scale) -> Row:
    """Half no-ops, half sleepers: at random, in alternating layers, and all no-ops first."""
    row = Row("mixture", "No-ops mixed with releases of 1-5 ms, makespan over the ideal critical-path schedule")
    size = 100 if scale.quick else 1000
    draw = Random(4)  # noqa: S311 - made-up durations
    naps = [draw.uniform(0.001, 0.005) for _ in range(size)]
    shape = layered(size)
    dags: dict[str, tuple[Shape, list[float]]] = {
        "at random": (shape, [nap if draw.random() < 0.5 else 0.0 for nap in naps]),
        "in alternating layers": (shape, [nap if node * 10 // size % 2 else 0.0 for node, nap in enumerate(naps)]),
        "no-ops first, without edges": (
            [()] * size,
            [0.0 if node < size // 2 else nap for node, nap in enumerate(naps)],
        ),
    }
    for name, (edges, seconds) in dags.items():
        for workers in (8, 64):
            for told in (True, False):
                rounds = [makespan(edges, seconds, workers, told=told) for _ in range(1 if scale.quick else 7)]
                where = f"{name}, {workers} workers{'' if told else ', limits tell nothing'}"
                row.figures.append(spread(where, [took / best for took, _, best in rounds], IDEAL if told else None))
    return row
