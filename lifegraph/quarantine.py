"""The one room that holds what must not be released.

From the moment that anything of a graph is up, its vault (everything of it that is alive) stands in a
container which carries an extra C reference: neither ``del``, nor the garbage collector, nor the interpreter's
finalization reaches what is inside. Its only way out is `settle`, called by a run when proof has come.

All private names of CPython are used here, each behind a probe, and nowhere else.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import time
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

__all__ = ["Held", "Vault", "confine", "hide_task", "hold", "let_go", "nbytes", "quarantine", "settle", "supported"]


class Vault(Protocol):
    """What is kept of one graph."""

    things: list[Any]  # by number, as far as they are known

    def contents(self) -> Iterable[object]:
        """Every object in it that must not be finalized."""
        ...

    def epitaph(self) -> str | None:
        """What to say when the process ends while something is still up; None when nothing is."""
        ...


@dataclass(frozen=True, slots=True)
class Held:
    """One resource in quarantine: why, since when (Unix time, seconds), and its bytes where it has ``nbytes``."""

    graph: str
    resource: str
    generation: int
    reason: str
    since: float
    bytes: int | None


_vaults: Final[dict[int, Vault]] = {}
_confined: Final[dict[tuple[int, int], tuple[Vault, str, str, int, str, float]]] = {}
_disarmed: Final[dict[int, list[Any]]] = {}
_everything: Final = (_vaults, _confined)  # the container with the extra C reference
_home: Final = [os.getpid()]  # the process to which all this belongs
_mourned: Final[set[int]] = set()  # vaults whose epitaph was told
_pinned: Final[list[bool]] = []  # whether that was done


def hold(vault: Vault) -> None:
    """Keep ``vault`` whatever happens, until `let_go`. Idempotent."""
    if not _vaults:
        _home[0] = os.getpid()
    _vaults[id(vault)] = vault
    if not _pinned:
        _pinned.append(True)
        _pin()


def let_go(vault: Vault) -> None:
    """Nothing in ``vault`` is up, held or unproven any more."""
    _mourned.discard(id(vault))
    _vaults.pop(id(vault), None)


def confine(vault: Vault, node: int, resource: tuple[str, str, int], reason: str) -> None:
    """List one resource (graph, name, generation) of a held vault as quarantined."""
    _confined.setdefault((id(vault), node), (vault, *resource, reason, time.time()))


def settle(vault: Vault, node: int, thing: object) -> None:
    """Proof has come that ``node`` of ``vault`` has stopped: it is no longer held, nor are its finalizers."""
    _confined.pop((id(vault), node), None)
    for finalizer in _disarmed.pop(id(thing), ()) if _disarmed else ():
        finalizer.atexit = True


def quarantine() -> tuple[Held, ...]:
    """Everything that is held for ever, oldest first; safe from any thread.

    Bytes are asked of each object's ``nbytes`` now; an object that raises, or has none, counts as None.
    """
    return tuple(
        Held(graph, name, generation, reason, since, _bytes(vault.things[node]))
        for (_, node), (vault, graph, name, generation, reason, since) in list(_confined.items())
    )


def supported() -> dict[str, bool]:
    """Which of the guarantees this interpreter can keep; probed, not assumed."""
    return {
        "survives finalization": sys.implementation.name == "cpython",
        "weakref.finalize at exit": isinstance(getattr(weakref.finalize, "_registry", None), dict),
        "asyncio's cancel-all": "asyncio.tasks" not in sys.modules
        or hasattr(sys.modules["asyncio.tasks"], "_unregister_task"),
    }


def hide_task(task: Any) -> None:
    """Take an asyncio task out of its loop's registry, so that ``cancel all tasks`` does not find it."""
    tasks = sys.modules.get("asyncio.tasks")
    unregister = getattr(tasks, "_unregister_task", None)
    if unregister is not None:
        unregister(task)
    if hasattr(task, "_log_destroy_pending"):
        task._log_destroy_pending = False  # it is pending for good reason, and no mistake of the user's


def nbytes(thing: object) -> int:
    """The bytes that ``thing`` says it has, or 0."""
    return _bytes(thing) or 0


def _bytes(thing: object) -> int | None:
    try:
        found = getattr(thing, "nbytes", None)
    except Exception:  # noqa: BLE001 - a property of the user's; the listing must not fail
        return None
    return found if isinstance(found, int) else None


def _pin() -> None:
    missing = [name for name, kept in supported().items() if not kept]
    if missing:
        warnings.warn(
            f"lifegraph cannot keep all promises of its quarantine on {sys.implementation.name}: "
            f"{', '.join(missing)} not supported; leave by os._exit when something is held",
            RuntimeWarning,
            stacklevel=2,
        )
    if supported()["survives finalization"]:
        import ctypes  # noqa: PLC0415 - slow to import, and needed once

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_everything))
    register = getattr(sys.modules.get("threading"), "_register_atexit", None)
    if register is not None:
        with suppress(RuntimeError):  # too late for that
            register(_before_join)


def _at_exit() -> None:
    """Say what was never torn down, and keep the finalizers of what is held from running."""
    try:
        _tell_epitaphs()
    finally:
        _disarm()


def _before_join() -> None:
    """The same word, before the end waits for threads that only a teardown would have ended."""
    threads = sys.modules["threading"]
    if any(not t.daemon and t is not threads.main_thread() for t in threads.enumerate()):
        _tell_epitaphs()


def _tell_epitaphs() -> None:
    if os.getpid() != _home[0]:
        return
    for key, vault in list(_vaults.items()):
        if key not in _mourned and (text := vault.epitaph()):
            _mourned.add(key)
            with suppress(
                Exception
            ):  # a handler that raises, or a warning made an error, keeps no other from being told
                logging.getLogger("lifegraph").warning("%s", text)
            with suppress(Exception):
                warnings.warn(text, ResourceWarning, stacklevel=1)


def _disarm() -> None:
    if not _vaults or not supported()["weakref.finalize at exit"]:
        return
    held = {id(thing) for vault in list(_vaults.values()) for each in vault.contents() for thing in _reached(each)}
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]  # private: probed above
        alive = finalizer.peek()
        if alive is not None and finalizer.atexit and id(alive[0]) in held:
            finalizer.atexit = False
            _disarmed.setdefault(id(alive[0]), []).append(finalizer)


def _reached(thing: object) -> Iterator[object]:
    """An object and its direct attributes, found without running its code."""
    yield thing
    with suppress(AttributeError, TypeError):
        yield from object.__getattribute__(thing, "__dict__").values()
    for kind in type(thing).__mro__:
        for slot in kind.__dict__.values():
            if type(slot).__name__ == "member_descriptor":
                try:
                    yield slot.__get__(thing)
                except (AttributeError, TypeError):
                    continue


class _Anchor:
    """Something to finalize, so that weakref's own exit handler is registered before ours and runs after it."""


_anchor = _Anchor()
weakref.finalize(_anchor, int).detach()
atexit.register(_at_exit)
