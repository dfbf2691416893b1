"""Every wrong declaration is one clear error that says the cure, before anything has happened."""

# mypy: disable-error-code="misc, call-overload, arg-type, unused-ignore, type-var"
# what is wrong by its types is what is handed in
from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lifegraph import (
    CycleError,
    DeclarationError,
    DuplicateNameError,
    Graph,
    GraphStateError,
    LifegraphError,
    MissingDependencyError,
    quarantine,
    resource,
)
from tests.graph.world import World, raises

HERE = "test_bad_input.py:"


def fault(action: Callable[[], object], *words: str, kind: type[DeclarationError] = DeclarationError) -> str:
    """The text of the error that ``action`` raises; it has all ``words``."""
    with pytest.raises(kind) as caught:
        action()
    error = caught.value
    assert isinstance(error, LifegraphError)
    assert isinstance(error, ValueError)
    assert error.faults
    text = str(error)
    for word in words:
        assert word in text, text
    return text


class Closes:
    """Something undecorated that can be closed."""

    def close(self) -> None: ...


class TestOptions:
    """Options that cannot be."""

    @pytest.mark.parametrize("wrong", ["stop_timout", "stoptimeout", "Stop", "depend_on", "nmae", "provide"])
    def test_unknown_with_a_near_one(self, wrong: str) -> None:
        """An unknown option names the one that was meant, for the decorator and the verbs alike."""
        kind = type("Thing", (), {"close": lambda self: None})
        fault(lambda: resource(**{wrong: 1})(kind), repr(wrong), "Thing", "did you mean", HERE)  # type: ignore[call-overload]  # wrong on purpose
        fault(lambda: Graph().add(Closes(), stop=None, **{wrong: 1}), repr(wrong), "Closes", "did you mean")  # type: ignore[arg-type]  # wrong on purpose
        fault(lambda: Graph().enter(Entered(), **{wrong: 1}), repr(wrong), "did you mean")  # type: ignore[arg-type]  # wrong on purpose

    def test_unknown_for_create(self) -> None:
        """What create passes on and the target does not take is a fault; a near option is named."""
        fault(lambda: Graph().create(Closes, stop=None, stop_timout=3), "stop_timout", "did you mean 'stop_timeout'")

    def test_unknown_without_a_near_one(self) -> None:
        """Nothing is named that is not near."""
        assert "did you mean" not in fault(lambda: Graph().add(Closes(), stop=None, zzz=1), "'zzz'")  # type: ignore[call-arg]  # wrong on purpose

    @pytest.mark.parametrize(
        "option",
        [f"{hook}_timeout" for hook in ("start", "drain", "stop", "kill", "salvage", "is_stopped")],
    )
    @pytest.mark.parametrize("value", [-1, -0.001, math.nan, "5", True, [], "soon", -math.inf, 1j])
    def test_limits(self, option: str, value: Any) -> None:
        """A limit is a number of seconds, 0 or more, or None."""
        fault(lambda: resource(**{option: value})(Closes), option, "Closes")
        fault(lambda: Graph().add(Closes(), stop=None, **{option: value}), option)  # type: ignore[arg-type]  # wrong on purpose

    @pytest.mark.parametrize("option", ["start_timeout", "stop_timeout", "grace"])
    @pytest.mark.parametrize("value", [-1, math.nan, "5", True])
    def test_limits_of_the_graph(self, option: str, value: Any) -> None:
        """The same for the graph's own, and for the grace of one teardown."""
        fault(lambda: Graph(**{option: value}), option)
        if option == "grace":
            graph = Graph()
            fault(lambda: graph.teardown(grace=value), "grace")
            assert "new" == graph.state

    @pytest.mark.parametrize(
        ("settings", "word"),
        [
            ({"name": ""}, "name"),
            ({"name": 3}, "name"),
            ({"workers": 0}, "workers"),
            ({"workers": 1.5}, "workers"),
            ({"workers": True}, "workers"),
            ({"observers": [3]}, "observer"),
        ],
    )
    def test_settings_of_the_graph(self, settings: dict[str, Any], word: str) -> None:
        """Each wrong setting is named."""
        fault(lambda: Graph(**settings), word, HERE)

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("name", ""),
            ("name", 3),
            ("lane", "wroker"),
            ("lane", "threads"),
            ("stop", 3),
            ("start", b"start"),
            ("provides", "Db"),
            ("provides", 3),
            ("depends_on", "Db"),
            ("depends_on", 3),
        ],
    )
    def test_values(self, option: str, value: Any) -> None:
        """Each wrong value is named with its option."""
        fault(lambda: resource(**{option: value})(type("Thing", (), {})), option.partition("_")[0], "Thing")

    def test_a_lane_with_a_near_one(self) -> None:
        """A misspelt lane names the one that was meant."""
        fault(lambda: resource(lane="dedicatd")(Closes), "dedicatd", "did you mean 'dedicated'")

    def test_all_at_once(self) -> None:
        """All that is wrong with one declaration stands in one error."""
        with pytest.raises(DeclarationError) as caught:
            resource(stop_timeout=-1, start_timeout="x", lane="no", nmae=1)(Closes)  # type: ignore[call-overload]  # wrong on purpose
        assert 4 == len(caught.value.faults)
        assert not hasattr(Closes, "__lifegraph__")


