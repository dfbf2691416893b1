"""What one resource is: name, wishes, hooks, limits, lane, file:line.

Whatever shape a user hands in (class, factory, partial, context manager, live object) becomes one `Spec`
here, at the door, once.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final, TypeAlias, TypedDict
from weakref import WeakKeyDictionary

from .errors import DeclarationError, Fault, did_you_mean, message, short
from .parameters import evaluate, provided

__all__ = ["ATTRIBUTE", "Declared", "Form", "Hook", "Hooks", "Options", "Spec", "Wish", "describe", "read"]

ATTRIBUTE: Final = "__lifegraph__"
LANES: Final = ("worker", "dedicated", "caller", "loop")
_STOPS: Final = ("stop", "shutdown", "close", "aclose")
_NAMED_HOOKS: Final = ("start", "drain", "salvage", "kill", "is_stopped")
_HOOKS: Final = ("start", "stop", "drain", "salvage", "kill", "is_stopped")

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

    @property
    def leaves(self) -> bool:
        """Its stop is leaving it, not a hook."""
        return self in (Form.GENERATOR, Form.ASYNC_GENERATOR, Form.CONTEXT, Form.ASYNC_CONTEXT)

    @property
    def enters(self) -> bool:
        """It is a context manager."""
        return self in (Form.CONTEXT, Form.ASYNC_CONTEXT)

    @property
    def asynchronous(self) -> bool:
        """It comes to be on a loop."""
        return self in (Form.COROUTINE, Form.ASYNC_GENERATOR, Form.ASYNC_CONTEXT)

    @property
    def awaits(self) -> bool:
        """An awaitable that its making gives stands for what it provides."""
        return self.asynchronous or self is Form.FUNCTION


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


def describe(target: Any, options: dict[str, Any], where: str, scope: Mapping[str, Any]) -> list[Fault]:
    """Attach ``options`` to a class or function; return what is wrong with them (then nothing is attached).

    ``scope`` has the names at the place of declaration; nothing of it is kept.
    """
    label = getattr(target, "__name__", repr(target))
    whom = f"{label} ({short(where)})"
    if not isinstance(target, type) and not inspect.isfunction(target):
        return [Fault(DeclarationError, message(f"cannot describe {whom}: not a class or function",
                hint="adopt a live object with graph.add(obj, stop=...)"))]  # fmt: skip
    faults = _faulty_options(options, whom)
    if isinstance(target, type):
        inherited: dict[str, Any] = {}
        for ancestor in reversed(target.__mro__[1:]):
            if isinstance(declared := vars(ancestor).get(ATTRIBUTE), Declared):
                inherited |= declared.options
        options = inherited | options
        if not faults:
            _named_hooks(target, dict(options), whom, faults)
    else:
        if not options.get("provides") and isinstance(kind := _returned(target, scope), type):
            options["provides"] = kind
        faults += _left_and_stopped(_form(target), options, whom)
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
    if declared is not None:
        options = {**declared.options, **options}
        if form is not Form.LIVE:
            where = declared.where
    found = len(faults)
    if options:
        faults += _faulty_options(options, f"{label} ({short(where)})")
        faults += _left_and_stopped(form, options, f"{label} ({short(where)})")
    if len(faults) > found:
        return None
    hooks = _hooks(target, form, declared is not None, options, defaults, f"{label} ({short(where)})", faults)
    if len(faults) > found:
        return None
    wishes = tuple(w if isinstance(w, Wish) else Wish(w) for w in options.get("depends_on", ()))
    provides = options.get("provides")
    if provides is None:
        provides = type(target) if form is Form.LIVE else target if form is Form.CLASS else _returned(target, {})
    again = again and form is not Form.LIVE
    return Spec(form, target, label, where, hooks, options.get("name"), provides, wishes, args, kwargs, again)


def context(cm: Any, options: Mapping[str, Any], where: str, defaults: Mapping[str, Any]) -> Spec:
    """The `Spec` of a context manager that the graph is to enter and leave."""
    kind, faults = type(cm), list[Fault]()
    label, asynchronous = kind.__name__, hasattr(kind, "__aenter__") and not hasattr(kind, "__enter__")
    whom = f"{label} ({short(where)})"
    if not asynchronous and not (hasattr(kind, "__enter__") and hasattr(kind, "__exit__")):
        faults.append(Fault(DeclarationError, message(f"cannot enter {whom}: it is no context manager",
                hint="graph.add(obj, stop=...) adopts any object")))  # fmt: skip
    form = Form.ASYNC_CONTEXT if asynchronous else Form.CONTEXT
    faults += _faulty_options(options, whom) + _left_and_stopped(form, options, whom)
    hooks = _hooks(cm, form, True, {"start": None, **options, "stop": None}, defaults, whom, faults)
    if faults:
        raise DeclarationError.of(faults)
    wishes = tuple(w if isinstance(w, Wish) else Wish(w) for w in options.get("depends_on", ()))
    return Spec(form, cm, label, where, hooks, options.get("name"), options.get("provides"), wishes)


def declaration(target: Any) -> Declared | None:
    """What `resource` attached to this class (or an ancestor) or function."""
    declared = getattr(target, ATTRIBUTE, None)
    return declared if isinstance(declared, Declared) else None


def _returned(target: Any, scope: Mapping[str, Any]) -> type | None:
    """The class that a factory function says it provides, where its annotation can be read."""
    annotation = getattr(target, "__annotations__", {}).get("return")
    try:
        return provided(evaluate(annotation, target, scope), yields=_form(target) is not Form.FUNCTION)
    except Exception:  # noqa: BLE001 - an annotation is any expression; whoever asks for the class is told
        return None


def _left_and_stopped(form: Form, options: Mapping[str, Any], whom: str) -> list[Fault]:
    if not form.leaves or options.get("stop") is None:
        return []
    return [Fault(DeclarationError, message(f"{whom} is {form.value} and has a stop hook too",
            hint="leaving it is its stop: leave stop= out"))]  # fmt: skip


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


def _hooks(
    target: Any,
    form: Form,
    declared: bool,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
    whom: str,
    faults: list[Fault],
) -> Hooks:
    kind = target if form is Form.CLASS else type(target) if form is Form.LIVE else None
    if form in (Form.FUNCTION, Form.COROUTINE) and "stop" not in options:
        kind = options.get("provides") or _returned(target, {}) or object
        declared = declaration(kind) is not None
    memo = _MEMO.setdefault(kind, {}) if kind is not None else {}
    options = {name: value for name, value in options.items() if name not in _NOT_HOOKS}
    key = (declared, *options.items(), *defaults.items())
    try:
        if (known := memo.get(key)) is not None:
            return known
    except TypeError:  # an unhashable option
        memo = {}
    chosen = {**defaults, **{key: value for key, value in options.items() if key in _CHOICES}}
    found = len(faults)
    live = target if form is Form.LIVE else None
    if kind is not None:
        if declared:
            _named_hooks(kind, chosen, whom, faults, live)
        elif "stop" not in options:
            faults.append(_unsaid_stop(kind, whom))
        else:
            _check_hooks(kind, chosen, whom, faults, live)
    finite = {key: None if value == math.inf else value for key, value in chosen.items()}
    hooks = Hooks(**finite, loops=frozenset(role for role in _HOOKS if _is_async(kind, live, chosen.get(role))))
    if len(faults) == found and all(isinstance(value, _PLAIN) for value in (*options.values(), *defaults.values())):
        if all(hasattr(kind, hook) for hook in (getattr(hooks, role) for role in _HOOKS) if isinstance(hook, str)):
            memo[key] = hooks
    return hooks


_NOT_HOOKS: Final = frozenset({"name", "provides", "depends_on"})
_PLAIN: Final = (str, int, float, type(None))
_MEMO: WeakKeyDictionary[type, dict[tuple[Any, ...], Hooks]] = WeakKeyDictionary()  # of checked hooks, per class
_CHOICES: Final = frozenset(field.name for field in fields(Hooks)) - {"loops"}


def _unsaid_stop(kind: type, whom: str) -> Fault:
    likely = [n for n in (*_STOPS, "disconnect", "terminate", "join", "release", "__exit__") if hasattr(kind, n)]
    says = " or ".join(f'stop="{name}"' for name in likely) or "stop=lambda it: ..."
    return Fault(DeclarationError, message(f"{whom} is adopted without a word on how to stop it",
            has=", ".join(likely) or "no method that looks like a stop",
            hint=f"say {says}, or stop=None for nothing to stop; or decorate the class with @resource"))  # fmt: skip


def _faulty_options(options: Mapping[str, Any], whom: str) -> list[Fault]:
    faults = []
    for key, value in options.items():
        if key not in OPTIONS:
            text = message(f"unknown option {key!r} for {whom}", hint=did_you_mean(key, OPTIONS))
        elif key.endswith("_timeout") and not is_limit(value):
            text = f"{key} of {whom} is {value!r}: a limit is a number of seconds, 0 or more, or None for no limit"
        elif key in _HOOKS and not (value is None or isinstance(value, str) or callable(value)):
            text = f"{key} of {whom} is {value!r}: a hook is a method's name, a callable that gets the object, or None"
        elif key == "lane" and value not in LANES:
            text = message(f"no lane {value!r} for {whom}", has=", ".join(LANES), hint=did_you_mean(value, LANES))
        elif key == "name" and not (isinstance(value, str) and value):
            text = f"name of {whom} is {value!r}: a name is a string that is not empty"
        elif key == "provides" and not isinstance(value, type):
            text = f"provides of {whom} is {value!r}: it takes a class"
        elif key == "depends_on" and (isinstance(value, str) or not isinstance(value, Iterable)):
            text = f"depends_on of {whom} is {value!r}: it takes a list"
        else:
            continue
        faults.append(Fault(DeclarationError, text))
    return faults


def is_limit(value: object) -> bool:
    """Whether ``value`` can be a limit: seconds, or None."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and not math.isnan(value) and value >= 0)  # type: ignore[arg-type,operator]  # number


