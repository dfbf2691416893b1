"""What proves that a resource has stopped: the whole truth table, as data, which the teardown follows.

One row is one course of events: what its stop did, what ``is_stopped`` said, what ``kill`` did, what
``is_stopped`` said then, and the verdict. Cells:

* stop: ``returned``, ``raised``, ``late`` (still ran at its limit), ``draining`` (returned while its drain
  still ran), ``unstarted`` (its start still ran at its limit: no stop is called);
* is_stopped, both times: ``true``, ``false``, ``raised``, ``late``, ``absent`` (not declared), ``-`` (not asked);
* kill: ``returned``, ``raised``, ``late``, ``absent``, ``-`` (not tried).

``a|b`` stands for either. Whatever comes next is the first cell of the rows that fit so far and is not yet known.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

from ..events import Fate

__all__ = ["COLUMNS", "ROWS", "TABLE", "Course", "Verdict", "next_step"]

COLUMNS: Final = ("stop", "is_stopped", "kill", "is_stopped")


class Verdict(NamedTuple):
    """How a course of events ends; ``forced``: it is the kill that proved it."""

    fate: Fate
    forced: bool = False


class Course(NamedTuple):
    """One row: what was said by each of `COLUMNS`, and what follows."""

    said: tuple[str, str, str, str]
    verdict: Verdict


_RELEASED: Final = Verdict(Fate.RELEASED)
_FORCED: Final = Verdict(Fate.RELEASED, forced=True)
_FAILED: Final = Verdict(Fate.FAILED)
_TIMED_OUT: Final = Verdict(Fate.TIMED_OUT)
_NO: Final = "false|raised|late"

ROWS: Final = (
    # stop           is_stopped  kill                  is_stopped     verdict
    ("returned",     "absent",   "-",                  "-",           _RELEASED),
    ("returned",     "true",     "-",                  "-",           _RELEASED),
    ("returned",     _NO,        "absent|raised|late", "-",           _FAILED),
    ("returned",     _NO,        "returned",           "true",        _FORCED),
    ("returned",     _NO,        "returned",           _NO,           _FAILED),

    ("raised",       "true",     "-",                  "-",           _RELEASED),
    ("raised",       "absent",   "returned",           "absent",      _FORCED),
    ("raised",       "absent",   "absent|raised|late", "-",           _FAILED),
    ("raised",       _NO,        "absent|raised|late", "-",           _FAILED),
    ("raised",       _NO,        "returned",           "true",        _FORCED),
    ("raised",       _NO,        "returned",           _NO,           _FAILED),

    ("late|draining", "true",    "-",                  "-",           _RELEASED),
    ("late|draining", "absent",  "returned",           "absent",      _FORCED),
    ("late|draining", "absent",  "absent|raised|late", "-",           _TIMED_OUT),
    ("late|draining", _NO,       "absent|raised|late", "-",           _TIMED_OUT),
    ("late|draining", _NO,       "returned",           "true",        _FORCED),
    ("late|draining", _NO,       "returned",           _NO,           _TIMED_OUT),

    ("unstarted",    "-",        "absent|raised|late", "-",           _TIMED_OUT),
    ("unstarted",    "-",        "returned",           "absent|true", _FORCED),
    ("unstarted",    "-",        "returned",           _NO,           _TIMED_OUT),
)  # fmt: skip

TABLE: Final[tuple[Course, ...]] = tuple(
    Course(said, verdict)  # type: ignore[arg-type]  # product of four
    for *cells, verdict in ROWS
    for said in product(*(str(cell).split("|") for cell in cells))
)


def _steps() -> dict[tuple[str, ...], int | Verdict]:
    """After each beginning of a course: the column that comes next, or the verdict."""
    steps: dict[tuple[str, ...], int | Verdict] = {}
    for said, verdict in TABLE:
        known = tuple(cell for cell in said if cell != "-")
        asked = [column for column, cell in enumerate(said) if cell != "-"]
        for size in range(1, len(known)):
            steps[known[:size]] = asked[size]
        steps[known] = verdict
    return steps


_STEPS: Final = _steps()


def next_step(*said: str) -> int | Verdict:
    """After what was ``said`` so far, in order: the number of the column that comes next, or the verdict."""
    return _STEPS[said]
