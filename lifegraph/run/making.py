"""How one resource comes to be: constructed, entered, or stepped to its yield; and how it is left again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any

from ..errors import HookError
from ..model import GRAPH
from ..parameters import signature
from ..spec import Form, Spec
from .lives import Leaving, Lives

__all__ = ["filled", "make"]


def make(spec: Spec, fill: Callable[[], dict[str, object]], context: Context | None) -> tuple[Any, Leaving | None]:
    """Make the resource of ``spec``: what it provides (or an awaitable for that), and how it is left, if it is."""
    match spec.form:
        case Form.CONTEXT:
            return _enter(spec.target, context)
        case Form.ASYNC_CONTEXT:
            return _aenter(spec.target)
        case Form.GENERATOR:
            return _first(spec.label, _call(spec, fill()), context)
        case Form.ASYNC_GENERATOR:
            return _afirst(spec.label, _call(spec, fill()))
        case _:
            return _call(spec, fill()), None


def filled(lives: Lives, graph: object, member: int) -> dict[str, object]:
    """The arguments that the graph fills for this member."""
    arguments: dict[str, object] = {}
    for parameter, members, many in lives.model.fillings.get(member, ()):
        values = [graph if m == GRAPH else lives.things[m] for m in members]
        arguments[parameter] = many(values) if many else values[0] if values else None
    return arguments


def _call(spec: Spec, arguments: dict[str, object]) -> Any:
    kwargs = spec.kwargs or {}
    known = signature(spec.target) if arguments else None
    if known is None:
        return spec.target(*spec.args, **kwargs, **arguments)
    bound = known.bind_partial(*spec.args, **kwargs)
    bound.arguments.update(arguments)
    return spec.target(*bound.args, **bound.kwargs)


def _told(body: BaseException | None) -> tuple[Any, Any, Any]:
    return (None, None, None) if body is None else (type(body), body, body.__traceback__)


def _enter(cm: Any, context: Context | None) -> tuple[Any, Leaving]:
    kind = type(cm)
    entered = kind.__enter__(cm)

    def leave(body: BaseException | None) -> object:
        return kind.__exit__(cm, *_told(body))

    return entered, Leaving(cm, leave, context)


def _aenter(cm: Any) -> tuple[Awaitable[Any], Leaving]:
    kind = type(cm)

    def leave(body: BaseException | None) -> object:
        return kind.__aexit__(cm, *_told(body))

    return kind.__aenter__(cm), Leaving(cm, leave, None)


def _first(label: str, generator: Any, context: Context | None) -> tuple[Any, Leaving]:
    try:
        provided = next(generator)
    except StopIteration:
        raise HookError(f"{label} yielded nothing: a generator resource yields exactly once") from None

    def leave(_: BaseException | None) -> None:
        try:
            next(generator)
        except StopIteration:
            return
        raise HookError(f"{label} yielded twice: a generator resource yields exactly once")

    return provided, Leaving(generator, leave, context)


def _afirst(label: str, generator: Any) -> tuple[Awaitable[Any], Leaving]:
    async def step() -> Any:
        try:
            return await generator.__anext__()
        except StopAsyncIteration:
            raise HookError(f"{label} yielded nothing: a generator resource yields exactly once") from None

    async def leave(_: BaseException | None) -> None:
        try:
            await generator.__anext__()
        except StopAsyncIteration:
            return
        raise HookError(f"{label} yielded twice: a generator resource yields exactly once")

    return step(), Leaving(generator, leave, None)
