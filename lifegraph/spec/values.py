"""The values: what a user may say of a resource, and the one inner shape it becomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias, TypedDict

from ..errors import short

__all__ = [
    "ATTRIBUTE",
    "LANES",
    "OPTIONS",
    "ROLES",
    "Declared",
    "Form",
    "Hook",
    "Hooks",
    "Options",
    "Spec",
    "Whom",
    "Wish",
    "seconds_of",
]

ATTRIBUTE: Final = "__lifegraph__"
LANES: Final = ("worker", "dedicated", "caller", "loop")
ROLES: Final = ("start", "stop", "drain", "salvage", "kill", "is_stopped")

Hook: TypeAlias = str | Callable[[Any], object] | None


class Options(TypedDict, total=False):
    """What `resource` and the graph's verbs take; all optional. Timeouts are seconds, None waits for ever."""

    name: str
    provides: type
    depends_on: Iterable[object]
    start: Hook
    stop: Hook
    drain: Hook
    salvage: Hook
    kill: Hook
    is_stopped: Hook
    start_timeout: float | None
    drain_timeout: float | None
    stop_timeout: float | None
    kill_timeout: float | None
    salvage_timeout: float | None
    is_stopped_timeout: float | None
    lane: str
    atomic_start: bool


OPTIONS: Final = tuple(Options.__annotations__)


class Whom:
    """A resource as messages say it, worked out only when one is written."""

    __slots__ = ("_label", "_where")

    def __init__(self, label: str, where: str) -> None:
        self._label = label
        self._where = where

    def __str__(self) -> str:
        return f"{self._label} ({short(self._where)})"


class Form(Enum):
    """How a resource comes to be."""

    LIVE = "a live object"
    CLASS = "a class"
    FUNCTION = "a factory function"
    COROUTINE = "an async factory function"
    GENERATOR = "a generator function"
    ASYNC_GENERATOR = "an async generator function"
    CONTEXT = "a context manager"
    ASYNC_CONTEXT = "an async context manager"

    def __init__(self, text: str) -> None:
        self.leaves = "generator" in text or "manager" in text
        """Its stop is leaving it, not a hook."""  # asked often, so worked out once

    @property
    def enters(self) -> bool:
        """It is a context manager."""
        return self in (Form.CONTEXT, Form.ASYNC_CONTEXT)

    @property
    def constructed(self) -> bool:
        """The graph makes it, from a class or a function."""
        return self not in (Form.LIVE, Form.CONTEXT, Form.ASYNC_CONTEXT)

    @property
    def asynchronous(self) -> bool:
        """It comes to be on a loop."""
        return self in (Form.COROUTINE, Form.ASYNC_GENERATOR, Form.ASYNC_CONTEXT)


@dataclass(frozen=True, slots=True)
class Wish:
    """One entry of ``depends_on``: a class, factory, instance or name, and what kind of edge it makes."""

    key: object
    uses: bool = True
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a resource (a method's name, or a callable that gets the object), with limits in seconds."""

    start: Hook = None
    stop: Hook = None
    drain: Hook = None
    salvage: Hook = None
    kill: Hook = None
    is_stopped: Hook = None
    start_timeout: float | None = 60.0
    drain_timeout: float | None = 5.0
    stop_timeout: float | None = 10.0
    kill_timeout: float | None = 5.0
    salvage_timeout: float | None = 2.0
    is_stopped_timeout: float | None = 1.0
    lane: str | None = None
    atomic_start: bool = False
    loops: frozenset[str] = frozenset()  # those that run on the loop: async functions, or all by lane="loop"


@dataclass(frozen=True, slots=True)
class Declared:
    """What `resource` attaches: the options said there, and where."""

    options: Mapping[str, Any]
    where: str


@dataclass(slots=True, eq=False)
class Spec:
    """One resource as asked for. ``target`` is what constructs it, or the live object itself."""

    form: Form
    target: Any
    label: str
    where: str
    hooks: Hooks
    name: str | None = None
    provides: type | None = None
    wishes: tuple[Wish, ...] = ()
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None
    again: bool = False  # meant to be there more than once

    @property
    def kinds(self) -> tuple[type, ...]:
        """The classes for which it answers: its own, and what it provides."""
        own = self.target if self.form is Form.CLASS else type(self.target) if self.form is Form.LIVE else None
        return tuple(dict.fromkeys(kind for kind in (own, self.provides) if kind is not None))

    @property
    def on_loop(self) -> bool:
        """Something of it runs on an event loop."""
        return bool(self.hooks.loops) or self.form.asynchronous or self.hooks.lane == "loop"


def seconds_of(limit: float | None) -> float:
    """A limit as a number: None, which waits for ever, is infinity."""
    return math.inf if limit is None else limit
