"""Clocks, interleaving, ratios round by round, and growth."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, process_time
from types import TracebackType
from typing import Final, NamedTuple, Self

__all__ = ["Figure", "Row", "Scale", "Spent", "Stopwatch", "Tally", "growth", "interleave", "spread"]


class Spent(NamedTuple):
    """Seconds on the wall, and seconds of CPU over all threads of the process."""

    wall: float
    cpu: float


class Stopwatch:
    """Measures the body of a ``with``; afterwards ``spent`` says what it took."""

    def __enter__(self) -> Self:
        self._cpu, self._wall = process_time(), perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.spent = Spent(perf_counter() - self._wall, process_time() - self._cpu)


Contestant = Callable[[], Spent]


@dataclass(frozen=True)
class Scale:
    """How large and how often. ``quick`` only proves that everything runs; its figures say little."""

    quick: bool = False

    def sizes(self, *wanted: int) -> tuple[int, ...]:
        """The sizes to measure at: all of those wanted, or two small ones."""
        return (100, 1000) if self.quick else wanted

    def rounds(self, size: int = 1000) -> int:
        """How many rounds at this size; each measures every contestant twice."""
        if self.quick:
            return 1
        return 9 if size <= 10_000 else 3 if size <= 100_000 else 1


@dataclass(frozen=True)
class Figure:
    """One finding, mostly a ratio: its median over the rounds, the lowest and the highest of them, and its target."""

    what: str
    value: float
    low: float
    high: float
    target: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is reached, by the median; None where there is none."""
        return None if self.target is None else self.value <= self.target


@dataclass
class Row:
    """What one benchmark found. ``context`` holds absolute figures, which say something of one machine only."""

    name: str
    title: str
    figures: list[Figure] = field(default_factory=list)
    context: list[str] = field(default_factory=list)

    def ratio(self, what: str, ours: Sequence[float], theirs: Sequence[float], target: float | None = None) -> None:
        """Add ours / theirs, round by round."""
        self.figures.append(spread(what, [a / b for a, b in zip(ours, theirs, strict=True)], target))

    def cpu(self, what: str, ours: Sequence[Spent], theirs: Sequence[Spent], target: float | None = None) -> None:
        """Add ours / theirs in CPU time, round by round."""
        self.ratio(what, [spent.cpu for spent in ours], [spent.cpu for spent in theirs], target)

    def tally(self, tally: Tally) -> None:
        """Add what each contestant took, and how that grows."""
        for name, sizes in tally.items():
            took = ", ".join(
                f"{size:,}: {1e6 * median(s.wall for s in rounds) / size:.3g} wall {1e6 * median(s.cpu for s in rounds) / size:.3g} cpu"
                for size, rounds in sizes.items()
            )
            self.context.append(f"{name}, us per resource at {took}; grows with n^{growth(sizes):.2f}")


Tally = dict[str, dict[int, list[Spent]]]  # contestant -> size -> rounds


def interleave(contest: Mapping[str, Contestant], rounds: int, *, warm: bool = True) -> dict[str, list[Spent]]:
    """Run all in the order A B C C B A, ``rounds`` times; a round's value is the mean of its two runs.

    The garbage collector is as users have it: on, and with nothing left over from the contestant before. One
    run of each, uncounted, warms up.
    """
    found: dict[str, list[Spent]] = {name: [] for name in contest}
    if warm:
        for contestant in contest.values():
            contestant()
    for _ in range(rounds):
        twice: dict[str, list[Spent]] = {name: [] for name in contest}
        for name in (*contest, *reversed(list(contest))):
            gc.collect()
            twice[name].append(contest[name]())
        for name, (one, two) in twice.items():
            found[name].append(Spent((one.wall + two.wall) / 2, (one.cpu + two.cpu) / 2))
    return found


def spread(what: str, values: Sequence[float], target: float | None = None) -> Figure:
    """A figure from one value for each round."""
    return Figure(what, median(values), min(values), max(values), target)


def growth(sizes: Mapping[int, Sequence[Spent]]) -> float:
    """The exponent with which the CPU time grows: the slope over the logarithms, by least squares."""
    points = [(math.log(size), math.log(max(median(s.cpu for s in rounds), _TICK))) for size, rounds in sizes.items()]
    if len(points) < 2:
        return math.nan
    x, y = (sum(column) / len(points) for column in zip(*points, strict=True))
    return float(sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points))


_TICK: Final = 1e-7  # seconds: below this process_time says nothing
