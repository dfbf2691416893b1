"""The live view: told events, it says who is at work and who waits for whom."""

from __future__ import annotations

import io

import pytest

from lifegraph.events import (
    AnswerLate,
    Event,
    Fate,
    HookBegan,
    HookEnded,
    NoteTaken,
    ResourceSettled,
    StartBegan,
    StartEnded,
    StillWaiting,
    TeardownBegan,
    TeardownEnded,
)
from lifegraph.view.live import Live
from tests.view.samples import graph

SOURCE = graph({"Server": "Disk Peer", "Disk": "Memory", "Peer": "Memory", "Memory": ""})
STORY: list[Event] = [
    StartBegan("kv", 0.0, 4),
    HookEnded("kv", 0.1, "Memory", "start", 0.1),
    StartEnded("kv", 0.2, 0.2, ok=True),
    TeardownBegan("kv", 1.0, 4, None),
    HookBegan("kv", 1.0, "Server", "stop"),
    HookEnded("kv", 1.1, "Server", "stop", 0.1),
    HookBegan("kv", 1.1, "Disk", "stop"),
    HookBegan("kv", 1.1, "Peer", "stop"),
    HookEnded("kv", 1.2, "Peer", "stop", 0.1, "no\nroute", "OSError"),
    StillWaiting("kv", 6.0, 5.0, ("Disk",)),
    NoteTaken("kv", 6.0, "a\x1b[31m note"),
]
END: list[Event] = [
    HookEnded("kv", 11.0, "Disk", "stop", 9.9, "stop() still ran", "HookTimeout", timed_out=True),
    ResourceSettled("kv", 11.0, "Memory", Fate.POISONED),
    AnswerLate("kv", 11.5, "Disk", "stop", 10.4),
    TeardownEnded("kv", 11.0, 10.0, ok=False, held=("Disk", "Peer", "Memory")),
]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO, events: list[Event]) -> Live:
    """A live view that was told these."""
    live = Live(SOURCE, stream)
    with live:
        for event in events:
            live(event)
    return live


def test_a_line_for_each_event_where_there_is_no_terminal() -> None:
    """Times, names, what they did and who is behind them, without control characters."""
    stream = io.StringIO()
    told(stream, STORY + END)
    lines = [line.strip() for line in stream.getvalue().splitlines()]
    assert [
        "0.000 s  starting 4 resources",
        "0.100 s  Memory  start done, 0.10 s",
        "0.200 s  up after 0.20 s",
        "0.000 s  tearing down 4 resources",
        "0.100 s  Server  stop done, 0.10 s",
        "0.200 s  Peer  stop no\\nroute, 0.10 s",
        "5.000 s  waiting for Disk (Memory behind it)",
        "5.000 s  note: a\\x1b[31m note",
        "10.000 s  Disk  stop timed out: stop() still ran, 9.90 s",
        "10.000 s  [!] Memory  poisoned",
        "10.500 s  Disk  stop ended late, 10.4 s",
        "10.000 s  torn down in 10.0 s: not released: Disk, Peer, Memory",
    ] == lines


def test_the_picture_says_who_waits_for_whom() -> None:
    """What runs stands first, with what is behind it; then what ended badly, root causes before consequences."""
    live = Live(SOURCE, io.StringIO())
    for event in STORY:
        live(event)
    head, disk, peer = [line for line, _ in live.lines()]
    assert head.startswith("kv: tearing down, 2 of 4 done, ")
    assert disk.startswith("  … Disk  stop ")
    assert disk.endswith("   Memory behind it")
    assert "  ✗ Peer  failed" == peer
    for event in END[:2]:
        live(event)
    assert ["  ✗ Peer  failed", "  ◷ Disk  timed out", "  ☣ Memory  poisoned"] == [line for line, _ in live.lines()[1:]]


@pytest.mark.parametrize("columns", [60, 200])
def test_in_a_terminal_rich_draws_it(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture is drawn within the width of the terminal, and without colours where they are not wanted."""
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "30")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    told(stream, [*STORY, *END])
    shown = stream.getvalue()
    assert "☣ Memory  poisoned" in shown
    assert "\x1b[31m" not in shown
    assert all(len(line) <= columns + 30 for line in shown.splitlines())


def test_without_rich_a_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rich is not installed the view says the same in lines."""
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    stream = Terminal()
    told(stream, STORY)
    assert "waiting for Disk" in stream.getvalue()
