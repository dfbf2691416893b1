"""Where a thread or a task is, as text, from the user's first frame on."""

from __future__ import annotations

import gc
import sys
import traceback
import types
from types import FrameType
from typing import Any

from ..errors import PACKAGE

__all__ = ["of_awaitable", "of_thread"]


def of_thread(thread: int) -> str | None:
    """Where the thread with this ident is; None when there is none."""
    frame = sys._current_frames().get(thread)
    return None if frame is None else _shown(list(traceback.walk_stack(frame))[::-1])


def of_awaitable(awaitable: Any) -> str | None:
    """Where a coroutine (or generator) that is being awaited hangs, to the innermost await; None for what has no frame."""
    found: list[tuple[FrameType, int]] = []
    while awaitable is not None:
        frame = next(
            (f for f in (getattr(awaitable, name, None) for name in ("cr_frame", "gi_frame", "ag_frame")) if f), None
        )
        if frame is not None:
            found.append((frame, frame.f_lineno))
        if frame is None and "async_generator" in type(awaitable).__name__:  # the step of one, which hides it
            generators = [g for g in gc.get_referents(awaitable) if isinstance(g, types.AsyncGeneratorType)]
            awaitable = generators[0] if generators else None
            continue
        inner = next(
            (i for i in (getattr(awaitable, name, None) for name in ("cr_await", "gi_yieldfrom", "ag_await")) if i),
            None,
        )
        if inner is None and frame is None:
            break
        awaitable = inner
    return _shown(found) if found else None


def _shown(frames: list[tuple[FrameType, int]]) -> str:
    lines = traceback.StackSummary.extract(iter(frames), lookup_lines=True)
    ours = [place for place, line in enumerate(lines) if line.filename.startswith(PACKAGE)]
    theirs = lines[ours[-1] + 1 :] if ours else lines
    return "".join(traceback.format_list(theirs or lines)).rstrip()
