"""Ten resources: what a teardown costs a small program, the first time and later."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Final

from ..children import answer
from ..measure import Row, Scale, Spent, Stopwatch, interleave, spread
from ..ours import running
from ..peers import class_managers
from ..shapes import layered

__all__ = ["measure"]

WARM, COLD = 167, 625  # times one class context manager among 1,000: 80 and 300 us where that takes 0.48
UNIT = 1000
REPEATS = 50

_CHILD: Final = """
from time import perf_counter
from benchmarks.ours import running
from benchmarks.shapes import layered
graph = running(layered(10, 5, 2))
began = perf_counter()
report = graph.teardown()
took = perf_counter() - began
assert report.ok
from benchmarks.peers import class_managers
class_managers(1000)
units = sorted(class_managers(1000).wall / 1000 for _ in range(9))
print(took, units[4])
"""


def measure(scale: Scale) -> Row:
    """Warm in this process, cold in fresh ones."""
    row = Row("ten", "Ten resources, whole teardown")
    found = interleave({"warm": _warm, "unit": partial(class_managers, UNIT)}, scale.rounds())
    warm, units = [spent.wall for spent in found["warm"]], [spent.wall / UNIT for spent in found["unit"]]
    row.ratio("warm / one class context manager", warm, units, WARM)
    answer(_CHILD)  # writes the byte code
    cold = [tuple(map(float, answer(_CHILD).split())) for _ in range(3 if scale.quick else 25)]
    row.figures.append(
        spread("cold, in a fresh process / one class context manager", [took / unit for took, unit in cold], COLD)
    )
    row.context.append(
        f"warm {1e6 * median(warm):.0f} us, cold {1e6 * median(took for took, _ in cold):.0f} us of wall"
    )
    return row


def _warm() -> Spent:
    """The median of many; graphs are made before, out of the time."""
    taken = []
    for _ in range(REPEATS):
        graph = running(layered(10, 5, 2))
        with Stopwatch() as watch:
            report = graph.teardown()
        assert report.ok
        taken.append(watch.spent)
    return Spent(median(spent.wall for spent in taken), median(spent.cpu for spent in taken))