def _named_hooks(kind: type, options: dict[str, Any], whom: str, faults: list[Fault], live: Any = None) -> None:
    """Fill in the hooks that ``kind`` has by name, and check them and those that were said."""
    chosen = dict(options)
    for name in _NAMED_HOOKS:
        if name not in options and callable(getattr(kind, name, None)):
            chosen[name] = name
    if "stop" not in options:
        stops = [name for name in _STOPS if callable(getattr(kind, name, None))]
        if len(stops) > 1:
            faults.append(Fault(DeclarationError, message(f"{whom} has more than one stop hook: {', '.join(stops)}",
                    hint=" or ".join(f'stop="{name}"' for name in reversed(stops)))))  # fmt: skip
        elif stops:
            chosen["stop"] = stops[0]
    _check_hooks(kind, chosen, whom, faults, live)
    options.update({key: chosen[key] for key in _HOOKS if key in chosen})


def _check_hooks(kind: type, options: Mapping[str, Any], whom: str, faults: list[Fault], live: Any) -> None:
    for role in _HOOKS:
        hook = options.get(role)
        if hook is None:
            continue
        if isinstance(hook, str):
            owner = kind if hasattr(kind, hook) or live is None else live
            method = getattr(owner, hook, None)
            if not callable(method):
                known: Sequence[str] = [name for name in dir(kind) if not name.startswith("_")]
                hint = did_you_mean(hook, known)
                faults.append(Fault(DeclarationError, message(f"{whom} has no method {hook!r} for its {role}",
                        hint=hint)))  # fmt: skip
                continue
            plain = owner is kind and inspect.isfunction(inspect.getattr_static(kind, hook))
            needs, cure = _unfilled(method, 1 if plain else 0), f"{role}=lambda it: it.{hook}(...)"
        else:
            needs, cure = _unfilled(hook, 1), f"{role}=lambda it: ..."
        if needs:
            faults.append(Fault(DeclarationError, message(f"{role} hook {_hook_name(hook)} of {whom} needs arguments: "
                    f"{needs}", why="hooks are called without any", hint=cure)))  # fmt: skip


def _unfilled(function: Callable[..., Any], given: int) -> str | None:
    """What ``function`` still needs when called with ``given`` positional arguments, or None."""
    try:
        known = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    try:
        known.bind(*(None,) * given)
    except TypeError as why:
        return str(why)
    return None


def _is_async(kind: type | None, live: Any, hook: Hook) -> bool:
    if isinstance(hook, str):
        hook = getattr(kind, hook, None) or getattr(live, hook, None)
    return inspect.iscoroutinefunction(hook)


def _hook_name(hook: str | Callable[..., Any]) -> str:
    return repr(hook) if isinstance(hook, str) else getattr(hook, "__qualname__", repr(hook))
