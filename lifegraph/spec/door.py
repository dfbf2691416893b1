"""The door: every shape a user hands in becomes one `Spec` here, once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from ..errors import DeclarationError, Fault, did_you_mean, message, short
from ..parameters import evaluate, parameters, provided, takes_any_keyword
from .hooks import HOOKED, faulty_options, hooks_of, left_and_stopped, named_hooks
from .values import ATTRIBUTE, OPTIONS, Declared, Form, Spec, Whom, Wish

__all__ = ["built", "context", "declaration", "describe", "read"]


def describe(target: Any, options: dict[str, Any], where: str, scope: Mapping[str, Any]) -> list[Fault]:
    """Attach ``options`` to a class or function; return what is wrong with them (then nothing is attached).

    ``scope`` has the names at the place of declaration; nothing of it is kept.
    """
    label = getattr(target, "__name__", repr(target))
    whom = f"{label} ({short(where)})"
    if not isinstance(target, type) and not inspect.isfunction(target):
        return [Fault(DeclarationError, message(f"cannot describe {whom}: not a class or function",
                hint="adopt a live object with graph.add(obj, stop=...)"))]  # fmt: skip
    faults = faulty_options(options, whom)
    if isinstance(target, type):
        inherited: dict[str, Any] = {}
        for ancestor in reversed(target.__mro__[1:]):
            if isinstance(declared := vars(ancestor).get(ATTRIBUTE), Declared):
                inherited |= declared.options
        options = inherited | options
        if not faults:
            named_hooks(target, dict(options), whom, faults)
    else:
        if not options.get("provides") and isinstance(kind := _returned(target, scope), type):
            options["provides"] = kind
        faults += left_and_stopped(_form(target), options, whom)
    if not faults:
        if "depends_on" in options:
            options["depends_on"] = tuple(options["depends_on"])
        setattr(target, ATTRIBUTE, Declared(options, where))
    return faults


def read(
    target: Any, options: Mapping[str, Any], where: str, defaults: Mapping[str, Any], faults: list[Fault]
) -> Spec | None:
    """The `Spec` of whatever was handed in. What is wrong is added to ``faults``; then None is returned."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}
    again = isinstance(target, functools.partial) or options.get("name") is not None
    if isinstance(target, functools.partial):
        target, args, kwargs = target.func, target.args, target.keywords
    form = _form(target)
    declared = declaration(target if form is not Form.LIVE else type(target))
    label = _label(target, form)
    found, said = len(faults), options
    if declared is not None:
        options = {**declared.options, **options}
        where = declared.where if form is not Form.LIVE else where
    whom = Whom(label, where)
    if options:
        own = {key: value for key, value in options.items() if key not in HOOKED}
        faults += faulty_options(own, whom) + left_and_stopped(form, options, whom)
    if len(faults) > found:
        return None
    wishes = _wishes(said, declared.options if declared else {})
    live = target if form is Form.LIVE else None
    kind = target if form is Form.CLASS else type(target) if form is Form.LIVE else None
    provides = options.get("provides") or kind or _returned(target, {})
    by_name = declared is not None
    if kind is None and not form.leaves and "stop" not in options:  # a function: its product must tell
        kind = provides or object
        by_name = declaration(kind) is not None
    hooks = hooks_of(kind, live, options, defaults, whom, faults, declared=by_name)
    if len(faults) > found:
        return None
    again = again and form is not Form.LIVE
    return Spec(form, target, label, where, hooks, options.get("name"), provides, wishes, args, kwargs, again)


