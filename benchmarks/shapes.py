"""DAGs to measure on: for each node, in declared order, the earlier nodes that it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeAlias

__all__ = ["Shape", "chain", "chain_and_fan", "layered", "skewed", "uniform"]

Shape: TypeAlias = list[tuple[int, ...]]


def layered(size: int, layers: int = 10, edges: int = 3) -> Shape:
    """As many layers, each node depending on a few of the layer below, drawn with a fixed seed."""
    draw = Random(1)  # noqa: S311 - a shape, not a secret
    width = max(1, size // layers)
    return [
        () if node < width else tuple({(node // width - 1) * width + draw.randrange(width) for _ in range(edges)})
        for node in range(size)
    ]


def chain(size: int) -> Shape:
    """Each depends on the one before."""
    return [(node - 1,) if node else () for node in range(size)]


def chain_and_fan(length: int = 100, fan: int = 900) -> Shape:
    """A chain, and a fan of nodes that depend on the chain's foundation only; the fan is declared last."""
    return chain(length) + [(0,)] * fan


def uniform(size: int) -> list[float]:
    """Durations in seconds, 1 to 20 ms."""
    draw = Random(2)  # noqa: S311 - the same
    return [draw.uniform(0.001, 0.020) for _ in range(size)]


def skewed(size: int) -> list[float]:
    """Durations in seconds, most near 1 ms and a few of 20 ms."""
    draw = Random(3)  # noqa: S311 - the same
    return [min(0.020, 0.001 * draw.paretovariate(1.0)) for _ in range(size)]


def critical_path(shape: Shape, seconds: Sequence[float]) -> list[float]:
    """For each node the seconds of the longest path from it down, itself included."""
    path: list[float] = []
    for node, dependencies in enumerate(shape):
        path.append(seconds[node] + max((path[d] for d in dependencies), default=0.0))
    return path
