"""One benchmark in each room, with a function ``measure(scale) -> Row``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..measure import Row, Scale
from . import async_noop, chain, footprint, forecast, imports, life, makespan, million, mixture, pictures, teardown, ten

__all__ = ["ROWS"]

ROWS: Final[Mapping[str, Callable[[Scale], Row]]] = {
    "life": life.measure,
    "teardown": teardown.measure,
    "ten": ten.measure,
    "makespan": makespan.measure,
    "mixture": mixture.measure,
    "million": million.measure,
    "chain": chain.measure,
    "footprint": footprint.measure,
    "forecast": forecast.measure,
    "pictures": pictures.measure,
    "async": async_noop.measure,
    "imports": imports.measure,
}
