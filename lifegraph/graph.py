"""The public face: one class, which says what `Lifecycle` does."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from math import inf
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, overload

from . import view
from .drive.steps import on_loop, on_thread
from .errors import DeclarationError, Fault, GraphStateError, short
from .events import Event
from .lifecycle import Lifecycle, Session, State, faulty_settings, heard, listening, run
from .model import exported
from .plan import Blast, Plan
from .quarantine import nbytes
from .report import Report, supposed
from .spec import OPTIONS, Options, Spec, Wish, built, context, is_limit, read

__all__ = ["Graph", "T"]

T = TypeVar("T")


class Graph(view.Drawn):
    """Resources that depend on each other: started dependencies first, torn down dependents first.

    ``resources`` are classes, factories, partials of these, or live instances; what they depend on is pulled in.
    ``start_timeout`` and ``stop_timeout`` (seconds, None waits for ever) are for resources that say nothing of
    their own; ``grace`` (seconds) bounds a whole teardown; ``workers`` is how many hooks run at once on the
    worker lane; ``observers`` are called with every `Event` on a thread of their own. With ``signals``, SIGINT and
    SIGTERM end the body of a ``with`` and its teardown: the first asks, the second hurries, the third leaves.

    Every verb may be called from any thread. Raises `DeclarationError`, with all that is wrong, before anything
    is started.
    """

    def __init__(
        self,
        *resources: object,
        name: str = "graph",
        start_timeout: float | None = 60,
        stop_timeout: float | None = 10,
        grace: float | None = None,
        workers: int = 32,
        observers: Iterable[Callable[[Event], object]] = (),
        signals: bool = False,
    ) -> None:
        where = _caller()
        observers = tuple(observers)
        given = {"start_timeout": start_timeout, "stop_timeout": stop_timeout, "grace": grace}
        limits = {key: None if value == inf else value for key, value in given.items()}
        faults = faulty_settings(name, dict(limits), workers, observers, where)
        if faults:
            raise DeclarationError.of(faults)
        self._signals = signals
        self._session: Session | None = None
        defaults = {key: value for key, value in limits.items() if key != "grace"}
        self._owned = Lifecycle(
            name, Graph, self, where, defaults=defaults, grace=limits["grace"], workers=workers, observers=observers
        )
        specs = [read(resource, {}, where, defaults, faults) for resource in resources]
        self._life.found([spec for spec in specs if spec is not None], faults)
        if faults:
            raise DeclarationError.of(faults)

    @property
    def _life(self) -> Lifecycle:
        """What this face speaks for; raises `GraphStateError` in a forked child when the parent's graph lives."""
        if self._owned.inert:
            raise GraphStateError(
                f"graph {self._owned.title!r} ({short(self._owned.where)}) was up before this process was forked: "
                "it is the parent's, and nothing of it is stopped here"
            )
        return self._owned

    # Members ---------------------------------------------------------------------------------------------

    def add(self, obj: T, **options: Unpack[Options]) -> T:
        """Take a live object (or a class, factory or partial) in, and return it.

        In a running graph it starts at once. Raises `DeclarationError` for what cannot be, `GraphClosingError`
        once the teardown began, `GraphStateError` when a running graph lacks what it needs, `StartError` when
        its start fails.
        """
        spec, life = self._read(obj, options, _caller()), self._life
        on_thread(life.admit(spec, "add", at_once=False), brief=life.state is State.NEW)
        return obj

    async def aadd(self, obj: T, **options: Unpack[Options]) -> T:
        """`add` for coroutines: what starts at once is waited for without blocking the loop."""
        await on_loop(self._life.admit(self._read(obj, options, _caller()), "add", at_once=False, awaited=True))
        return obj

    @overload
    def create(self, target: type[T], *args: Any, **kwargs: Any) -> T: ...
    @overload
    def create(self, target: partial[T], *args: Any, **kwargs: Any) -> T: ...
    @overload
    def create(self, target: Callable[..., Generator[T, Any, Any]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    def create(self, target: Callable[..., Iterator[T]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    def create(self, target: Callable[..., AsyncGenerator[T, Any]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    def create(self, target: Callable[..., AsyncIterator[T]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    def create(self, target: Callable[..., Coroutine[Any, Any, T]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    def create(self, target: Callable[..., T], *args: Any, **kwargs: Any) -> T: ...
    def create(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Construct ``target`` (a class, factory or partial) now, add it, and return the instance.

        Parameters that the graph's resources can fill are filled. ``name``, ``depends_on`` and the other options
        of `Options` are the graph's; all else goes to the target. A generator gives what it yielded. What it
        depends on must be up. In a new graph its start hook waits for `start`. Raises as `add` does.
        """
        spec = self._built(target, args, kwargs, _caller())
        return self._made(on_thread(self._life.admit(spec, "create", at_once=True)))

    @overload
    async def acreate(self, target: type[T], *args: Any, **kwargs: Any) -> T: ...
    @overload
    async def acreate(self, target: partial[T], *args: Any, **kwargs: Any) -> T: ...
    @overload
    async def acreate(self, target: Callable[..., AsyncGenerator[T, Any]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    async def acreate(self, target: Callable[..., AsyncIterator[T]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    async def acreate(self, target: Callable[..., Generator[T, Any, Any]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    async def acreate(self, target: Callable[..., Iterator[T]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    async def acreate(self, target: Callable[..., Coroutine[Any, Any, T]], *args: Any, **kwargs: Any) -> T: ...
    @overload
    async def acreate(self, target: Callable[..., T], *args: Any, **kwargs: Any) -> T: ...
    async def acreate(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """`create` for coroutines; async factories and async generators run on the caller's loop."""
        spec = self._built(target, args, kwargs, _caller())
        return self._made(await on_loop(self._life.admit(spec, "create", at_once=True, awaited=True)))

    @overload
    def enter(self, cm: AbstractContextManager[T, Any], **options: Unpack[Options]) -> T: ...
    @overload
    def enter(self, cm: AbstractAsyncContextManager[T, Any], **options: Unpack[Options]) -> T: ...
    def enter(self, cm: Any, **options: Unpack[Options]) -> Any:
        """Adopt a context manager: enter it now, and return its value. Leaving it is its stop.

        It is left with the outcome of the *body*, never with a sibling's error; a true return suppresses
        nothing. Raises as `create` does.
        """
        spec = context(cm, options, _caller(), self._life.model.defaults)
        return self._made(on_thread(self._life.admit(spec, "enter", at_once=True)))

    @overload
    async def aenter(self, cm: AbstractAsyncContextManager[T, Any], **options: Unpack[Options]) -> T: ...
    @overload
    async def aenter(self, cm: AbstractContextManager[T, Any], **options: Unpack[Options]) -> T: ...
    async def aenter(self, cm: Any, **options: Unpack[Options]) -> Any:
        """`enter` for coroutines, and for async context managers; takes sync ones too."""
        spec = context(cm, options, _caller(), self._life.model.defaults, awaited=True)
        return self._made(await on_loop(self._life.admit(spec, "enter", at_once=True, awaited=True)))

    def depend(self, dependent: object, *dependencies: object) -> None:
        """Add edges between members; wrap a dependency in `order_only` where poison must not pass.

        Raises `CycleError`, with the cycle drawn, when that would close one, and `MissingDependencyError` or
        `AmbiguousDependencyError` for what is no one member.
        """
        where, life = _caller(), self._life
        with life.mutex:
            life.check_open("depend")
            life.names()
            asker = life.model.the(dependent, "depend")
            wishes = [d if isinstance(d, Wish) else Wish(d) for d in dependencies]
            found = [
                (life.model.the(wish.key, "depend"), wish)
                for wish in wishes
                if not wish.optional or life.find(wish.key)
            ]
            for node, wish in found:
                life.refuse_held(node, "depend on")
                life.model.depend(asker, node, uses=wish.uses, where=where)

    def override(self, key: object, replacement: object, **options: Unpack[Options]) -> None:
        """Before the start: use ``replacement`` (an instance, class, factory or partial) wherever ``key`` is asked for."""
        spec = self._read(replacement, options, _caller())
        with self._life.mutex:
            self._life.override(key, spec)

    # Up and down -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring everything up, dependencies first, in parallel. Does nothing in a running graph.

        The first failed start halts it; what is up is then torn down, and `StartError` is raised with the report.
        Raises `DeclarationError` before any side effect, `GraphClosingError` when a teardown came first.
        """
        self._life.up()

    async def astart(self) -> None:
        """`start` for coroutines: async resources live on the caller's loop, sync hooks run on threads.

        A cancellation meanwhile calls the start off; it is raised again when all is torn down.
        """
        await self._life.aup()

    def teardown(self, *, grace: float | None = None) -> Report:
        """Stop everything, dependents first, in parallel; return the report, and raise nothing for failed resources.

        What a failed, hung or unreached dependent was using is not released. ``grace`` in seconds (default: the
        graph's). Once for each start: a second or concurrent call returns the same report. Raises
        `ReentrantTeardownError` from a hook of this graph. A KeyboardInterrupt meanwhile gives up what runs, and
        is raised again at the end.
        """
        return on_thread(self._life.teardown(_grace(grace), None))

    async def ateardown(self, *, grace: float | None = None) -> Report:
        """`teardown` for coroutines. Cancelling it gives up what runs; the cancellation is raised again at the end."""
        return await on_loop(self._life.teardown(_grace(grace), None, awaited=True))

    def run(
        self,
        main: Callable[[Graph], Any] | None = None,
        *,
        hard_exit: bool = True,
        signal_exit: int = 0,
        loop_factory: Callable[[], Any] | None = None,
    ) -> int:
        """Start, run ``main(graph)`` (or wait for a signal), tear down; return the exit code.

        0 all released and main returned; ``signal_exit`` when SIGINT, SIGTERM or `request_teardown` ended it; 1 main
        raised, or a teardown was requested with an error; ``SystemExit(n)`` of main is n; 2 a start or declaration
        failed; 3 something was not released (beats the others). The second signal hurries, the third leaves at once
        with 128+n. An async ``main`` runs on the loop of the graph's resources, made by ``loop_factory``. When
        anything is quarantined the process is left by `os._exit`, unless ``hard_exit`` is False. On the main thread
        only; raises `GraphStateError` elsewhere.
        """
        return run(self._life, self, main, hard_exit=hard_exit, signal_exit=signal_exit, loop_factory=loop_factory)

    def request_teardown(self, error: BaseException | None = None) -> None:
        """Ask for the teardown and return at once, from any thread, task or hook.

        It ends the main of `run`, or the body of a ``with`` with ``signals``, as a signal does; elsewhere the
        teardown begins on a thread of ours. With ``error``, `run` exits with 1.
        """
        self._life.request(error)

    def __enter__(self) -> Self:
        try:
            with listening(self._life, self._signals) as session:
                self._life.up()
                self._session = session
            if session is not None:
                session.signals.__enter__()
            return self
        except KeyboardInterrupt:
            if self._life.state is State.RUNNING:  # it struck when all was up, and no body will follow
                with heard(self._session):
                    on_thread(self._life.teardown(None, None))
            raise

    def __exit__(
        self, kind: type[BaseException] | None, body: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        try:
            self._leave(body)
        except KeyboardInterrupt:
            if self._owned.state is State.RUNNING:  # it struck before the teardown had begun
                self._leave(body)
            raise
        return False

    def _leave(self, body: BaseException | None) -> None:
        if self._owned.inert and body is not None:
            return
        with heard(self._session) as since:
            report = on_thread(self._life.teardown(None, body, since=since))
        self._ended(report, body)

    async def __aenter__(self) -> Self:
        try:
            with listening(self._life, self._signals) as session:
                await self._life.aup()
                self._session = session
            if session is not None:
                session.body_is_task()
            return self
        except KeyboardInterrupt:
            if self._life.state is State.RUNNING:  # the same
                await self._aleave(None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, body: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        try:
            await self._aleave(body)
        except KeyboardInterrupt:
            if self._owned.state is State.RUNNING:  # the same
                await self._aleave(body)
            raise
        return False

    async def _aleave(self, body: BaseException | None) -> None:
        with heard(self._session) as since:
            report = await on_loop(self._life.teardown(None, body, awaited=True, since=since))
        self._ended(report, body)

    def _ended(self, report: Report, body: BaseException | None) -> None:
        if report.ok:
            return
        if body is None:
            raise self._life.teardown_error()
        try:
            body.add_note(f"and then {report.headline}")
        except Exception:  # noqa: BLE001 - an exception that bears no notes stays as it is; the report is at hand
            return

    # Looking ---------------------------------------------------------------------------------------------

    @overload
    def __getitem__(self, key: type[T]) -> T: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: Any) -> Any:
        """The live instance for a class or a name. Raises `GraphStateError` before it is up or after its release."""
        return self._life.instance(key)

    def __contains__(self, key: object) -> bool:
        return bool(self._life.find(key))

    def __len__(self) -> int:
        return len(self._life.names())

    def __iter__(self) -> Iterator[str]:
        return iter(self._life.names())

    def __repr__(self) -> str:
        life = self._owned
        return f"<Graph {life.title!r}: {len(life.model)} resources, {'forked' if life.inert else life.state}>"

    @property
    def name(self) -> str:
        """The name of the graph."""
        return self._life.title

    @property
    def state(self) -> str:
        """``new``, ``starting``, ``running``, ``closing`` or ``closed``."""
        return self._life.state

    @property
    def report(self) -> Report | None:
        """The report of the last teardown, or None."""
        return self._life.report

    def observe(self, observer: Callable[[Event], object]) -> None:
        """Call ``observer`` with every `Event` from now on, as those given at the beginning."""
        self._life.herald.join(observer)

    def time_left(self) -> float:
        """For hooks: seconds until the limit of this hook or the end of the grace, whichever is sooner.

        Infinity where there is neither, and outside of hooks.
        """
        return self._life.time_left()

    def plan(self) -> Plan:
        """The frozen `Plan`: order, levels, edges, timeouts, critical path, worst case. Raises `DeclarationError`."""
        return self._life.plan()

    def what_if(self, fail: Iterable[object] = (), hang: Iterable[object] = ()) -> Report:
        """The `Report` of a teardown in which these would fail or hang and all else stop. Nothing is touched.

        Takes names, classes and instances. It supposes that kill and is_stopped do not help, and no grace.
        """
        plan, life = self._life.plan(), self._life
        with life.mutex:
            nodes = life.model.nodes()
            failing, hanging = (
                {nodes.index(life.model.the(key, "what_if")) for key in _listed(keys)} for keys in (fail, hang)
            )
            helped = [
                life.model.names[nodes[n]]
                for n in sorted(failing | hanging)
                if life.model.spec(nodes[n]).hooks.kill is not None
            ]
        return supposed(plan, failing, hanging, helped)

    def blast(self) -> tuple[Blast, ...]:
        """Every resource with what its failure would poison, and the bytes of that; the largest first."""
        plan, life = self._life.plan(), self._life
        with life.mutex:
            nodes, things = life.model.nodes(), life.lives.things
        return plan.blast(lambda n: nbytes(things[nodes[n]]) if nodes[n] < len(things) else 0)

    def to_networkx(self) -> Any:
        """The graph as a `networkx.DiGraph`: names, with edges from dependent to dependency."""
        return exported(self._life.plan())

    def _drawn(self) -> tuple[view.Drawable, view.Reported | None]:
        return self._life.plan(), None

    # Inside ----------------------------------------------------------------------------------------------

    def _read(self, obj: object, options: Mapping[str, Any], where: str) -> Spec:
        faults: list[Fault] = []
        spec = read(obj, options, where, self._life.model.defaults, faults)
        if spec is None:
            raise DeclarationError.of(faults)
        return spec

    def _built(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], where: str) -> Spec:
        options = {key: kwargs.pop(key) for key in OPTIONS if key in kwargs}
        return built(target, args, kwargs, options, where, self._life.model.defaults)

    def _made(self, node: int) -> Any:
        return self._life.lives.things[node]


_places: dict[tuple[str, int], str] = {}  # one string for each line that adds members


def _caller() -> str:
    frame = sys._getframe(2)
    place = frame.f_code.co_filename, frame.f_lineno
    return _places.get(place) or _places.setdefault(place, f"{place[0]}:{place[1]}")


def _listed(keys: Any) -> Iterable[object]:
    return (keys,) if isinstance(keys, str | type) else keys


def _grace(seconds: float | None) -> float | None:
    if not is_limit(seconds):
        raise DeclarationError(Fault(DeclarationError, f"grace is {seconds!r}: it takes seconds, 0 or more, or None"))
    return None if seconds == inf else seconds
