"""Passes events on to observers and the log, in order, on a thread of its own: none of them stops anything."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic

from .. import log
from ..events import Event
from ..run import Failure
from .latch import Latch
from .pool import pool

__all__ = ["Herald"]


class Herald:
    """The messenger of one graph. `tell` is safe from any thread, and neither blocks nor raises."""

    def __init__(self, observers: Sequence[Callable[[Event], object]]) -> None:
        self._observers = tuple(observers)
        self._untold: deque[Event | Latch] = deque()
        self._speaking = threading.Lock()
        self._notes: list[str] = []
        self.quiet = not self._observers

    def join(self, observer: Callable[[Event], object]) -> None:
        """Tell one more."""
        self._observers = (*self._observers, observer)
        self.quiet = False

    def listen(self) -> None:
        """Find out whether anybody wants to hear of what goes well."""
        self.quiet = not self._observers and not log.audible()

    def tell(self, event: Event) -> None:
        """Pass on what happened, soon."""
        self._untold.append(event)
        self._speak_up()

    def forked(self) -> None:
        """In a forked child: nobody speaks here yet."""
        self._speaking = threading.Lock()
        self._untold.clear()

    @property
    def idle(self) -> bool:
        """Nothing is left to tell."""
        return not self._untold and not self._notes and not self._speaking.locked()

    def finish(self, patience: float = 1.0) -> tuple[str, ...]:
        """Wait, at most ``patience`` seconds, until all is told; return what there is to note about that."""
        if self._untold or self._speaking.locked():
            latch = Latch()
            self._untold.append(latch)
            self._speak_up()
            until = monotonic() + patience
            if not latch.wait(max(0.0, until - monotonic())):
                untold = sum(not isinstance(event, Latch) for event in list(self._untold))
                self._notes.append(f"observers were not done after {patience:g} s: {untold} events untold")
        notes, self._notes = tuple(self._notes), []
        return notes

    def _speak_up(self) -> None:
        if self._speaking.acquire(blocking=False):
            try:
                pool.engage(self._speak)
            except RuntimeError:  # no thread can be started any more
                self._speaking.release()

    def _speak(self) -> None:
        while True:
            while self._untold:
                event = self._untold.popleft()
                if isinstance(event, Latch):
                    event.open()
                else:
                    self._pass_on(event)
            self._speaking.release()
            if not self._untold or not self._speaking.acquire(blocking=False):
                return

    def _pass_on(self, event: Event) -> None:
        for observer in self._observers:
            try:
                observer(event)
            except BaseException as why:  # noqa: BLE001 - whatever it raises, a broken observer stops nothing
                failure = Failure.of(why)
                whose = getattr(observer, "__qualname__", type(observer).__name__)
                note = f"observer {whose} failed: {failure.kind}: {failure.text}"
                if note not in self._notes:
                    self._notes.append(note)
        log.write(event)
