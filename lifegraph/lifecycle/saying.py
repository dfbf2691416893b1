"""What a program says on stderr, and how it leaves the process."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable

from ..drive.latch import Latch
from ..drive.pool import pool
from ..errors import PACKAGE, InternalError

__all__ = ["exit_status", "leave", "say", "told"]


def say(text: str) -> None:
    """One text on stderr, where there is one that takes it in time."""
    _in_time(lambda: (sys.stderr.write(f"{text}\n"), sys.stderr.flush()))


def told(error: BaseException) -> str:
    """An error with its traceback, and those of what it consists of, without the frames of this library."""
    shown = traceback.TracebackException.from_exception(error)
    todo = [(shown, error)]
    while todo:
        told, why = todo.pop()
        if not isinstance(why, InternalError):
            told.stack[:] = [line for line in told.stack if not line.filename.startswith(PACKAGE)]
        deeper = [(told.__cause__, why.__cause__), (told.__context__, why.__context__)]
        if isinstance(why, BaseExceptionGroup):
            deeper += zip(told.exceptions or (), why.exceptions, strict=False)
        todo += [(t, w) for t, w in deeper if t is not None and w is not None]
    return "".join(shown.format()).rstrip()


def exit_status(error: SystemExit) -> int:
    """The exit code that a SystemExit asks for; a text of its is said."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    say(str(error.code))
    return 1


def leave(code: int) -> None:
    """Leave without finalization: what is held stays as it is to the very end."""
    streams = [stream.flush for stream in (sys.stdout, sys.stderr) if stream is not None]
    for flush in (logging.shutdown, *streams):
        _in_time(flush)
    os._exit(code)


def _in_time(call: Callable[[], object]) -> None:
    """Do this on a thread of ours and wait a second at most: a hook that hangs may hold a lock of stdio or logging."""
    done = Latch()

    def do() -> None:
        try:
            call()
        except BaseException:  # noqa: BLE001 - a stream of the user's; the process is about to end anyway
            pass
        finally:
            done.open()

    try:
        pool.engage(do)
    except RuntimeError:  # no thread can be started any more
        do()
    done.wait(1.0)
