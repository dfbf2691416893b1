"""The truth table of evidence: whole, without contradiction, and safe."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from lifegraph import Fate
from lifegraph.run.proof import COLUMNS, ROWS, TABLE, Verdict, next_step

ANSWERS = ("true", "false", "raised", "late")
STOPS = ("returned", "raised", "late", "draining", "unstarted")
KILLS = ("returned", "raised", "late")


def follow(stop: str, first: str, kill: str, second: str) -> tuple[tuple[str, ...], Verdict]:
    """What is said when each hook would say this, and the verdict."""
    said, would = [stop], (stop, first, kill, "absent" if first == "absent" else second)
    while not isinstance(step := next_step(*said), Verdict):
        said.append(would[step])
    return tuple(said), step


@pytest.mark.parametrize("stop", STOPS)
def test_every_course_of_events_has_one_verdict(stop: str) -> None:
    """Whatever the hooks do, the table leads to a verdict, and asks each column once at most."""
    for first, kill, second in product((*ANSWERS, "absent"), (*KILLS, "absent"), ANSWERS):
        said, verdict = follow(stop, first, kill, second)
        assert 1 <= len(said) <= len(COLUMNS)
        assert verdict.fate in (Fate.RELEASED, Fate.FAILED, Fate.TIMED_OUT)


def test_no_two_rows_contradict_each_other() -> None:
    """One course of events stands in the table once."""
    courses = [tuple(cell for cell in row.said if cell != "-") for row in TABLE]
    assert sorted(set(courses)) == sorted(courses)
    assert not any(a != b and a == b[: len(a)] for a in courses for b in courses)


def test_nothing_is_released_without_evidence() -> None:
    """Released means: the last thing said was true; or a kill, or an undenied stop, that returned."""
    for said, verdict in TABLE:
        last = [cell for cell in said if cell not in ("-", "absent")][-1]
        if verdict.fate is Fate.RELEASED:
            assert last == "true" or (last == "returned" and "absent" in said)
        else:
            assert last != "true"


def test_forced_is_what_only_its_kill_released() -> None:
    """A kill that returned is the only way to be forced."""
    for said, verdict in TABLE:
        assert verdict.forced is (verdict.fate is Fate.RELEASED and said[2] == "returned")


def test_only_what_still_ran_is_timed_out() -> None:
    """A stop that returned or raised and is not proven has failed; the others are timed out."""
    for said, verdict in TABLE:
        if verdict.fate is not Fate.RELEASED:
            assert (verdict.fate is Fate.FAILED) is (said[0] in ("returned", "raised"))


def test_the_page_has_the_table() -> None:
    """docs/reference/evidence.md shows the very rows that a teardown follows."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "evidence.md"
    shown = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    assert [told_row(row) for row in ROWS] == shown


def told_row(row: tuple[object, ...]) -> str:
    """One row as the page has it."""
    *cells, verdict = row
    assert isinstance(verdict, Verdict)
    words = [" or ".join(f"`{cell}`" for cell in str(said).split("|")) for said in cells]
    return f"| {' | '.join(words)} | {verdict.fate}{', forced' if verdict.forced else ''} |"
