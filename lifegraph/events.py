"""What happened: frozen facts, most of them in pairs (began, ended).

Observers get them in the order in which they happened, on a thread of their own. They are plain data: names
and numbers, no live object. Times are seconds on the monotonic clock of this process.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

__all__ = [
    "AnswerLate",
    "Event",
    "Fate",
    "HookBegan",
    "HookEnded",
    "NoteTaken",
    "ResourceSettled",
    "StartBegan",
    "StartEnded",
    "StillWaiting",
    "TeardownBegan",
    "TeardownEnded",
]


class Fate(StrEnum):
    """How a resource ended. Every resource of a teardown has exactly one."""

    RELEASED = "released"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    POISONED = "poisoned"
    ABANDONED = "abandoned"
    SKIPPED = "skipped"

    @property
    def unproven(self) -> bool:
        """Not proven stopped by itself: it poisons what it depends on."""
        return self in (Fate.FAILED, Fate.TIMED_OUT, Fate.ABANDONED)

    @property
    def held(self) -> bool:
        """Never released: its object is kept in quarantine."""
        return self not in (Fate.RELEASED, Fate.SKIPPED)


@dataclass(frozen=True, slots=True)
class StartBegan:
    """A start began, of so many resources."""

    graph: str
    at: float
    resources: int


@dataclass(frozen=True, slots=True)
class StartEnded:
    """The start ended; not ok means that it was rolled back."""

    graph: str
    at: float
    seconds: float
    ok: bool


@dataclass(frozen=True, slots=True)
class TeardownBegan:
    """A teardown began, of so many resources; ``grace`` in seconds, or None."""

    graph: str
    at: float
    resources: int
    grace: float | None


@dataclass(frozen=True, slots=True)
class TeardownEnded:
    """The teardown ended; ``held`` names what was not released."""

    graph: str
    at: float
    seconds: float
    ok: bool
    held: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HookBegan:
    """User code of one resource began to run: ``hook`` is ``start``, ``stop``, ..."""

    graph: str
    at: float
    resource: str
    hook: str
    generation: int = 1


@dataclass(frozen=True, slots=True)
class HookEnded:
    """It returned, raised (``error``), or was given up where it hangs (``timed_out``)."""

    graph: str
    at: float
    resource: str
    hook: str
    seconds: float
    error: str | None = None
    error_type: str | None = None
    timed_out: bool = False
    generation: int = 1


@dataclass(frozen=True, slots=True)
class ResourceSettled:
    """A resource of a teardown has its fate without having been attempted."""

    graph: str
    at: float
    resource: str
    fate: Fate
    generation: int = 1


@dataclass(frozen=True, slots=True)
class AnswerLate:
    """A hook that had been given up has ended after all. It changes nothing in the report."""

    graph: str
    at: float
    resource: str
    hook: str
    seconds: float
    error: str | None = None
    generation: int = 1


@dataclass(frozen=True, slots=True)
class NoteTaken:
    """Something worth knowing that changes no fate."""

    graph: str
    at: float
    note: str


@dataclass(frozen=True, slots=True)
class StillWaiting:
    """The run waits for these hooks, and has done so for a while."""

    graph: str
    at: float
    seconds: float
    pending: tuple[str, ...]


Event: TypeAlias = (
    StartBegan
    | StartEnded
    | TeardownBegan
    | TeardownEnded
    | HookBegan
    | HookEnded
    | ResourceSettled
    | AnswerLate
    | NoteTaken
    | StillWaiting
)