class Entered:
    """A context manager."""

    def __enter__(self) -> int:
        return 3

    def __exit__(self, *_: object) -> None: ...


class TestHooks:
    """Hooks that cannot be called, or cannot be told apart."""

    @pytest.mark.parametrize("hook", ["start", "stop", "drain", "salvage", "kill", "is_stopped"])
    def test_needs_arguments(self, hook: str) -> None:
        """A hook that needs arguments is named with what it needs; defaults do no harm."""

        def needs(self: object, how: int) -> None: ...

        def may(self: object, how: int = 1, *rest: int, **more: int) -> None: ...

        def must(self: object, *, how: int) -> None: ...

        for wrong in (needs, must):
            fault(lambda wrong=wrong: resource(type("Thing", (), {hook: wrong})), f"'{hook}'", "Thing", "how", HERE)
        Graph(resource(type("Thing", (), {hook: may, "stop": may})))

    def test_a_callable_that_takes_too_little_or_too_much(self) -> None:
        """A callable hook gets the object, and nothing else."""
        fault(lambda: Graph().add(Closes(), stop=lambda: None), "stop", "Closes")
        fault(lambda: Graph().add(Closes(), stop=lambda it, more: None), "stop", "Closes", "more")

    def test_no_such_method(self) -> None:
        """A hook named by a string must be there; a near one is named."""
        fault(lambda: Graph().add(Closes(), stop="clsoe"), "'clsoe'", "did you mean 'close'")
        fault(lambda: resource(stop="shutdown")(Closes), "'shutdown'", "Closes")
        fault(lambda: resource(start="wake")(Closes), "'wake'", "start")

    def test_a_hook_that_is_no_method(self) -> None:
        """Something of that name that cannot be called is no hook."""
        fault(lambda: resource(stop="size")(type("Thing", (), {"size": 3})), "'size'")

    @pytest.mark.parametrize("names", [("stop", "close"), ("shutdown", "aclose"), ("stop", "shutdown", "close")])
    def test_two_stops(self, names: tuple[str, ...]) -> None:
        """More than one stop hook by name is never a guess: all are named, with the cure."""
        kind = type("Thing", (), {name: lambda self: None for name in names})
        text = fault(lambda: resource(kind), "Thing", *names, "stop=")
        assert any(f'stop="{name}"' in text for name in names)
        chosen = resource(stop=names[-1])(kind)
        with Graph(chosen):
            pass

    def test_inherited_stops_count(self) -> None:
        """One of the class and one of its base are two."""

        class Below(Closes):
            def stop(self) -> None: ...

        fault(lambda: resource(Below), "Below", "stop", "close")

    def test_a_generator_with_a_stop(self) -> None:
        """Leaving it is its stop: a second one is an error."""

        def yields() -> Any:
            yield 1

        fault(lambda: resource(stop=lambda it: None)(yields), "yields", "stop")
        fault(lambda: Graph().enter(Entered(), stop=lambda it: None), "Entered", "stop")

    def test_what_is_neither_class_nor_function(self) -> None:
        """Only classes and functions are decorated."""
        fault(lambda: resource(Closes()), "Closes")  # type: ignore[type-var]  # wrong on purpose
        fault(lambda: resource(3), "3")  # type: ignore[call-overload]  # wrong on purpose


