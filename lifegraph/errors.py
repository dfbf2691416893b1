"""What can go wrong, each said once: what, whom, where, why, and the cure.

Every error is a `LifegraphError` and also of the builtin kind that a reader would expect. All are plain
values: they may be pickled, and raised from any thread.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Self

__all__ = [
    "PACKAGE",
    "AmbiguousDependencyError",
    "CycleError",
    "DeclarationError",
    "DuplicateNameError",
    "Fault",
    "GraphClosingError",
    "GraphStateError",
    "HookError",
    "HookInterrupted",
    "HookTimeout",
    "InternalError",
    "LifegraphError",
    "MissingDependencyError",
    "NotAttempted",
    "PoisonedError",
    "ReentrantTeardownError",
    "StartError",
    "TeardownError",
    "did_you_mean",
    "message",
    "short",
]


class LifegraphError(Exception):
    """The root of all errors of this library."""


class DeclarationError(LifegraphError, ValueError):
    """Something declared cannot be: all faults found, in one error, before anything was started.

    Raised as the subclass when all faults are of that kind.
    """

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults: tuple[Fault, ...] = faults

    def __str__(self) -> str:
        if len(self.faults) == 1:
            return str(self.faults[0])
        return "\n".join([f"{len(self.faults)} faults", *(f"{n}. {fault}" for n, fault in enumerate(self.faults, 1))])

    @classmethod
    def of(cls, faults: Sequence[Fault]) -> DeclarationError:
        """The one error that says all ``faults``."""
        kinds = {fault.kind for fault in faults}
        kind = kinds.pop() if len(kinds) == 1 else DeclarationError
        return kind(*faults)


class CycleError(DeclarationError):
    """Resources depend on each other in a circle, so none of them could stop first."""


class MissingDependencyError(DeclarationError, LookupError):
    """Nothing in the graph is what was asked for."""


class AmbiguousDependencyError(DeclarationError, LookupError):
    """More than one resource is what was asked for."""


class DuplicateNameError(DeclarationError):
    """A name, or an object, is in the graph already."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a declaration: its kind, and its text for people."""

    kind: type[DeclarationError]
    text: str

    def __str__(self) -> str:
        return self.text


class GraphStateError(LifegraphError, RuntimeError):
    """The verb does not fit the state that the graph, or the resource, is in."""


class GraphClosingError(GraphStateError):
    """The graph is being torn down, or was: nothing can be added or started.

    Out of a start that was called off, ``report`` (a `Report`) tells how the teardown went.
    """

    report: Any = None


class ReentrantTeardownError(GraphStateError):
    """A hook asked for the teardown that waits for that very hook. `request_teardown` is the way."""


class PoisonedError(GraphStateError):
    """The resource may still be in use by a dependent that is not proven stopped."""


class HookError(LifegraphError, RuntimeError):
    """A hook failed."""


class HookTimeout(HookError, TimeoutError):
    """A hook still ran at its limit. It may still be running."""


class HookInterrupted(HookError):
    """A hook raised a `BaseException` that is no `Exception`; the original is the cause."""


class NotAttempted(HookError):
    """A stop was not attempted for want of time."""


class InternalError(LifegraphError, RuntimeError):
    """A bug in lifegraph; whatever was unsettled then counts as not proven stopped. Please report it."""


class _GroupError(LifegraphError, ExceptionGroup[Exception]):
    """An `ExceptionGroup` that carries the report; splitting it keeps the report."""

    report: Any

    def __new__(cls, text: str, errors: Sequence[Exception], report: Any = None) -> Self:
        self = super().__new__(cls, text, errors)
        self.report = report
        return self

    def __init__(self, text: str, errors: Sequence[Exception], report: Any = None) -> None:
        super().__init__(text, errors)

    def derive(self, errors: Sequence[Exception], /) -> Self:  # type: ignore[override]  # narrower: only Exceptions
        return type(self)(self.message, errors, self.report)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, list(self.exceptions), self.report)


class StartError(_GroupError):
    """The graph did not start. What was up has been torn down; ``report`` (a `Report`) tells how that went."""


class TeardownError(_GroupError):
    """Something was not released; ``report`` (a `Report`) tells what and why."""


def message(headline: str, **lines: str | Sequence[str] | None) -> str:
    """The shape of all messages: a headline, then aligned lines, one for each keyword that says something.

    >>> print(message("cannot release Pool (app.py:4): poisoned", because="Client failed", hint=None))
    cannot release Pool (app.py:4): poisoned
      because  Client failed
    """
    text = [headline]
    for key, value in lines.items():
        rows = value.splitlines() if isinstance(value, str) else value or ()
        text += [
            f"  {key if first else '':<8} {row}" for first, row in zip((True, *[False] * len(rows)), rows, strict=False)
        ]
    return "\n".join(text)


def did_you_mean(word: object, known: Sequence[str]) -> str | None:
    """A hint that names the nearest of ``known``, or None when none is near."""
    near = get_close_matches(str(word), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else None


PACKAGE: Final = str(Path(__file__).parent)  # frames of files in here are ours, and not the user's


def short(where: str) -> str:
    """``file:line`` as people read it: without the working directory, where there still is one."""
    try:
        return where.removeprefix(os.getcwd() + os.sep)
    except OSError:
        return where
