"""Small graphs and reports to paint."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Fate(StrEnum):
    """Fates as a report has them."""

    released = "released"
    failed = "failed"
    timed_out = "timed_out"
    poisoned = "poisoned"
    abandoned = "abandoned"
    skipped = "skipped"


@dataclass(frozen=True)
class Graph:
    """A drawable."""

    title: str
    names: Sequence[str]
    uses: Sequence[Sequence[int]]
    orders: Sequence[Sequence[int]]
    where: Sequence[str]


@dataclass(frozen=True)
class Outcome:
    """How one resource ended."""

    error: str | None = None
    error_type: str | None = None
    causes: tuple[str, ...] = ()
    seconds: float | None = None
    start_error: str | None = None
    forced: bool = False
    stack: str | None = None
    began: float | None = None
    ended: float | None = None


@dataclass(frozen=True)
class Report:
    """How a run ended."""

    ok: bool
    seconds: float
    fates: Mapping[str, Fate]
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    attested: tuple[str, ...] = ()
    start_failed: bool = False
    critical_path: tuple[str, ...] = ()


def graph(uses: Mapping[str, str], orders: Mapping[str, str] | None = None, title: str = "kv") -> Graph:
    """A graph of names without blanks: `{"a": "b c", "b": "", "c": ""}`."""
    names = list(uses)
    place = {name: index for index, name in enumerate(names)}
    ordered = orders or {}
    return Graph(
        title,
        names,
        [[place[other] for other in uses[name].split()] for name in names],
        [[place[other] for other in ordered.get(name, "").split()] for name in names],
        [f"app.py:{10 + 7 * index}" for index in range(len(names))],
    )


def named(names: Sequence[str], edges: Sequence[tuple[int, int]] = (), title: str = "names") -> Graph:
    """A graph of any names."""
    uses: list[list[int]] = [[] for _ in names]
    for upper, lower in edges:
        uses[upper].append(lower)
    return Graph(title, list(names), uses, [[] for _ in names], ["" for _ in names])


def tiers() -> Graph:
    """A cache server: two tiers copy from one block of memory, everything reports to metrics."""
    return graph(
        {
            "Server": "Scheduler Auth",
            "Scheduler": "FileTier NixlTier",
            "FileTier": "PrimaryTier Disk",
            "NixlTier": "PrimaryTier",
            "PrimaryTier": "Arena",
            "Arena": "",
            "Disk": "",
            "Auth": "Db",
            "Db": "",
            "Metrics": "",
        },
        {"Server": "Metrics PrimaryTier", "FileTier": "Metrics", "Auth": "Metrics"},
    )


def tiers_report() -> Report:
    """One tier hung, one raised; what both use is poisoned."""
    late = Outcome("stop() still ran after 5.0 s\n  at FileTier.stop (app.py:77)", "HookTimeout", seconds=5.0)
    return Report(
        ok=False,
        seconds=5.42,
        fates={
            "Server": Fate.released,
            "Scheduler": Fate.released,
            "FileTier": Fate.timed_out,
            "NixlTier": Fate.failed,
            "PrimaryTier": Fate.poisoned,
            "Arena": Fate.poisoned,
            "Disk": Fate.poisoned,
            "Auth": Fate.released,
            "Db": Fate.skipped,
            "Metrics": Fate.abandoned,
        },
        outcomes={
            "Server": Outcome(seconds=0.012),
            "Scheduler": Outcome(seconds=0.3, forced=True),
            "FileTier": late,
            "NixlTier": Outcome('link "a\\b" is down', "OSError", seconds=0.0001),
            "PrimaryTier": Outcome(causes=("FileTier", "NixlTier")),
            "Arena": Outcome(causes=("FileTier", "NixlTier")),
            "Disk": Outcome(causes=("FileTier",)),
            "Auth": Outcome("socket was closed already", "OSError", seconds=0.2),
            "Db": Outcome(start_error="OSError: no route to db:5432"),
            "Metrics": Outcome(),
        },
    )


def golden(name: str, painted: str) -> None:
    """Compares with the file in golden/; `LIFEGRAPH_REGOLD=1` writes it instead."""
    path = Path(__file__).parent / "golden" / name
    if os.environ.get("LIFEGRAPH_REGOLD") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(painted, encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == painted


def rolled_back() -> Report:
    """The same server, whose database does not start: what was up is released."""
    down = {"Server": Fate.skipped, "Auth": Fate.skipped, "Db": Fate.skipped}
    fates = {name: down.get(name, Fate.released) for name in tiers().names}
    outcomes = {name: Outcome(seconds=0.01) for name, fate in fates.items() if fate is Fate.released}
    outcomes["Db"] = Outcome(start_error="OSError: no route to db:5432")
    return Report(True, 0.04, fates, outcomes, start_failed=True)


NASTY = [
    *(
        "3::3",
        "db:5432",
        "start",
        "end",
        "END",
        "pre_end",
        "n0",
        "legend",
        "subgraph",
        "class",
        "--",
        "->",
        ";",
        "{",
        "}",
    ),
    *(
        "",
        " ",
        "  a ",
        "\n",
        "a\nb",
        "a\\nb",
        "\x00",
        "\x1b[31mred",
        "\ud800",
        "\u200b",
        "\u202eabc",
        "\u3164",
        "\u0301a",
    ),
    *(
        "\\",
        "\\N",
        "a\\",
        '"',
        'a"b',
        "'",
        "'a'",
        "`a`",
        "<b>",
        "<<b>>",
        "</script>",
        "&",
        "&amp;",
        "&#34;",
        "#quot;",
        "#35;",
    ),
    *("style: a#b;", "classDef a:#b;", "%%{init: {}}%%", "%% a", "1. a", "- a", "**a**", "__a__", "$$a$$", "[a](b)"),
    *(
        "שלום",
        "日本語",
        "😀",
        "👩\u200d💻",
        "x" * 10_000,
        "日" * 10_000,
        "a" + "\u0301" * 10_000,
        "a --> b",
        "]:::c",
        "a|b",
    ),
]
