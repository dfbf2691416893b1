"""SIGINT and SIGTERM while a graph lives: the first asks for the teardown, the second hurries it, the third leaves.

A handler only counts, writes a byte, and raises KeyboardInterrupt where a sync body of the user's is to end; what
follows is done by a thread of ours that reads the byte.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from types import FrameType
from typing import Any, Final

from .errors import PACKAGE, GraphStateError

__all__ = ["Signals"]

_END: Final = b"\0"
_HANDLED: Final = b"\xff"  # no signal has this number
_SAME: Final = 0.02  # seconds within which the same signal counts once
_SPARE: Final[int] = getattr(
    signal, "SIGURG", 0
)  # of our own nudges: nobody is interrupted by it who does not listen to it
_NUDGE: Final = 0.005  # seconds between two attempts to end a body that was just inside this library
_PATIENCE: Final = 20  # such waits before a nudge that nobody handled is taken for lost

_installed: list[Signals] = []


class Signals:
    """Our handlers, from `install` to `restore`. ``first`` and ``second`` are called on a thread of ours."""

    def __init__(self, title: str, first: Callable[[], None], second: Callable[[], None]) -> None:
        self.number: int | None = None  # of the first signal
        self.at: float | None = None  # when it came, seconds on the monotonic clock
        self._title = title
        self._steps = (first, second)
        self._handled = 0  # signals that Python has handled; the main thread may be deep in C and handle none
        self._in_body = False
        self._end_wanted = False
        self._last: dict[str, tuple[int, float]] = {}  # the signal that came last, and when
        self._nudge = False  # one signal of our own is still to be handled
        self._nudge_bytes = 0  # such signals whose byte is still to be read
        self._nudger = 0
        self._body_over = threading.Event()
        self._main = threading.main_thread().ident or 0
        self._before: dict[int, Any] = {}
        self._wakeup_before = -1
        self._pipe: tuple[int, int] | None = None

    def install(self) -> None:
        """Take SIGINT and SIGTERM over; raises `GraphStateError` off the main thread. An ignored signal stays ignored."""
        if threading.current_thread() is not threading.main_thread():
            raise GraphStateError(
                f"graph {self._title!r} cannot listen to signals here: Python allows that on the main thread only\n"
                "  hint     start it there, or leave signals=True out and call request_teardown() yourself"
            )
        self._begin_to_listen()
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._take_over(number)
        if _SPARE and signal.getsignal(_SPARE) in (signal.SIG_DFL, *(other._handle for other in _installed)):  # noqa: SLF001 - our own kind
            self._take_over(_SPARE)
        self._nudger = _SPARE if _SPARE in self._before else next(iter(self._before), 0)
        if self._pipe is not None:
            self._wakeup_before = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        _installed.append(self)

    def _begin_to_listen(self) -> None:
        pipe = os.pipe()
        try:
            threading.Thread(target=self._listen, args=(pipe[0],), name="lifegraph-signals", daemon=True).start()
        except RuntimeError:  # none can be started: the handler does what the listener would
            os.close(pipe[0])
            os.close(pipe[1])
        else:
            os.set_blocking(pipe[1], False)
            self._pipe = pipe

    def _take_over(self, number: int) -> None:
        self._before[number] = signal.getsignal(number)
        signal.signal(number, self._handle)

    def restore(self) -> None:
        """Give the signals back to whoever had them."""
        self._give_back()
        if self in _installed:
            _installed.remove(self)
        if self._pipe is not None:
            os.write(self._pipe[1], _END)
            os.close(self._pipe[1])
            self._pipe = None

    def __enter__(self) -> None:
        """A sync body of the user's runs on the main thread from here on."""
        self._in_body = True
        if self._end_wanted:  # asked before it began
            self._in_body = False
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        self._in_body = False
        self._body_over.set()

    def end_body(self) -> None:
        """Have KeyboardInterrupt raised in the body, if it still runs. From any thread; does not wait for it."""
        self._end_wanted = True
        waited = 0
        number = self._nudger
        while number and not self._body_over.is_set() and self._in_body:
            if signal.getsignal(number) != self._handle:
                return  # the body took the signals over: it is not ours to interrupt
            if not self._nudge or waited > _PATIENCE:  # two at once may be delivered as one, so seldom two
                self._nudge, waited = True, 0
                self._nudge_bytes += 1
                signal.pthread_kill(self._main, number)
            self._body_over.wait(_NUDGE)
            waited += 1

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._nudge and number == self._nudger:
            self._nudge = False
        elif number == _SPARE:  # nobody's business
            return
        elif not self._again(number, "handled"):
            self._handled += 1
            if self._handled >= len(self._steps) + 1:
                os._exit(128 + number)
            self._came(number)
            if self._pipe is not None:
                os.write(self._pipe[1], _HANDLED)
            else:
                self._steps[self._handled - 1]()
        if self._in_body and self._end_wanted and not _is_ours(frame):
            self._in_body = False
            raise KeyboardInterrupt

    def _again(self, number: int, where: str) -> bool:
        """Whether this is the last signal once more, as `timeout` sends it to a process and to its group."""
        last, at = self._last.get(where, (0, 0.0))
        now = monotonic()
        self._last[where] = number, now
        return number == last and now - at < _SAME

    def _came(self, number: int) -> None:
        if self.number is None:
            self.number, self.at, self._end_wanted = number, monotonic(), True

    def _listen(self, pipe: int) -> None:
        """Count what came: by the bytes that C wrote, or by those of our handler, whichever knows of more."""
        raw = handled = told = 0
        while (byte := os.read(pipe, 1)) not in (b"", _END):
            if byte == _HANDLED:
                handled += 1
            elif self._nudge_bytes and byte[0] == self._nudger:
                self._nudge_bytes -= 1
            elif byte[0] != _SPARE:
                self._pass_on(byte)
                if byte[0] in self._before and not self._again(byte[0], "read"):
                    raw += 1
                    self._came(byte[0])
            while told < max(raw, handled):
                told += 1
                if told > len(self._steps):
                    os._exit(128 + (byte[0] if byte != _HANDLED else self.number or 0))
                self._steps[told - 1]()
        os.close(pipe)

    def _pass_on(self, byte: bytes) -> None:
        """Whoever had the wake-up descriptor before, most likely a loop, is woken still."""
        if self._wakeup_before >= 0:
            with suppress(OSError):
                os.write(self._wakeup_before, byte)

    def _give_back(self) -> None:
        above = [other for other in _installed if self._handle in other._before.values()]  # noqa: SLF001 - our own kind
        for number, before in self._before.items():
            for other in above:  # left in another order than entered: they give back what was before us
                other._before[number] = before  # noqa: SLF001 - our own kind
            if not above:
                signal.signal(number, before if before is not None else signal.SIG_DFL)
        self._before.clear()
        if self._pipe is not None:
            with suppress(ValueError, OSError):
                signal.set_wakeup_fd(self._wakeup_before)

    def forked(self) -> None:
        """In a child: give the signals back, and leave the pipe to the parent."""
        self._give_back()
        self._in_body = False
        if self._pipe is not None:
            os.close(self._pipe[0])
            os.close(self._pipe[1])
            self._pipe = None


def _is_ours(frame: FrameType | None) -> bool:
    """Whether the main thread is inside this library, where an exception would strike us and not the body."""
    return frame is not None and frame.f_code.co_filename.startswith(PACKAGE)


def _after_fork() -> None:
    for each in _installed:
        each.forked()
    _installed.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
