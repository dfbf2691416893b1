"""What user code raised, described as text while it can be."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import NamedTuple

from ..errors import PACKAGE, HookError, HookInterrupted

__all__ = ["Failure", "signed"]


class Failure(NamedTuple):
    """An exception out of user code, with its text, its type's name, and its traceback from the user's frames on."""

    error: BaseException
    text: str
    kind: str
    trace: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Describe ``error``, whatever its own methods do."""
        kind = type(error).__name__
        try:
            text = str(error) or kind
            trace = "".join(traceback.format_exception(type(error), error, _users(error.__traceback__)))
        except BaseException as why:  # noqa: BLE001 - the user's __str__ may raise anything, and it is no answer
            text = f"{kind}, whose text cannot be had: {type(why).__name__}"
            trace = text
        return cls(error, text, kind, trace)


def signed(error: BaseException, note: str, whence: str) -> Exception:
    """``error`` as an `ExceptionGroup` may carry it, with a note that names its resource."""
    if not isinstance(error, Exception):
        interrupted = HookInterrupted(f"{type(error).__name__} out of {whence}")
        interrupted.__cause__ = error
        error = interrupted
    try:
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    except Exception:  # noqa: BLE001 - an exception type that bears no notes is carried inside one that does
        carrier = HookError(f"{type(error).__name__} out of {whence}")
        carrier.__cause__ = error
        carrier.add_note(note)
        error = carrier
    return error


def _users(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the user's first frame on."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
        trace = trace.tb_next
    return trace
