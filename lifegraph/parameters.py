"""What a constructor or factory asks for, read from its signature.

Annotations may be strings, or name what is imported under ``TYPE_CHECKING`` only: they are read when the
graph is checked, each by itself, with the names of the graph's own classes as a last resort.
"""

from __future__ import annotations

import builtins
import inspect
import sys
import types
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from typing import Annotated, Any, ForwardRef, Union, get_args, get_origin

__all__ = ["Asked", "Parameter", "asked", "evaluate", "parameters", "provided", "signature", "takes_any_keyword"]

_NOTHING = inspect.Parameter.empty
_MANY: Mapping[object, Callable[[Iterable[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: list,
    Sequence: tuple,
    Collection: tuple,
    Iterable: tuple,
}
_YIELDS = (Iterator, Generator, Iterable, AsyncIterator, AsyncGenerator, AsyncIterable, Awaitable, Coroutine)
_UNASKABLE = (Any, object, type(None), str, bytes, int, float, bool, complex, dict, list, tuple, set, frozenset, type)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a target, with its annotation as written."""

    name: str
    annotation: object
    required: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What one annotation asks a graph for: any of ``keys``; as a collection built by ``many``, or just one."""

    keys: tuple[type, ...] = ()
    many: Callable[[Iterable[Any]], Any] | None = None
    optional: bool = False
    order_only: bool = False
    named: str | None = None


def signature(target: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of ``target`` without ``self``, or None where it has none (some builtins)."""
    try:
        return inspect.signature(target)
    except (ValueError, TypeError):
        return None


def parameters(target: Callable[..., Any]) -> list[Parameter]:
    """The parameters of ``target`` that could be filled by name or position."""
    known = signature(target)
    if known is None:
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        Parameter(p.name, p.annotation, p.default is _NOTHING)
        for p in known.parameters.values()
        if p.kind not in variadic
    ]


def takes_any_keyword(target: Callable[..., Any]) -> bool:
    """Whether ``target`` takes keywords that its signature does not name, or has none."""
    known = signature(target)
    return known is None or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.parameters.values())


def evaluate(annotation: object, target: Any, members: Mapping[str, type]) -> object:
    """``annotation`` of ``target`` as an object; raises what evaluating its text raises (mostly NameError)."""
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        names = _Names(target, members)
        return evaluate(eval(annotation, {"__builtins__": builtins}, names), target, members)  # noqa: S307 - the user's own source text
    if isinstance(annotation, typing.TypeVar):
        return Any
    if isinstance(annotation, types.GenericAlias | types.UnionType) or get_origin(annotation) is not None:
        return _evaluate_inside(annotation, target, members)
    return annotation


def asked(annotation: object, owner: type) -> Asked | type[Any] | None:
    """What an evaluated annotation asks for: ``owner`` itself for the graph's own class, None for nothing askable."""
    if annotation is owner:
        return owner
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = asked(args[0], owner)
        return _qualified(inner, args[1:]) if isinstance(inner, Asked) else inner
    if origin is Union or origin is types.UnionType:
        return _any_of(args, owner)
    if origin in _MANY and args and (origin is not tuple or args[1:] == (...,)):
        inner = asked(args[0], owner)
        return replace(inner, many=_MANY[origin]) if isinstance(inner, Asked) and inner.many is None else None
    if isinstance(origin, type) and origin not in _MANY and origin not in _YIELDS:
        annotation = origin  # Pool[int] asks for a Pool
    if isinstance(annotation, type) and annotation not in _UNASKABLE:
        return Asked((annotation,))
    return None


def provided(annotation: object, *, yields: bool) -> type | None:
    """The class that a factory with this evaluated return annotation provides."""
    if yields and get_origin(annotation) in _YIELDS:
        args = get_args(annotation)
        annotation = args[-1] if get_origin(annotation) is Coroutine else args[0] if args else None
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    origin = get_origin(annotation)
    if isinstance(origin, type):
        annotation = origin
    return annotation if isinstance(annotation, type) and annotation not in _UNASKABLE else None


class _Names(dict[str, Any]):
    """What a name in an annotation of ``target`` means: its class, its module, and then the graph's members."""

    def __init__(self, target: Any, members: Mapping[str, type]) -> None:
        super().__init__()
        kinds = target.__mro__[:-1] if isinstance(target, type) else ()
        made = next((vars(kind)["__init__"] for kind in kinds if "__init__" in vars(kind)), target)
        function = inspect.unwrap(made)
        modules = [sys.modules.get(getattr(owner, "__module__", "")) for owner in kinds or (target,)]
        cells = zip(_free(function), getattr(function, "__closure__", None) or (), strict=False)
        self._scopes: tuple[Mapping[str, Any], ...] = (
            dict(_contents(cells)),
            getattr(function, "__globals__", {}),
            *(vars(kind) for kind in kinds),
            *(vars(module) for module in modules if module is not None),
            vars(builtins),
            members,
        )

    def __missing__(self, name: str) -> Any:
        for scope in self._scopes:
            if name in scope:
                return scope[name]
        raise NameError(f"name {name!r} is not defined", name=name)


def _free(function: Any) -> tuple[str, ...]:
    return function.__code__.co_freevars if inspect.isfunction(function) else ()


def _contents(cells: Iterable[tuple[str, types.CellType]]) -> Iterator[tuple[str, Any]]:
    for name, cell in cells:
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _evaluate_inside(annotation: Any, target: Any, members: Mapping[str, type]) -> object:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Annotated[(evaluate(args[0], target, members), *args[1:])]
    if origin is typing.Literal or origin is Callable:
        return annotation
    inner = tuple(evaluate(arg, target, members) if isinstance(arg, str | ForwardRef) else arg for arg in args)
    inner = tuple(_evaluate_inside(arg, target, members) if get_args(arg) else arg for arg in inner)
    if inner == args:
        return annotation
    if origin is Union or origin is types.UnionType:
        return Union[inner]  # noqa: UP007 - built at run time
    return origin[inner] if origin is not None else annotation


def _qualified(inner: Asked, marks: Iterable[object]) -> Asked:
    for mark in marks:
        kind = getattr(mark, "__lifegraph_mark__", None)
        if kind == "order_only":
            inner = replace(inner, order_only=True)
        elif kind == "optional":
            inner = replace(inner, optional=True)
        elif kind == "named":
            inner = replace(inner, named=mark.name)  # type: ignore[attr-defined]  # what `named` returns has it
    return inner


def _any_of(args: Iterable[object], owner: type) -> Asked | type[Any] | None:
    optional, found = False, []
    for arg in args:
        if arg is type(None):
            optional = True
        elif (inner := asked(arg, owner)) is owner:
            return owner
        elif isinstance(inner, Asked):
            found.append(inner)
    if not found:
        return None
    keys = tuple(key for inner in found for key in inner.keys)
    return replace(found[0], keys=keys, optional=optional or found[0].optional)
