"""The faults of asking: nothing there, more than one there, nothing to fill a parameter with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ..errors import (
    AmbiguousDependencyError,
    CycleError,
    DeclarationError,
    Fault,
    MissingDependencyError,
    did_you_mean,
    message,
    short,
)

__all__ = ["ambiguous", "called", "cycle", "missing", "unfilled"]

_SHOWN: Final = 20  # names of a cycle that are shown


def missing(asker: str, key: object, title: str, names: Sequence[str], parameter: str | None = None) -> Fault:
    """``asker`` needs ``key``, which graph ``title`` with these ``names`` has not."""
    what = called(key)
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    if near := did_you_mean(key if isinstance(key, str) else what, names):
        hint = near
    elif isinstance(key, type):
        hint = f"decorate {what} with @resource, or graph.add an instance of it"
        if parameter is not None:
            hint += f", or give the argument with functools.partial(..., {parameter}=...)"
    else:
        hint = "add it first: graph.add(...)"
    text = message(f"{asker} needs {what}, which graph {title!r} has not", has=shown or "nothing", hint=hint)
    return Fault(MissingDependencyError, text)


def ambiguous(asker: str, key: object, candidates: Sequence[str]) -> Fault:
    """``asker`` asks for ``key``, which any of these could be."""
    cure = 'say which: Annotated[..., named("...")], a name in depends_on, or ask for list[...]'
    headline = f"{asker} {called(key)} could be any of {len(candidates)} resources"
    return Fault(AmbiguousDependencyError, message(headline, has=", ".join(candidates[:6]), hint=cure))


def unfilled(whom: str, label: str, parameter: str) -> Fault:
    """A required parameter that nothing can fill."""
    cure = f"functools.partial({label}, {parameter}=...), or graph.create({label}, {parameter}=...)"
    headline = f"{whom} needs an argument for {parameter!r}"
    return Fault(DeclarationError, message(headline, why="no resource of the graph can fill it", hint=cure))


def cycle(ring: Sequence[str], where: Sequence[str]) -> Fault:
    """A circle of dependencies, its first name said again at its end; ``where`` each edge was declared."""
    names = list(ring)
    edges = [f"{a} -> {b}  ({short(place)})" for (a, b), place in zip(pairwise(ring), where, strict=True)]
    if len(names) > _SHOWN:
        left_out = f"... {len(names) - _SHOWN} more ..."
        names = [*names[: _SHOWN // 2], left_out, *names[-_SHOWN // 2 :]]
        edges = [*edges[: _SHOWN // 2], left_out, *edges[-_SHOWN // 2 :]]
    why = "each waits for the next to have stopped, so none could stop first"
    cure = "drop one of these edges, or split a resource in two"
    return Fault(CycleError, message(f"cycle: {' -> '.join(names)}", edges=edges, why=why, hint=cure))


def called(key: object) -> str:
    """What people call a class, function, name or instance."""
    if isinstance(key, str):
        return repr(key)
    return getattr(key, "__name__", None) or f"this {type(key).__name__}"