class TestAdopted:
    """Nothing is guessed for what is not decorated."""

    @pytest.mark.parametrize("how", ["live", "class", "partial", "constructor", "create"])
    def test_without_a_word_on_its_stop(self, how: str) -> None:
        """Leaving stop= out lists the candidates and the cure."""
        made: list[str] = []

        class Conn:
            def __init__(self) -> None:
                made.append("made")

            def close(self) -> None: ...
            def disconnect(self) -> None: ...
            def send(self) -> None: ...

        live = Conn()
        made.clear()
        action = {
            "live": lambda: Graph().add(live),
            "class": lambda: Graph().add(Conn),
            "partial": lambda: Graph().add(partial(Conn)),
            "constructor": lambda: Graph(live),
            "create": lambda: Graph().create(Conn),
        }[how]
        assert "send" not in fault(action, "Conn", "close", "disconnect", "stop=", HERE)
        assert [] == made

    def test_nothing_that_looks_like_a_stop(self) -> None:
        """Where there is no candidate, it says so."""
        fault(lambda: Graph(object()), "object", "stop=None")

    def test_a_factory_of_something_undecorated(self) -> None:
        """A factory must say how to stop what it makes; the candidates of its class are listed."""

        @resource
        def make() -> Closes:
            return Closes()

        fault(lambda: Graph(make), "make", "close", "stop=")

    def test_stop_may_be_none(self) -> None:
        """None says that there is nothing to stop."""
        graph = Graph()
        thing = graph.add(Closes(), stop=None)
        with graph:
            assert graph[Closes] is thing
        assert graph.report is not None
        assert ("Closes",) == graph.report.released


class TestEdges:
    """Edges that lead nowhere, in a circle, or to too many."""

    @pytest.mark.parametrize("size", [1, 2, 3, 7])
    def test_cycles_are_drawn(self, world: World, size: int) -> None:
        """The cycle is drawn in order with arrows and the place of each edge; nobody else is named."""
        ring = [world.kind(f"ring{n}", [f"ring{(n + 1) % size}"]) for n in range(size)]
        others = [world.kind(f"other{n}", ["ring0"]) for n in range(10)]
        text = fault(lambda: Graph(*ring, *others).start(), kind=CycleError)
        arrows = " -> ".join([*(f"ring{n}" for n in range(size)), "ring0"])
        assert arrows in text
        assert "other" not in text
        assert size <= text.count("world.py:")
        assert [] == world.log

    def test_a_long_cycle_is_shortened(self, world: World) -> None:
        """Beyond twenty the middle is left out, and counted."""
        size = 1000
        ring = [world.kind(f"ring{n}", [f"ring{(n + 1) % size}"]) for n in range(size)]
        text = fault(lambda: Graph(*ring).start(), "ring0", "ring999", "more", kind=CycleError)
        assert len(text.splitlines()) < 40

    def test_all_cycles_are_told(self, world: World) -> None:
        """Two knots are two faults."""
        kinds = [world.kind(a, [b]) for a, b in [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]]
        with pytest.raises(CycleError) as caught:
            Graph(*kinds).start()
        assert 2 == len(caught.value.faults)

    @pytest.mark.parametrize("wrap", ["bare", "order_only"])
    def test_depend_refuses_a_cycle(self, world: World, wrap: str) -> None:
        """An edge that would close a cycle is refused with the drawing, and is not there afterwards."""
        from lifegraph import order_only

        graph = Graph(world.kind("a", ["b"]), world.kind("b", ["c"]), world.kind("c"))
        before = graph.plan().edges
        dependency: Any = order_only("a") if wrap == "order_only" else "a"
        text = fault(lambda: graph.depend("c", dependency), HERE, kind=CycleError)
        assert any(drawn in text for drawn in ("a -> b -> c -> a", "c -> a -> b -> c", "b -> c -> a -> b"))
        assert before == graph.plan().edges
        fault(lambda: graph.depend("a", "a"), "a -> a", kind=CycleError)
        with graph:
            pass

    def test_missing_ones(self, world: World) -> None:
        """Who needs it, what the graph has, and what may have been meant."""
        text = fault(
            lambda: Graph(world.kind("api", ["databse"]), world.kind("database")).start(),
            "api",
            "'databse'",
            "database",
            "did you mean 'database'",
            kind=MissingDependencyError,
        )
        assert "world.py:" in text
        fault(lambda: Graph(world.kind("api", [Closes])).start(), "api", "Closes", kind=MissingDependencyError)
        assert [] == world.log

    def test_missing_in_depend(self, world: World) -> None:
        """The same for depend, for either end."""
        graph = Graph(world.kind("a"), world.kind("b"))
        for ends in (("a", "c"), ("c", "a"), ("a", Closes), (Closes(), "a")):
            fault(lambda ends=ends: graph.depend(*ends), kind=MissingDependencyError)


