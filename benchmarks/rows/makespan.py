"""Makespan over the lower bound: 1,000 releases of 1 to 20 ms on three DAGs."""

from __future__ import annotations

from ..measure import Row, Scale, spread
from ..schedules import makespan
from ..shapes import chain_and_fan, layered, skewed, uniform

__all__ = ["measure"]

BOUND, IDEAL = 1.02, 1.03


def measure(scale: Scale) -> Row:
    """With limits that tell how long each takes, and without."""
    row = Row(
        "makespan", "Makespan of 1,000 releases of 1-20 ms over the lower bound max(critical path, work / workers)"
    )
    small = scale.quick
    dags = {
        "layered 10x100": (layered(50 if small else 1000), uniform(50 if small else 1000)),
        "chain 100 + fan 900": (chain_and_fan(5, 45) if small else chain_and_fan(), uniform(50 if small else 1000)),
        "layered 10x100, skewed durations": (layered(50 if small else 1000), skewed(50 if small else 1000)),
    }
    for name, (shape, seconds) in dags.items():
        for workers in (8, 32, 64):
            for told in (True, False):
                rounds = [makespan(shape, seconds, workers, told=told) for _ in range(1 if small else 5)]
                where = f"{name}, {workers} workers{'' if told else ', limits tell nothing'}"
                row.figures.append(spread(f"{where} / lower bound",
                    [took / bound for took, bound, _ in rounds], BOUND if told else None))  # fmt: skip
                row.figures.append(spread(f"{where} / ideal critical-path schedule",
                    [took / best for took, _, best in rounds], IDEAL if told else None))  # fmt: skip
    return row
