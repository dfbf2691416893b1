"""Which hooks a resource has, found by name or said, and whether they can be called; and whether options make sense."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final
from weakref import WeakKeyDictionary

from ..errors import DeclarationError, Fault, did_you_mean, message
from .values import LANES, OPTIONS, ROLES, Form, Hook, Hooks

__all__ = ["HOOKED", "faulty_options", "hooks_of", "is_limit", "left_and_stopped", "named_hooks"]

_STOPS: Final = ("stop", "shutdown", "close", "aclose")
_BY_NAME: Final = ("start", "drain", "salvage", "kill", "is_stopped")
_PLAIN: Final = (str, int, float, type(None))
_memo: Final[WeakKeyDictionary[type, dict[tuple[Any, ...], Hooks]]] = WeakKeyDictionary()  # of checked hooks, per class
HOOKED: Final = frozenset(field.name for field in fields(Hooks)) - {"loops"}


def hooks_of(
    kind: type | None, live: Any, options: Mapping[str, Any], defaults: Mapping[str, Any], whom: object,
    faults: list[Fault], *, declared: bool,
) -> Hooks:  # fmt: skip
    """The hooks of a resource of class ``kind`` (None: unknown), of which ``live`` may be the object.

    Found by name where the class is ``declared``; else the stop must be said. Faults are added to ``faults``.
    """
    options = {name: value for name, value in options.items() if name in HOOKED}
    key = (declared, *options.items(), *defaults.items())
    plain = all(isinstance(value, _PLAIN) for value in (*options.values(), *defaults.values()))
    if plain and kind is not None and (known := _memo.setdefault(kind, {}).get(key)) is not None:
        return known
    if wrong := faulty_options(options, whom):
        faults += wrong
        return Hooks()
    chosen, found = {**defaults, **options}, len(faults)
    if kind is not None:
        if declared:
            named_hooks(kind, chosen, whom, faults, live)
        elif "stop" not in options:
            faults.append(_unsaid_stop(kind, whom))
        else:
            _check_hooks(kind, chosen, whom, faults, live)
    if len(faults) > found:
        return Hooks()
    finite = {key: None if value == math.inf else value for key, value in chosen.items()}
    loops = frozenset(role for role in ROLES if _is_async(kind, live, chosen.get(role)))
    hooks = Hooks(**finite, loops=loops)  # type: ignore[arg-type]  # by name, from checked options
    named = (hook for hook in (getattr(hooks, role) for role in ROLES) if isinstance(hook, str))
    if plain and kind is not None and all(hasattr(kind, hook) for hook in named):
        _memo[kind][key] = hooks
    return hooks


def left_and_stopped(form: Form, options: Mapping[str, Any], whom: object) -> list[Fault]:
    """The fault of saying a stop for what is stopped by leaving it."""
    if not form.leaves or options.get("stop") is None:
        return []
    return [Fault(DeclarationError, message(f"{whom} is {form.value} and has a stop hook too",
            hint="leaving it is its stop: leave stop= out"))]  # fmt: skip


def _unsaid_stop(kind: type, whom: object) -> Fault:
    likely = [n for n in (*_STOPS, "disconnect", "terminate", "join", "release", "__exit__") if hasattr(kind, n)]
    says = " or ".join(f'stop="{name}"' for name in likely) or "stop=lambda it: ..."
    return Fault(DeclarationError, message(f"{whom} is adopted without a word on how to stop it",
            has=", ".join(likely) or "no method that looks like a stop",
            hint=f"say {says}, or stop=None for nothing to stop; or decorate the class with @resource"))  # fmt: skip


def faulty_options(options: Mapping[str, Any], whom: object) -> list[Fault]:
    """What is wrong with options by themselves."""
    faults = []
    for key, value in options.items():
        if key not in OPTIONS:
            text = message(f"unknown option {key!r} for {whom}", hint=did_you_mean(key, OPTIONS))
        elif key.endswith("_timeout") and not is_limit(value):
            text = f"{key} of {whom} is {value!r}: a limit is a number of seconds, 0 or more, or None for no limit"
        elif key in ROLES and not (value is None or isinstance(value, str) or callable(value)):
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


def named_hooks(kind: type, options: dict[str, Any], whom: object, faults: list[Fault], live: Any = None) -> None:
    """Fill in the hooks that ``kind`` has by name, and check them and those that were said."""
    chosen = dict(options)
    for name in _BY_NAME:
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
    options.update({key: chosen[key] for key in ROLES if key in chosen})


def _check_hooks(kind: type, options: Mapping[str, Any], whom: object, faults: list[Fault], live: Any) -> None:
    for role in ROLES:
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