class TestNames:
    """Names and objects that are there already."""

    def test_two_of_one_name(self, world: World) -> None:
        """Both places are told."""
        fault(lambda: Graph(world.kind("a"), world.kind("a")), "'a'", kind=DuplicateNameError)
        graph = Graph(world.kind("a"))
        fault(lambda: graph.add(Closes(), stop=None, name="a"), "'a'", kind=DuplicateNameError)
        fault(lambda: graph.create(world.kind("a")), "'a'", kind=DuplicateNameError)
        fault(lambda: graph.enter(Entered(), name="a"), "'a'", kind=DuplicateNameError)
        assert ["a"] == list(graph)
        assert [] == world.log

    def test_one_object_twice(self) -> None:
        """The same object is in a graph once, whatever it is called."""
        graph, thing = Graph(), Closes()
        graph.add(thing, stop=None)
        fault(lambda: graph.add(thing, stop=None, name="other"), "Closes", kind=DuplicateNameError)
        fault(lambda: Graph(thing, thing), "Closes")
        assert ["Closes"] == list(graph)

    def test_any_string_is_a_name(self) -> None:
        """Whatever is in it."""
        graph = Graph()
        names = [" ", "a b", "é\n", "🜁", "1", '"', "\\", "end", "\ud800", "a" * 10_000, "Closes-2"]
        for name in names:
            graph.add(Closes(), stop=None, name=name)
        assert names == list(graph)
        graph.teardown()

    def test_default_names_are_counted(self) -> None:
        """A second of a kind is Name-2, unless that is taken."""
        graph = Graph()
        graph.add(Closes(), stop=None, name="Closes-2")
        for _ in range(3):
            graph.add(Closes(), stop=None)
        assert ["Closes-2", "Closes", "Closes-3", "Closes-4"] == list(graph)
        graph.teardown()


