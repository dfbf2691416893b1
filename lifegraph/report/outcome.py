"""What a report says of one resource, and of one lease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..errors import LifegraphError
from ..events import Fate

__all__ = ["FATES", "NO_DETAIL", "Detail", "Lease", "Outcome", "ReportError"]

FATES: Final = tuple(Fate)  # a report's codes are indices into these


class ReportError(LifegraphError, ValueError):
    """Text that is no report of this library."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What a report keeps of one resource beyond its fate and times."""

    error: str | None = None
    error_type: str | None = None
    start_error: str | None = None
    stack: str | None = None
    late: bool = False
    forced: bool = False
    generation: int = 1


NO_DETAIL: Final = Detail()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one resource ended.

    ``error`` and ``error_type`` are of its stop, ``start_error`` of its start; ``stack`` is where a timed-out
    hook hangs, or the traceback of the error, as text. ``causes`` names the root causes that poisoned it, with
    one of ``paths`` each, from the cause to this resource. ``began`` and ``ended`` are seconds since the
    teardown began, or None when nothing was attempted. ``late``: its hook ended after it had been given up.
    ``forced``: released by its kill.
    """

    name: str
    generation: int
    fate: Fate
    error: str | None
    error_type: str | None
    start_error: str | None
    causes: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    began: float | None
    ended: float | None
    seconds: float | None
    late: bool
    stack: str | None
    declared_at: str
    forced: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """A borrowing that a teardown waited for; ``age`` in seconds at its end."""

    resource: str
    holder: str
    age: float
    returned: bool