def built(
    target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any], where: str, defaults: Any
) -> Spec:
    """The spec of something to be constructed with these arguments; raises `DeclarationError`."""
    faults: list[Fault] = []
    inner = target.func if isinstance(target, functools.partial) else target
    label = getattr(inner, "__name__", type(inner).__name__)
    if not isinstance(inner, type) and not inspect.isroutine(inner):
        raise DeclarationError(Fault(DeclarationError, message(f"cannot create {label} ({short(where)})",
                why="create takes a class, a factory function or a partial of one",
                hint="graph.add(obj, stop=...) takes a live object in")))  # fmt: skip
    given = target.keywords if isinstance(target, functools.partial) else {}
    known = [parameter.name for parameter in parameters(inner)]
    for name in known:
        if name in options and name not in given:
            faults.append(Fault(DeclarationError, message(f"{name!r} is an option of create and a parameter of {label}",
                    hint=f"functools.partial({label}, {name}=...) gives it to {label}")))  # fmt: skip
    for name in kwargs:
        near = did_you_mean(name, OPTIONS)
        if near and name not in known and not takes_any_keyword(inner):
            faults.append(
                Fault(DeclarationError, message(f"{name!r} is no option, and no parameter of {label}", hint=near))
            )
    if faults:
        raise DeclarationError.of(faults)
    spec = read(functools.partial(target, *args, **kwargs), options, where, defaults, faults)
    if spec is None or faults:
        raise DeclarationError.of(faults)
    return spec


def context(
    cm: Any, options: Mapping[str, Any], where: str, defaults: Mapping[str, Any], *, awaited: bool = False
) -> Spec:
    """The `Spec` of a context manager that the graph is to enter and leave; ``awaited`` prefers the async way."""
    kind, faults = type(cm), list[Fault]()
    label, asynchronous = kind.__name__, hasattr(kind, "__aenter__") and (awaited or not hasattr(kind, "__enter__"))
    whom = f"{label} ({short(where)})"
    if not asynchronous and not (hasattr(kind, "__enter__") and hasattr(kind, "__exit__")):
        faults.append(Fault(DeclarationError, message(f"cannot enter {whom}: it is no context manager",
                hint="graph.add(obj, stop=...) adopts any object")))  # fmt: skip
    form = Form.ASYNC_CONTEXT if asynchronous else Form.CONTEXT
    faults += faulty_options(options, whom) + left_and_stopped(form, options, whom)
    hooks = hooks_of(None, cm, {"start": None, **options, "stop": None}, defaults, whom, faults, declared=True)
    if faults:
        raise DeclarationError.of(faults)
    return Spec(form, cm, label, where, hooks, options.get("name"), options.get("provides"), _wishes(options, {}))


def declaration(target: Any) -> Declared | None:
    """What `resource` attached to this class (or an ancestor) or function."""
    declared = getattr(target, ATTRIBUTE, None)
    return declared if isinstance(declared, Declared) else None


def _wishes(said: Mapping[str, Any], declared: Mapping[str, Any]) -> tuple[Wish, ...]:
    """What a verb says, and what the declaration says of anything else."""
    own = [w if isinstance(w, Wish) else Wish(w) for w in said.get("depends_on", ())]
    named = {id(wish.key) for wish in own} | {wish.key for wish in own if isinstance(wish.key, str)}
    theirs = [w if isinstance(w, Wish) else Wish(w) for w in declared.get("depends_on", ())]
    return (*(w for w in theirs if id(w.key) not in named and not (isinstance(w.key, str) and w.key in named)), *own)


def _returned(target: Any, scope: Mapping[str, Any]) -> type | None:
    """The class that a factory function says it provides, where its annotation can be read."""
    annotation = getattr(target, "__annotations__", {}).get("return")
    try:
        return provided(evaluate(annotation, target, scope), yields=_form(target) is not Form.FUNCTION)
    except Exception:  # noqa: BLE001 - an annotation is any expression; whoever asks for the class is told
        return None


def _form(target: Any) -> Form:
    if isinstance(target, type):
        return Form.CLASS
    if not inspect.isroutine(target):
        return Form.LIVE
    if inspect.isasyncgenfunction(target):
        return Form.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(target):
        return Form.GENERATOR
    return Form.COROUTINE if inspect.iscoroutinefunction(target) else Form.FUNCTION


def _label(target: Any, form: Form) -> str:
    return type(target).__name__ if form is Form.LIVE else getattr(target, "__name__", None) or repr(target)
