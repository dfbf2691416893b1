"""Steps of a coroutine, taken one by one: in a context that is not its task's, and unknown to its loop."""

from __future__ import annotations

import sys
import types
from collections.abc import Coroutine, Generator
from contextvars import Context
from functools import partial
from typing import Any, Final

__all__ = ["driven", "stepped", "unknown"]

_NOTHING: Final = object()


def stepped(
    coroutine: Coroutine[Any, Any, Any], got: Any, thrown: BaseException | None, context: Context | None
) -> tuple[bool, Any]:
    """One step: whether it is over, and what it waits for.

    No async generator which it steps first gets to know the loop: a loop that ends closes every async generator it
    knows, and with it what that holds.
    """
    step = partial(coroutine.send, got) if thrown is None else partial(coroutine.throw, thrown)
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, hooks.finalizer)  # what a hook drops is still closed by its loop
    try:
        return False, step() if context is None else context.run(step)
    except StopIteration:
        return True, None
    finally:
        sys.set_asyncgen_hooks(*hooks)


def driven(
    coroutine: Coroutine[Any, Any, Any], context: Context | None = None, *, waits_for: Any = _NOTHING
) -> Generator[Any, Any, None]:
    """Bring ``coroutine`` to its end, in ``context`` where that is not the task's. It may have begun, and wait."""
    over, due = False, waits_for
    if due is _NOTHING:
        over, due = stepped(coroutine, None, None, context)
    while not over:
        got, thrown = None, None
        try:
            got = yield due
        except BaseException as why:  # noqa: BLE001 - whatever is thrown in belongs to the coroutine
            thrown = why
        over, due = stepped(coroutine, got, thrown, context)


unknown: Final = types.coroutine(driven)
