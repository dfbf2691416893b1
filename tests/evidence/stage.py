"""A stage on which resources play what a test wrote for them, in sync and in async words."""

from __future__ import annotations

import inspect
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from lifegraph import Graph, Report, resource
from tests.aio.looping import Beside, Gate
from tests.graph.world import PATIENCE, Elsewhere

HOOKS: Final = ("start", "drain", "stop", "is_stopped", "kill", "salvage")
WAYS: Final = ("sync", "private", "async", "mixed")
SHORT: Final = 0.05
"""Seconds: the limit of a hook that is made to hang."""


class Way:
    """How verbs and hooks are written: ``sync`` and ``async`` both alike; ``private``: async hooks under sync verbs;
    ``mixed``: the other way round. Async verbs run on a loop in a thread of its own.
    """

    def __init__(self, kind: str, beside: Beside) -> None:
        self.kind = kind
        self.verbs_are_async = kind in ("async", "mixed")
        self.hooks_are_async = kind in ("async", "private")
        self.beside = beside

    def _do(self, graph: Graph, verb: str, *args: Any, **kwargs: Any) -> Any:
        if not self.verbs_are_async:
            return getattr(graph, verb)(*args, **kwargs)

        async def there() -> Any:
            return await getattr(graph, f"a{verb}")(*args, **kwargs)

        return self.beside.call(there())

    def start(self, graph: Graph) -> None:
        """``start`` or ``astart``."""
        self._do(graph, "start")

    def teardown(self, graph: Graph, *args: Any, **kwargs: Any) -> Report:
        """``teardown`` or ``ateardown``."""
        return self._do(graph, "teardown", *args, **kwargs)  # type: ignore[no-any-return]  # a report

    def resume(self, graph: Graph, *args: Any, **kwargs: Any) -> Report:
        """``resume`` or ``aresume``."""
        return self._do(graph, "resume", *args, **kwargs)  # type: ignore[no-any-return]  # a report

    def remove(self, graph: Graph, *args: Any, **kwargs: Any) -> Any:
        """``remove`` or ``aremove``."""
        return self._do(graph, "remove", *args, **kwargs)

    def add(self, graph: Graph, obj: Any, **options: Any) -> Any:
        """``add`` or ``aadd``."""
        return self._do(graph, "add", obj, **options)

    def create(self, graph: Graph, target: Any, *args: Any, **kwargs: Any) -> Any:
        """``create`` or ``acreate``."""
        return self._do(graph, "create", target, *args, **kwargs)


class Stage:
    """Makes resources that answer as told, and keeps what was called: ``("stop", name)`` when a hook is entered,
    ``("stop over", name)`` when it is left.

    An answer is ``"ok"``, ``"raises"``, ``"hangs"`` (until the end of the test), an exception to raise, anything
    callable that is called (and awaited), any other value to return, or a list of these for one call after another,
    of which the last one stays.
    """

    def __init__(self, way: Way) -> None:
        self.way = way
        self.log: list[tuple[str, str]] = []
        self.gate = Gate()
        self._up: list[Graph] = []

    def close(self) -> None:
        """Let everything go on that hangs, and leave no graph up."""
        self.gate.open()
        for graph in self._up:
            if graph.state == "running":
                self.way.teardown(graph, grace=1)

    def kind(self, name: str, depends_on: Iterable[object] = (), **said: Any) -> type[Any]:
        """A decorated class; hooks are given by their answers, ``stop`` is ``"ok"`` unless said otherwise."""
        answers = {"stop": "ok"} | {hook: said.pop(hook) for hook in HOOKS if hook in said}
        for hook, answer in answers.items():
            if "hangs" in (answer if isinstance(answer, list) else [answer]):
                said.setdefault(f"{hook}_timeout", SHORT)
        body = {hook: self.hook(name, hook, answer) for hook, answer in answers.items() if answer is not None}
        label = name if name.isidentifier() else "Kind"
        return resource(name=name, depends_on=list(depends_on), **said)(type(label, (), body))

    def hook(self, name: str, hook: str, answer: Any) -> Callable[..., Any]:
        """A hook that keeps the log and gives these answers."""
        script = _script(answer)

        def run(*_: object) -> Any:
            self.log.append((hook, name))
            try:
                return self._answer(next(script))
            finally:
                self.log.append((f"{hook} over", name))

        async def arun(*_: object) -> Any:
            self.log.append((hook, name))
            try:
                answer = next(script)
                if answer == "hangs":
                    return await self.gate.hang()
                value = self._answer(answer)
                return await value if inspect.isawaitable(value) else value
            finally:
                self.log.append((f"{hook} over", name))

        return arun if self.way.hooks_are_async else run

    def _answer(self, answer: Any) -> Any:
        if answer == "raises":
            raise OSError("made to")
        if answer == "hangs":
            return self.gate.block()
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else None if answer == "ok" else answer

    # What was seen ---------------------------------------------------------------------------------------

    def called(self, name: str) -> list[str]:
        """The hooks of one resource that were entered, in order."""
        return [hook for hook, whom in list(self.log) if whom == name and not hook.endswith(" over")]

    def names(self, hook: str) -> list[str]:
        """Those whose hook was entered, in order."""
        return [name for said, name in list(self.log) if said == hook]

    def place(self, hook: str, name: str) -> int:
        """When it was entered, as a place in the log."""
        return self.log.index((hook, name))

    # Whole lives -----------------------------------------------------------------------------------------

    def up(self, *resources: Any, **settings: Any) -> Graph:
        """A graph of these that has been started."""
        graph = Graph(*resources, **settings)
        self.way.start(graph)
        self._up.append(graph)
        return graph

    def life(self, *resources: Any, **settings: Any) -> tuple[Graph, Report]:
        """Such a graph after its teardown, and the report."""
        graph = self.up(*resources, **settings)
        return graph, self.way.teardown(graph)

    def tearing(self, graph: Graph, *args: Any, **kwargs: Any) -> Elsewhere[Report]:
        """A teardown on a thread of its own."""
        return Elsewhere(lambda: self.way.teardown(graph, *args, **kwargs))


class Step:
    """A hook's answer that tells when it is entered, and waits for leave to go on; for threads and for loops."""

    def __init__(self, stage: Stage, then: Any = None) -> None:
        self.entered, self._leave = threading.Event(), threading.Event()
        self._stage, self._then = stage, then
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        self.entered.set()
        if self._stage.way.hooks_are_async:
            return self._awaited()
        assert self._leave.wait(PATIENCE)
        return self._end()

    async def _awaited(self) -> Any:
        from tests.aio.looping import eventually

        await eventually(self._leave.is_set)
        return self._end()

    def _end(self) -> Any:
        if isinstance(self._then, BaseException):
            raise self._then
        return self._then() if callable(self._then) else self._then

    def reach(self) -> None:
        """Wait until it is entered."""
        assert self.entered.wait(PATIENCE), "it was never called"

    def leave(self) -> None:
        """Let it go on."""
        self._leave.set()


def _script(answer: Any) -> Iterator[Any]:
    answers = answer if isinstance(answer, list) else [answer]
    return itertools.chain(answers, itertools.repeat(answers[-1]))
