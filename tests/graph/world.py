"""A world to be torn down: resources that record what is done to them, and do as they are told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from lifegraph import Graph, Report, resource

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds after which a test that waits for something that never comes fails."""


class World:
    """Makes resources, and keeps what happened to them: ``("start", name)`` when a hook is entered,
    ``("started", name)`` when it returned; the same with stop, and ``("made", name)`` for constructions.
    """

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.gate = threading.Event()  # everything that hangs, hangs here until the end of the test

    def hang(self) -> None:
        """Never return, until the test is over."""
        self.gate.wait(PATIENCE * 10)

    def kind(
        self,
        name: str,
        depends_on: Iterable[object] = (),
        *,
        made: Callable[[], object] | None = None,
        start: Callable[[], object] | None = None,
        stop: Callable[[], object] | None = None,
        hooks: str = "start stop",
        **options: Any,
    ) -> type[Any]:
        """A decorated class; ``made``, ``start`` and ``stop`` run in its constructor and hooks."""

        def __init__(self: object) -> None:
            if made is not None:
                made()
            self_world.log.append(("made", name))

        def hook(word: str, past: str, action: Callable[[], object] | None) -> Callable[[object], None]:
            def run(self: object) -> None:
                self_world.log.append((word, name))
                if action is not None:
                    action()
                self_world.log.append((past, name))

            return run

        self_world, label = self, name if name.isidentifier() else "Kind"
        body: dict[str, Any] = {"__init__": __init__, "__module__": __name__}
        if "start" in hooks:
            body["start"] = hook("start", "started", start)
        if "stop" in hooks:
            body["stop"] = hook("stop", "stopped", stop)
        return resource(name=name, depends_on=list(depends_on), **options)(type(label, (), body))

    def names(self, word: str) -> list[str]:
        """The names of all to which ``word`` happened, in order."""
        return [name for said, name in list(self.log) if said == word]

    def place(self, word: str, name: str) -> int:
        """When it happened, as a place in the log."""
        return self.log.index((word, name))


def raises(error: BaseException) -> Callable[[], None]:
    """A hook that raises ``error``."""

    def hook() -> None:
        raise error

    return hook


def fates(report: Report | None) -> dict[str, str]:
    """The fates of a report as plain text."""
    assert report is not None
    return {name: str(fate) for name, fate in report.fates.items()}


class Elsewhere(Generic[T]):
    """Runs ``action`` on a thread of its own; what it returned or raised is told by `result`."""

    def __init__(self, action: Callable[[], T]) -> None:
        self._action = action
        self._returned: list[T] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._returned.append(self._action())
        except BaseException as why:
            self.error = why

    def is_over(self, within: float = PATIENCE) -> bool:
        """Whether it is over, after at most so many seconds."""
        self._thread.join(within)
        return not self._thread.is_alive()

    def result(self) -> T:
        """What it returned; raises what it raised, and AssertionError when it never comes back."""
        assert self.is_over(), "it never came back"
        if self.error is not None:
            raise self.error
        return self._returned[0]


def until(condition: Callable[[], bool]) -> None:
    """Look again and again until ``condition`` holds, where nothing tells of the moment."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came true"
        threading.Event().wait(0.001)


def whole_life(*resources: object, **settings: Any) -> tuple[Graph, Report]:
    """Start and tear down a graph of these."""
    graph = Graph(*resources, **settings)
    graph.start()
    return graph, graph.teardown()
