"""A run as it happens: who is being stopped, for how long already, and who waits for whom.

In a terminal it is a picture that renews itself (by rich, where that is installed); elsewhere a line for each event.
"""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self, TextIO, assert_never

from ..events import (
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
from .labels import clean, counted, duration, fit, listing, shorten, visible
from .palette import LOOKS, look
from .sources import Drawable

__all__ = ["Live"]

_ROWS: Final = 12  # of running hooks and of bad ends that are shown at once
_NAME: Final = 40  # cells


class Live:
    """An observer that shows what it is told, on ``stream``, for as long as it is entered."""

    def __init__(self, source: Drawable, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._source = source
        self._place = {name: index for index, name in enumerate(source.names)}
        self._phase = "waiting"
        self._running: dict[str, tuple[str, float]] = {}
        self._ended: dict[str, str] = {}  # how each ended, in this phase
        self._began = monotonic()
        self._screen: Any = None
        self._unicode = "utf" in (getattr(self._stream, "encoding", None) or "").lower()

    def __enter__(self) -> Self:
        self._screen = self._rich() if self._stream.isatty() else None
        if self._screen is not None:
            self._screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._screen is not None:
            self._screen.stop()
            self._stream.write(self._plain(self.lines()[0][0]) + "\n")

    def __call__(self, event: Event) -> None:
        """Take note of an event, and tell of it."""
        self._note(event)
        if self._screen is None:
            line = self._line(event)
            if line:
                seconds = f"{event.at - self._began:9.3f} s"
                self._stream.write(self._plain(f"{seconds}  {line}") + "\n")
                self._stream.flush()

    def _note(self, event: Event) -> None:
        match event:
            case StartBegan() | TeardownBegan():
                self._phase = "starting" if isinstance(event, StartBegan) else "tearing down"
                self._began = event.at
                self._ended.clear()
            case HookBegan():
                self._running[event.resource] = event.hook, event.at
            case HookEnded():
                self._running.pop(event.resource, None)
                bad = "timed_out" if event.timed_out else "failed"
                self._ended[event.resource] = bad if event.timed_out or event.error is not None else "released"
            case ResourceSettled():
                self._ended[event.resource] = event.fate
            case StartEnded() | TeardownEnded():
                self._phase = "up" if isinstance(event, StartEnded) and event.ok else "ended"
            case AnswerLate() | NoteTaken() | StillWaiting():
                pass
            case _:
                assert_never(event)

    def _line(self, event: Event) -> str:
        """An event for people, or nothing where another says it."""
        match event:
            case StartBegan():
                return f"starting {counted(event.resources, 'resource', 'resources')}"
            case StartEnded():
                return f"up after {duration(event.seconds)}" if event.ok else "start failed"
            case TeardownBegan():
                return f"tearing down {counted(event.resources, 'resource', 'resources')}"
            case TeardownEnded():
                held = f": not released: {listing(event.held, 8, _NAME)}" if event.held else ": all released"
                return f"torn down in {duration(event.seconds)}{held}"
            case HookBegan():
                return ""
            case HookEnded():
                how = (
                    f"timed out: {clean(event.error or '')}" if event.timed_out else clean(event.error or "") or "done"
                )
                return f"{shorten(visible(event.resource), _NAME)}  {event.hook} {how}, {duration(event.seconds)}"
            case ResourceSettled():
                return f"{look(event.fate).mark} {shorten(visible(event.resource), _NAME)}  {look(event.fate).word}"
            case AnswerLate():
                return f"{shorten(visible(event.resource), _NAME)}  {event.hook} ended late, {duration(event.seconds)}"
            case NoteTaken():
                return f"note: {clean(event.note)}"
            case StillWaiting():
                return "waiting for " + "; ".join(self._waits(name) for name in event.pending[:3])
            case _:
                assert_never(event)

    def _waits(self, pending: str) -> str:
        """Who waits for a hook that runs, in words."""
        name = pending.partition(" ")[0] if pending not in self._place else pending
        behind = self._behind(name)
        return shorten(visible(pending), 2 * _NAME) + (f" ({listing(behind, 2, _NAME)} behind it)" if behind else "")

    def _behind(self, name: str) -> list[str]:
        """What may not act before this resource has ended."""
        place = self._place.get(name)
        if place is None or self._phase != "tearing down":
            return []
        rows = (*self._source.uses[place], *self._source.orders[place])
        return [self._source.names[other] for other in rows if self._source.names[other] not in self._ended]

    def lines(self) -> list[tuple[str, str]]:
        """What the picture says now: lines, each with the fate whose colour it has, or an empty string."""
        now = monotonic()
        total = len(self._place)
        head = f"{visible(self._source.title)}: {self._phase}, {len(self._ended):,} of {total:,} done"
        said = [(f"{head}, {now - self._began:.1f} s", "")]
        for name, (hook, since) in list(self._running.items())[:_ROWS]:
            behind = self._behind(name)
            waits = f"   {listing(behind, 3, _NAME)} behind it" if behind else ""
            said.append((f"  … {shorten(visible(name), _NAME)}  {hook} {now - since:.1f} s{waits}", ""))
        if len(self._running) > _ROWS:
            said.append((f"  and {len(self._running) - _ROWS:,} more at work", ""))
        bad = [(name, fate) for name, fate in list(self._ended.items()) if fate not in (Fate.RELEASED, Fate.SKIPPED)]
        bad.sort(key=lambda pair: list(LOOKS).index(pair[1]))
        for name, fate in bad[:_ROWS]:
            said.append((f"  {look(fate).mark} {shorten(visible(name), _NAME)}  {look(fate).word}", fate))
        if len(bad) > _ROWS:
            said.append((f"  and {len(bad) - _ROWS:,} more not released", ""))
        return said

    def _plain(self, text: str) -> str:
        if self._unicode:
            return text
        for fate in LOOKS.values():
            text = text.replace(fate.mark, f"[{fate.ascii_mark}]")
        return text.replace("…", "..").encode("ascii", "backslashreplace").decode()

    def _rich(self) -> Any:
        """Rich's live display on the stream, or None where rich is not installed."""
        try:
            from rich.console import Console  # noqa: PLC0415 - slow to import, and an extra
            from rich.live import Live as Display  # noqa: PLC0415 - the same
            from rich.text import Text  # noqa: PLC0415 - the same
        except ImportError:
            return None
        console = Console(file=self._stream, highlight=False)
        styles = {"failed": "red", "timed_out": "red", "abandoned": "red", "poisoned": "yellow"}

        def picture() -> Any:
            wide = max(console.width - 1, 20)
            text = Text(no_wrap=True, overflow="crop")
            for line, fate in self.lines():
                text.append(fit(self._plain(line), wide) + "\n", style=styles.get(fate, ""))
            return text

        return Display(get_renderable=picture, console=console, refresh_per_second=8, transient=True)
