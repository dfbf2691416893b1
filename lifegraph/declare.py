"""The user's language: what is written next to a class, a factory or a parameter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, Unpack, overload

from .errors import DeclarationError
from .spec import Options, Wish, describe

__all__ = ["T", "named", "optional", "order_only", "resource"]

T = TypeVar("T", bound=Callable[..., Any])


@overload
def resource(target: T, /) -> T: ...
@overload
def resource(**options: Unpack[Options]) -> Callable[[T], T]: ...


def resource(target: T | None = None, /, **options: Unpack[Options]) -> T | Callable[[T], T]:
    """Describe a class or a factory function as a resource, and return the same class or function.

    Nothing else happens: no registry, no base class, nothing stored on instances. A subclass inherits the
    description; decorating it again adds to it. Options are those of `Options`; timeouts are in seconds.
    Raises `DeclarationError` with all that is wrong with the description. Safe from any thread.

    >>> @resource(stop="shutdown", stop_timeout=5)
    ... class Pool:
    ...     def shutdown(self): ...
    """
    frame = sys._getframe(1)
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def decorate(target: T) -> T:
        faults = describe(target, dict(options), where, frame.f_locals)
        if faults:
            raise DeclarationError.of(faults)
        return target

    return decorate if target is None else decorate(target)


def order_only(dependency: object) -> Wish:
    """Depend on something for the order only: poison does not pass.

    Takes a class, factory, instance or name; also written ``Annotated[Metrics, order_only]``.

    >>> @resource(depends_on=[order_only("Metrics")])
    ... class Api: ...
    """
    wish = _wish(dependency)
    return Wish(wish.key, uses=False, optional=wish.optional)


def optional(dependency: object) -> Wish:
    """Depend on something if it is in the graph; it is not pulled in.

    Takes what `order_only` takes, or what that returns; also written ``Annotated[Cache, optional]``, or as a
    parameter ``cache: Cache | None = None``.
    """
    wish = _wish(dependency)
    return Wish(wish.key, uses=wish.uses, optional=True)


class named:
    """In ``Annotated[View, named("nixl")]``: the resource of that name, not just any `View`."""

    __slots__ = ("name",)
    __lifegraph_mark__ = "named"

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"named({self.name!r})"


def _wish(dependency: object) -> Wish:
    return dependency if isinstance(dependency, Wish) else Wish(dependency)


order_only.__lifegraph_mark__ = "order_only"  # type: ignore[attr-defined]  # how a bare Annotated mark is known
optional.__lifegraph_mark__ = "optional"  # type: ignore[attr-defined]  # the same