class TestCreate:
    """Arguments that cannot be."""

    def test_an_option_that_is_a_parameter(self) -> None:
        """A keyword that is both an option and a parameter of the target is an error; the cure is partial."""

        @resource(stop=None)
        class Thing:
            def __init__(self, name: str) -> None:
                self.name = name

        fault(lambda: Graph().create(Thing, name="x"), "'name'", "partial", "Thing")
        graph = Graph()
        assert "x" == graph.create(partial(Thing, name="x"), name="y").name
        assert ["y"] == list(graph)
        graph.teardown()

    def test_arguments_it_does_not_take(self, world: World) -> None:
        """Too many, unknown or missing ones are faults before anything is constructed."""
        graph = Graph()
        for action in (
            lambda: graph.create(world.kind("a"), 1),
            lambda: graph.create(world.kind("a"), size=1),
            lambda: Graph(partial(world.kind("a"), 1)).start(),
            lambda: Graph(partial(world.kind("a"), size=1)).start(),
        ):
            fault(action, "a")
        assert [] == world.log
        assert [] == list(graph)

    def test_what_cannot_be_created(self) -> None:
        """A live object is no target."""
        fault(lambda: Graph().create(Closes(), stop=None), "Closes", "add")

    def test_what_cannot_be_entered(self) -> None:
        """Only context managers are entered."""
        fault(lambda: Graph().enter(Closes()), "Closes", "context manager")  # type: ignore[type-var]  # wrong on purpose

    def test_dependencies_must_be_up(self, world: World) -> None:
        """Before the start create and enter need what they depend on up; the refused one leaves nothing behind."""
        graph = Graph(world.kind("base"))
        with pytest.raises(GraphStateError, match="base"):
            graph.create(world.kind("a", ["base"]))
        with pytest.raises(GraphStateError, match="base"):
            graph.enter(Entered(), name="e", depends_on=["base"])
        assert ["base"] == list(graph)
        assert [] == world.log
        graph.start()
        graph.create(world.kind("a", ["base"]))
        assert ["base", "a"] == list(graph)
        graph.teardown()


class TestBeforeAnySideEffect:
    """What is refused has done nothing, and nothing of it stays."""

    def test_all_faults_of_a_graph_in_one(self, world: World) -> None:
        """A cycle, a missing one, an unfilled parameter, an unsaid stop: one error says all, and no hook ran."""

        @resource(stop=None)
        class Unfilled:
            def __init__(self, size: int) -> None: ...

        with pytest.raises(DeclarationError) as caught:
            Graph(
                world.kind("a", ["b"], made=raises(OSError())),
                world.kind("b", ["a"]),
                world.kind("c", ["nowhere"]),
                Unfilled,
                Closes(),
                world.kind("d"),
                world.kind("d"),
            )
        text = str(caught.value)
        for word in ("a -> b -> a", "'nowhere'", "'size'", "Closes", "'d'"):
            assert word in text
        assert 5 == len(caught.value.faults)
        assert type(caught.value) is DeclarationError
        assert [] == world.log

    def test_start_of_a_faulty_graph(self, world: World) -> None:
        """The start is refused, the graph is still new, and can be mended."""
        graph = Graph(world.kind("a", ["b"]))
        with pytest.raises(MissingDependencyError):
            graph.start()
        assert "new" == graph.state
        assert [] == world.log
        graph.add(world.kind("b"))
        with graph:
            assert ["b", "a"] == world.names("started")

    def test_a_refused_graph_holds_nothing(self) -> None:
        """Live objects handed to a Graph that could not be made are let go."""

        class Mine:
            def close(self) -> None: ...

        kind = resource(Mine)
        mine = kind()
        watch = weakref.ref(mine)
        with pytest.raises(DeclarationError):
            Graph(mine, object())
        del mine
        gc.collect()
        assert watch() is None

    def test_a_refused_add_holds_nothing(self) -> None:
        """The same for add."""
        graph, thing = Graph(), Closes()
        watch = weakref.ref(thing)
        with pytest.raises(DeclarationError):
            graph.add(thing, stop="nothing")
        del thing
        gc.collect()
        assert watch() is None
        assert 0 == len(graph)
        assert [] == [held for held in quarantine() if held.resource == "Closes"]

    def test_an_error_is_pickled_with_its_faults(self, world: World) -> None:
        """Errors may be sent elsewhere."""
        import pickle

        with pytest.raises(DeclarationError) as caught:
            Graph(world.kind("a", ["a"])).start()
        copied = pickle.loads(pickle.dumps(caught.value))
        assert (type(caught.value), str(caught.value), caught.value.faults) == (
            type(copied),
            str(copied),
            copied.faults,
        )
