"""The page of results: a table for each row, from what was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["markdown", "text"]

_HEAD: Final = """# Performance

Written by `python -m benchmarks --write docs/reference/performance.md` from one run; do not edit it by hand.

Ours, the peers and the floors run side by side in one process, in the order A B C C B A, with the garbage collector on.
Ratios are taken round by round; a table shows their median, and the lowest and highest round. Read the ratios:
absolute figures move with the machine, and stand here for orientation only. Where a target was set in absolute
time on the machine it was first measured on, it is said here in multiples of one class context manager in an
`ExitStack` of 1,000, entered and closed, timed in the same run. Single runs of a million resources have one round.

"""
_TAIL: Final = """## Repeat it

```sh
make bench                                   # all rows; some minutes
python -m benchmarks life teardown           # some of them
python -m benchmarks --quick                 # only whether all of it runs
python -m benchmarks --json bench.json --write docs/reference/performance.md
python -m benchmarks.profile                 # where the time goes
```

Use an idle machine for `teardown`, `makespan` and `mixture`: other load shows in them first.
"""


def markdown(result: Mapping[str, Any]) -> str:
    """The page in Markdown, from the plain data of a run."""
    parts = [_HEAD, "| measured on | |\n|---|---|\n"]
    parts += [f"| {key} | {value} |\n" for key, value in result["machine"].items()]
    targets = [figure for row in result["rows"] for figure in row["figures"] if figure["target"] is not None]
    met = sum(bool(figure["met"]) for figure in targets)
    parts.append(f"\n**{met} of {len(targets)} targets met in this run.**")
    parts.append(" This was a quick run, which proves nothing.\n" if result["quick"] else "\n")
    for row in result["rows"]:
        parts.append(
            f"\n## {row['name']}\n\n{row['title']}.\n\n| | median | rounds | target | |\n|---|---:|---:|---:|---|\n"
        )
        parts += [f"| {' | '.join(_cells(figure))} |\n" for figure in row["figures"]]
        if row["context"]:
            parts.append("\n" + "".join(f"- {line}\n" for line in row["context"]))
    return "".join(parts) + "\n" + _TAIL


def text(row: Mapping[str, Any]) -> str:
    """One row for a terminal."""
    cells = [_cells(figure) for figure in row["figures"]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [f"{row['name']}: {row['title']}"]
    lines += ["  " + _line(line, widths) for line in cells]
    return "\n".join([*lines, *(f"  . {line}" for line in row["context"])])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = cells
    return f"{first:<{widths[0]}}  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(rest, widths[1:], strict=True))


def _cells(figure: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    low, high = _number(figure["low"]), _number(figure["high"])
    target = "" if figure["target"] is None else f"<= {_number(figure['target'])}"
    verdict = {None: "", True: "met", False: "not met"}[figure["met"]]
    return figure["what"], _number(figure["value"]), "" if low == high else f"{low} to {high}", target, verdict


def _number(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3f}" if 0.9 < abs(value) < 1.5 else f"{value:.3g}"
