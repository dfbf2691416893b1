"""Members: what may be one, how it is found, and what graphs do not do to it."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from lifegraph import (
    AmbiguousDependencyError,
    Graph,
    GraphStateError,
    MissingDependencyError,
    StartError,
    order_only,
    resource,
)
from tests.graph.test_annotations import edges
from tests.graph.world import World, fates, raises


class Equal:
    """Equal to all of its kind, and with one hash."""

    def __init__(self) -> None:
        self.closed = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(self) -> int:
        return 7

    def close(self) -> None:
        self.closed += 1


class Untouchable:
    """Says no to everything that is asked of it, but for being closed."""

    def __init__(self) -> None:
        object.__setattr__(self, "closed", 0)

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    def __hash__(self) -> int:
        raise AssertionError("hashed")

    def __bool__(self) -> bool:
        raise AssertionError("asked whether it is true")

    def __len__(self) -> int:
        raise AssertionError("measured")

    def __iter__(self) -> Iterator[object]:
        raise AssertionError("iterated")

    def __repr__(self) -> str:
        raise AssertionError("shown")

    def __setattr__(self, name: str, value: object) -> None:
        raise AssertionError(f"{name} set")

    def close(self) -> None:
        object.__setattr__(self, "closed", self.closed + 1)  # type: ignore[attr-defined]  # set above

    __contains__ = __call__ = __getitem__ = None


@pytest.mark.parametrize("kind", [Equal, Untouchable])
def test_identity_is_all_that_counts(kind: Any) -> None:
    """Objects that are equal, or bear no question at all, are resources of their own."""
    graph = Graph()
    things = [graph.add(kind(), stop="close") for _ in range(3)]
    graph.depend(things[0], things[1], order_only(things[2]))
    user = graph.create(partial(resource(stop=None)(Holder), [things[1], {"deep": (things[2],)}]))
    first, second, third = (f"{kind.__name__}{suffix}" for suffix in ("", "-2", "-3"))
    assert {
        (first, second, True),
        (first, third, False),
        ("Holder", second, True),
        ("Holder", third, True),
    } == edges(graph)
    assert all(thing in graph for thing in things)
    assert kind() not in graph if kind is Untouchable else True
    graph.start()
    assert graph[second] is things[1]
    assert {"released"} == set(fates(graph.teardown()).values())
    assert [1, 1, 1] == [thing.closed for thing in things]
    assert user.held


class Holder:
    """Holds what it is given."""

    def __init__(self, held: object) -> None:
        self.held = held


def test_an_equal_object_is_no_member() -> None:
    """Equality with a member means nothing."""
    graph = Graph()
    graph.add(Equal(), stop="close")
    assert Equal() not in graph
    with pytest.raises(MissingDependencyError):
        graph.depend(Equal(), "Equal")
    graph.teardown()


@pytest.mark.parametrize(
    "held",
    [
        lambda it: it,
        lambda it: [it],
        lambda it: (1, it),
        lambda it: {"key": it},
        lambda it: {"key": [({"deeper": it},)]},
        lambda it: [[], [[it]]],
    ],
)
@pytest.mark.parametrize("how", ["position", "keyword", "partial", "create"])
def test_members_among_arguments_are_dependencies(world: World, held: Any, how: str) -> None:
    """Wherever a member stands among the arguments, what is made of them uses it."""
    graph = Graph()
    live = graph.add(Equal(), stop="close", name="live")
    graph.add(Equal(), stop="close", name="other")
    kind = resource(stop=None, name="user")(type("User", (Holder,), {}))
    match how:
        case "position":
            graph.create(kind, held(live))
        case "keyword":
            graph.create(kind, held=held(live))
        case "partial":
            graph.add(partial(kind, held(live)))
        case "create":
            graph.create(partial(kind, held=held(live)))
    assert {("user", "live", True)} == edges(graph)
    graph.start()
    graph.teardown()


def test_a_list_that_holds_itself_is_no_trap() -> None:
    """Arguments may be circular."""
    graph = Graph()
    live = graph.add(Equal(), stop="close")
    round_: list[object] = [live]
    round_.append(round_)
    graph.create(resource(stop=None)(Holder), round_)
    assert 1 == len(edges(graph))
    graph.teardown()


@pytest.mark.parametrize("value", [None, True, 0, 1, "", "prod", ()], ids=repr)
def test_plain_values_are_no_members(value: object) -> None:
    """What a factory yields may be a value that stands in other places, too: no edge comes of that."""

    @resource
    def setup() -> Iterator[object]:
        yield value

    with Graph(setup) as graph:
        graph.create(resource(stop=None)(Holder), value)
        assert set() == edges(graph)
        assert graph["setup"] is value


def test_parameters_of_create_are_filled_from_the_graph(world: World) -> None:
    """What is not given is filled; options are ours; the instance is returned and found."""

    class Db:
        def close(self) -> None: ...

    db_kind = resource(Db)

    class Api:
        def __init__(self, size: int, db: object) -> None:
            self.size, self.db = size, db

    Api.__init__.__annotations__["db"] = Db
    with Graph(db_kind) as graph:
        api = graph.create(Api, 3, stop=None, name="api", depends_on=[order_only("Db")], stop_timeout=1)
        assert (3, graph[Db]) == (api.size, api.db)
        assert api is graph["api"] is graph[Api]
        assert {("api", "Db", False)} == edges(graph)
        assert 1 == graph.plan().timeouts["api"]
        assert isinstance(graph.create(partial(Api, size=4), stop=None).db, Db)


class TestLookup:
    """graph[X], in, len and iteration."""

    def test_by_class_name_and_kin(self, world: World) -> None:
        """The exact class, else the only subclass; a name; two are ambiguous; none is missing."""

        class Base:
            pass

        class One(Base):
            pass

        class Two(Base):
            pass

        graph = Graph()
        one = graph.add(One(), stop=None, name="first")
        assert one is graph[One] is graph[Base] is graph["first"]
        two = graph.add(Two(), stop=None)
        with pytest.raises(AmbiguousDependencyError, match="first"):
            graph[Base]
        assert two is graph[Two]
        with pytest.raises(MissingDependencyError, match="did you mean 'first'"):
            graph["frist"]
        with pytest.raises(MissingDependencyError):
            graph[World]
        with pytest.raises(LookupError):
            graph["nothing like it"]
        assert (True, True, False, False) == ("first" in graph, One in graph, World in graph, "x" in graph)
        assert ["first", "Two"] == list(graph)
        assert 2 == len(graph)
        graph.teardown()

    def test_only_what_is_up(self, world: World) -> None:
        """Before it is up, and after its release, GraphStateError says so."""
        seen: list[object] = []
        kind = world.kind("a", start=lambda: look(), stop=lambda: seen.append(graph["a"]))

        def look() -> None:
            with pytest.raises(GraphStateError):
                graph["a"]

        graph = Graph(kind)
        with pytest.raises(GraphStateError, match="not up"):
            graph[kind]
        graph.start()
        up = graph[kind]
        graph.teardown()
        assert [up] == seen
        with pytest.raises(GraphStateError, match="released"):
            graph["a"]

    def test_during_the_teardown(self, world: World) -> None:
        """What a stop still uses can still be looked up; what is released cannot."""
        seen: list[object] = []

        def look() -> None:
            seen.append(graph["base"])
            with pytest.raises(GraphStateError):
                graph["above"]

        graph = Graph(world.kind("base"), world.kind("middle", ["base"], stop=look), world.kind("above", ["middle"]))
        graph.start()
        assert {"released"} == set(fates(graph.teardown()).values())
        assert 1 == len(seen)

    def test_a_graph_is_true_and_shown(self) -> None:
        """An empty graph is not false, and repr tells its name and state."""
        graph = Graph(name="mine")
        assert "mine" in repr(graph)
        assert "new" in repr(graph)


class TestOverride:
    """For tests: something else wherever X is asked for."""

    @pytest.mark.parametrize("asked", ["member", "pulled"])
    @pytest.mark.parametrize("by", ["instance", "class", "factory", "partial"])
    def test_in_every_place(self, asked: str, by: str) -> None:
        """Parameters, depends_on and lookups all get the replacement; the real one is never made."""
        made: list[str] = []

        class Db:
            def __init__(self) -> None:
                made.append("real")

            def close(self) -> None: ...

        real = resource(Db)
        fake: list[Any] = []

        class Fake:
            def __init__(self, size: int = 0) -> None:
                fake.append(self)

            def close(self) -> None:
                made.append("closed")

        @resource(stop=None)
        class Api:
            def __init__(self, db: Any) -> None:
                self.db = db

        Api.__init__.__annotations__["db"] = Db
        other = resource(stop=None, depends_on=[Db])(type("Other", (), {}))
        graph = Graph(Api, other) if asked == "pulled" else Graph(Api, real, other)
        replacement: Any = {
            "instance": lambda: Fake(),
            "class": lambda: Fake,
            "factory": lambda: lambda: Fake(),
            "partial": lambda: partial(Fake, 3),
        }[by]()
        graph.override(Db, replacement, stop="close")
        graph.start()
        assert fake == [graph[Api].db] == [graph[Db]]
        assert 3 == len(graph)
        assert 2 == len(edges(graph))
        report = graph.teardown()
        assert ["closed"] == made
        assert report.ok

    def test_by_name(self, world: World) -> None:
        """A name is a key like any other; an unknown one is missing."""
        graph = Graph(world.kind("a"), world.kind("b", ["a"]))
        graph.override("a", world.kind("other"))
        with graph:
            assert ["other", "b"] == world.names("start")
        with pytest.raises(MissingDependencyError):
            Graph().override("nobody", world.kind("c"))

    def test_after_the_start(self, world: World) -> None:
        """It is refused once the graph is no longer new."""
        graph = Graph(world.kind("a"))
        graph.start()
        with pytest.raises(GraphStateError):
            graph.override("a", world.kind("b"))
        graph.teardown()

    def test_a_replacement_has_needs_of_its_own(self, world: World) -> None:
        """Its dependencies are pulled in, those of the real one no longer are."""
        heavy = world.kind("heavy")
        light = world.kind("light")
        real = world.kind("real", [heavy])
        fake = world.kind("fake", [light])
        graph = Graph(world.kind("api", [real]))
        graph.override(real, fake)
        with graph:
            assert {"light", "fake", "api"} == set(world.names("start"))


class TestAdded:
    """What is brought in while the graph runs."""

    def test_starts_at_once_with_what_it_needs(self, world: World) -> None:
        """In a running graph the start hook has run when the verb returns, and its own needs are pulled in."""
        below = world.kind("below")
        with Graph(world.kind("base")) as graph:
            graph.add(world.kind("late", ["base", below]))
            assert ["base", "below", "late"] == world.names("started")
        assert ["late"] == world.names("stop")[:1]
        assert {"base", "below"} == set(world.names("stop")[1:])

    def test_a_live_object_with_a_start_hook(self, world: World) -> None:
        """In a running graph its start hook runs at once."""
        thing = world.kind("live")()
        with Graph() as graph:
            assert thing is graph.add(thing)
            assert ["live"] == world.names("started")
        assert ["live"] == world.names("stopped")

    def test_a_failed_one_is_forgotten(self, world: World) -> None:
        """A start that fails rolls back what that verb brought in, and nothing else; its name is free again."""
        below = world.kind("below")
        graph = Graph(world.kind("base"))
        graph.start()
        for how in (graph.add, graph.create):
            with pytest.raises(StartError) as caught:
                how(world.kind("late", ["base"], start=raises(OSError("x"))))
            assert {"late": "released"} == fates(caught.value.report)
            assert any(isinstance(error, OSError) for error in caught.value.exceptions)
            assert ["base"] == list(graph)
            assert "running" == graph.state
        with pytest.raises(StartError):
            graph.add(world.kind("late", ["base", below], made=raises(OSError("x"))))
        assert ["base"] == list(graph)
        assert ["late", "late", "below"] == world.names("stop")
        graph.create(world.kind("late", ["base"]))
        assert {"base": "released", "late": "released"} == fates(graph.teardown())

    def test_a_failed_create_in_a_new_graph(self, world: World) -> None:
        """The same before the start: StartError, and nothing is left."""
        graph = Graph()
        with pytest.raises(StartError) as caught:
            graph.create(world.kind("a", made=raises(OSError("x"))))
        assert ["OSError"] == [type(error).__name__ for error in caught.value.exceptions]
        assert [] == list(graph)
        assert "new" == graph.state
        assert {} == fates(graph.teardown())

    def test_edges_added_while_it_runs_count(self, world: World) -> None:
        """depend in a running graph decides the order and the poison of the teardown."""
        graph = Graph(world.kind("a"), world.kind("b", stop=raises(OSError())), world.kind("c"))
        graph.start()
        graph.depend("b", "a", order_only("c"))
        assert {("b", "a", True), ("b", "c", False)} == edges(graph)
        assert {"a": "poisoned", "b": "failed", "c": "released"} == fates(graph.teardown())

    def test_a_use_is_never_weakened(self, world: World) -> None:
        """An order-only edge added to a use edge leaves it one; a use added to an order-only one makes it one."""
        graph = Graph(world.kind("a"), world.kind("b", ["a"]), world.kind("c", [order_only("a")]))
        graph.depend("b", order_only("a"))
        graph.depend("c", "a")
        assert {("b", "a", True), ("c", "a", True)} == edges(graph)
        graph.depend("b", "a")
        assert 2 == len(graph.plan().edges)


class TestKindsOfClasses:
    """Nothing is stored on instances, and a class stays what it is."""

    def test_the_same_class_comes_back(self) -> None:
        """The decorator returns the same class or function, and keeps no list of them."""

        def factory() -> int:
            return 3

        assert factory is resource(stop=None)(factory)
        watch = self._decorated()
        gc.collect()
        assert watch() is None

    @staticmethod
    def _decorated() -> weakref.ref[type[Any]]:
        class Mine:
            def close(self) -> None: ...

        if resource(Mine) is not Mine:
            pytest.fail("another class came back")
        return weakref.ref(Mine)

    def test_instances_are_untouched(self) -> None:
        """An instance can be compared, copied and pickled as before, and has no attribute of ours."""

        @resource(stop=None)
        @dataclasses.dataclass
        class Point:
            x: int = 1

        with Graph(Point) as graph:
            point = graph[Point]
            assert {"x": 1} == vars(point)
            assert Point() == point == copy.copy(point)
            assert [field.name for field in dataclasses.fields(point)] == ["x"]

    def test_no_place_for_anything(self) -> None:
        """Slots without __dict__ and __weakref__, frozen dataclasses, and classes that guard their attributes."""

        @resource
        class Slots:
            __slots__ = ()

            def close(self) -> None: ...

        @resource(stop=None)
        @dataclasses.dataclass(frozen=True, slots=True)
        class Frozen:
            slots: Any = None

        class Model:
            """As validating libraries do it: declared fields only."""

            __fields__ = ("name",)

            def __init__(self, **fields: object) -> None:
                for name, value in fields.items():
                    setattr(self, name, value)

            def __setattr__(self, name: str, value: object) -> None:
                if name not in self.__fields__:
                    raise ValueError(name)
                object.__setattr__(self, name, value)

            def __getattr__(self, name: str) -> object:
                raise AttributeError(name)

        guarded = resource(stop=None)(Model)
        with Graph(Slots, Frozen, partial(guarded, name="x")) as graph:
            assert "x" == graph[Model].name
        assert graph.report is not None
        assert 3 == len(graph.report.released)

    def test_a_subclass_inherits_and_may_declare_again(self, world: World) -> None:
        """Its base's options hold, but for those it says anew."""

        @resource(stop="shutdown", stop_timeout=5, start_timeout=6)
        class Base:
            def shutdown(self) -> None:
                world.log.append(("stop", type(self).__name__))

        class Sub(Base):
            pass

        @resource(stop_timeout=7)
        class Again(Base):
            pass

        graph = Graph(Base, Sub, Again)
        assert {"Base": 5, "Sub": 5, "Again": 7} == dict(graph.plan().timeouts)
        graph.start()
        graph.teardown()
        assert {"Base", "Sub", "Again"} == set(world.names("stop"))

    @pytest.mark.parametrize("name", ["stop", "shutdown", "close", "aclose"])
    def test_stop_hooks_by_name(self, name: str) -> None:
        """The one that there is, is called; on decorated classes only."""
        called: list[str] = []
        kind = resource(type("Thing", (), {name: lambda self: called.append(name)}))
        with Graph(kind):
            pass
        assert [name] == called

    def test_hooks_may_be_callables(self) -> None:
        """A callable hook gets the object; a method named by a string may be any."""
        called: list[object] = []
        graph, thing = Graph(), Equal()
        graph.add(thing, start=called.append, stop=lambda it: called.append((it, "stop")))
        graph.start()
        graph.teardown()
        assert called[0] is thing
        assert called[1][0] is thing  # type: ignore[index]  # a tuple

    def test_a_stop_that_is_said_goes_before_names(self) -> None:
        """stop= silences the names, and stop=None means nothing."""
        called: list[str] = []
        kind = type(
            "Thing", (), {"close": lambda self: called.append("close"), "bye": lambda self: called.append("bye")}
        )
        with Graph(resource(stop="bye")(kind)):
            pass
        with Graph(resource(stop=None)(kind)):
            pass
        assert ["bye"] == called

    def test_static_and_class_methods_as_hooks(self) -> None:
        """Whatever can be called without arguments on the instance is a hook."""
        called: list[str] = []

        @resource
        class Thing:
            @classmethod
            def start(cls) -> None:
                called.append(cls.__name__)

            @staticmethod
            def stop() -> None:
                called.append("stop")

        with Graph(Thing):
            pass
        assert ["Thing", "stop"] == called

    def test_an_instance_attribute_as_hook(self) -> None:
        """A hook that only the instance has is found on it."""

        class Thing:
            def __init__(self) -> None:
                self.called = 0
                self.end = self._end

            def _end(self) -> None:
                self.called += 1

        graph, thing = Graph(), Thing()
        graph.add(thing, stop="end")
        graph.teardown()
        assert 1 == thing.called


def test_what_is_released_is_let_go(world: World) -> None:
    """After a good end neither graph nor report keep what was made alive."""
    kind = world.kind("a")
    graph = Graph(kind)
    graph.start()
    watch = weakref.ref(graph[kind])
    assert watch() is not None
    report = graph.teardown()
    gc.collect()
    assert watch() is None
    assert report.ok


def test_no_graph_keeps_another_alive(world: World) -> None:
    """A graph with nothing up is collected like any object."""
    graph = Graph(world.kind("a"))
    graph.start()
    graph.teardown()
    watch = weakref.ref(graph)
    pickle.dumps(graph.report)
    del graph
    gc.collect()
    assert watch() is None
