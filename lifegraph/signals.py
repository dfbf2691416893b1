"""SIGINT and SIGTERM while a graph lives: the first asks for the teardown, the second hurries it, the third leaves.

A handler only counts, writes a byte, and raises KeyboardInterrupt where a sync body of the user's is to end; what
follows is done by a thread of ours that reads the byte.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, Final

from .errors import GraphStateError

__all__ = ["Signals"]

_OURS: Final = str(Path(__file__).parent)
_NUDGE: Final = 0.005  # seconds between two attempts to end a body that was just inside this library

_installed: list[Signals] = []


class Signals:
    """Our handlers, from `install` to `restore`. ``first`` and ``second`` are called on a thread of ours."""

    def __init__(self, title: str, first: Callable[[], None], second: Callable[[], None]) -> None:
        self.number: int | None = None  # of the first signal
        self.at: float | None = None  # when it came, seconds on the monotonic clock
        self._title = title
        self._first = first
        self._second = second
        self._count = 0
        self._in_body = False
        self._end_wanted = False
        self._nudged = 0
        self._body_over = threading.Event()
        self._main = threading.main_thread().ident or 0
        self._before: dict[int, Any] = {}
        self._pipe: tuple[int, int] | None = None

    def install(self) -> None:
        """Take SIGINT and SIGTERM over; raises `GraphStateError` off the main thread. An ignored signal stays ignored."""
        if threading.current_thread() is not threading.main_thread():
            raise GraphStateError(
                f"graph {self._title!r} cannot listen to signals here: Python allows that on the main thread only\n"
                "  hint     start it there, or leave signals=True out and call request_teardown() yourself"
            )
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        threading.Thread(target=self._listen, args=(self._pipe[0],), name="lifegraph-signals", daemon=True).start()
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._handle)
        _installed.append(self)

    def restore(self) -> None:
        """Give the signals back to whoever had them."""
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)
        self._before.clear()
        if self in _installed:
            _installed.remove(self)
        if self._pipe is not None:
            os.write(self._pipe[1], b"\0")
            os.close(self._pipe[1])
            self._pipe = None

    def __enter__(self) -> None:
        """A sync body of the user's runs on the main thread from here on."""
        self._in_body = True

    def __exit__(self, *_: object) -> None:
        self._in_body = False
        self._body_over.set()

    def end_body(self) -> None:
        """Have KeyboardInterrupt raised in the body, if it still runs. From any thread; does not wait for it."""
        self._end_wanted = True
        while not self._body_over.is_set() and self._in_body:
            self._nudged += 1
            signal.pthread_kill(self._main, signal.SIGINT)
            self._body_over.wait(_NUDGE)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._nudged and number == signal.SIGINT:
            self._nudged -= 1
        else:
            self._count += 1
            if self._count >= 3:
                os._exit(128 + number)
            if self._count == 1:
                self.number, self.at, self._end_wanted = number, monotonic(), True
            if self._pipe is not None:
                os.write(self._pipe[1], bytes((number,)))
        if self._in_body and self._end_wanted and not _is_ours(frame):
            self._in_body = False
            raise KeyboardInterrupt

    def _listen(self, pipe: int) -> None:
        told = 0
        while os.read(pipe, 1) not in (b"", b"\0"):
            told += 1
            if told == 1:
                self._first()
            elif told == 2:
                self._second()
        os.close(pipe)

    def forked(self) -> None:
        """In a child: give the signals back, and leave the pipe to the parent."""
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)
        self._before.clear()
        self._in_body = False
        if self._pipe is not None:
            os.close(self._pipe[0])
            os.close(self._pipe[1])
            self._pipe = None


def _is_ours(frame: FrameType | None) -> bool:
    """Whether the main thread is inside this library, where an exception would strike us and not the body."""
    return frame is not None and frame.f_code.co_filename.startswith(_OURS)


def _after_fork() -> None:
    for each in _installed:
        each.forked()
    _installed.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
