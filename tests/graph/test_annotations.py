"""Edges out of annotations: every form of them, evaluated here (no postponed evaluation in this file)."""
# ruff: noqa: UP007, UP045  # the old forms of annotations are what is tested

# mypy: disable-error-code="misc, comparison-overlap, type-abstract, attr-defined, unreachable, unused-ignore"
# what mypy cannot follow is what is tested
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import (
    Annotated,
    Any,
    Generic,
    NamedTuple,
    Optional,
    Protocol,
    Self,
    TypeVar,
    Union,
    runtime_checkable,
)

import pytest

from lifegraph import (
    AmbiguousDependencyError,
    DeclarationError,
    Graph,
    MissingDependencyError,
    named,
    optional,
    order_only,
    resource,
)

T = TypeVar("T")


def edges(graph: Graph) -> set[tuple[str, str, bool]]:
    """All edges: dependent, dependency, whether it uses it."""
    return {(edge.dependent, edge.dependency, edge.uses) for edge in graph.plan().edges}


@resource
class Db:
    """A plain resource."""

    def close(self) -> None: ...


@resource
class PgDb(Db):
    """A subclass: it inherits the description."""


class Store(ABC):
    """An abstract class as a key."""

    @abstractmethod
    def get(self) -> int: ...


@resource
class Disk(Store):
    """One that is a Store."""

    def get(self) -> int:
        return 1

    def close(self) -> None: ...


@runtime_checkable
class Reads(Protocol):
    """A protocol as a key."""

    def read(self) -> bytes: ...


@runtime_checkable
class Sized(Protocol):
    """A protocol with an attribute, which only an instance can be asked for."""

    nbytes: int


@resource
class File:
    """One that reads."""

    def read(self) -> bytes:
        return b""

    def close(self) -> None: ...


@resource
class Metrics:
    """Something to be ordered after."""

    def close(self) -> None: ...


def user(annotation: Any, name: str = "User", default: Any = dataclasses.MISSING) -> type[Any]:
    """A resource with one parameter ``it`` annotated so."""
    if default is dataclasses.MISSING:

        def init(self: Any, it: Any) -> None:
            self.it = it
    else:

        def init(self: Any, it: Any = default) -> None:
            self.it = it

    init.__annotations__ = {"it": annotation, "return": None}
    return resource(stop=None)(type(name, (), {"__init__": init, "__module__": __name__}))


def filled(annotation: Any, *members: Any, **more: Any) -> Any:
    """What the parameter gets in a graph of these."""
    kind = user(annotation, **more)
    with Graph(*members, kind) as graph:
        return graph[kind].it


def test_a_plain_class() -> None:
    """It is filled with the member of that class, which is pulled in, and there is a use edge."""
    kind = user(Db)
    graph = Graph(kind)
    assert ["User", "Db"] == list(graph)
    assert {("User", "Db", True)} == edges(graph)
    with graph:
        assert graph[kind].it is graph[Db]
        assert type(graph[Db]) is Db


def test_the_only_subclass_answers() -> None:
    """Where there is no exact member, the only one that is a subclass answers."""
    assert isinstance(filled(Db, PgDb), PgDb)


def test_the_exact_class_goes_before_subclasses() -> None:
    """The exact class is taken, whatever else is one, in whatever order."""
    assert type(filled(Db, PgDb, Db)) is Db
    assert type(filled(Db, Db, PgDb)) is Db


@pytest.mark.parametrize(("key", "kind"), [(Store, Disk), (Reads, File)])
def test_abstract_keys(key: Any, kind: type[Any]) -> None:
    """ABCs and protocols that can be checked at run time are keys, and never pulled in themselves."""
    assert isinstance(filled(key, kind, Metrics), kind)
    with pytest.raises(MissingDependencyError, match=key.__name__):
        Graph(user(key), Metrics).start()


def test_a_protocol_with_attributes() -> None:
    """An instance may answer for one."""

    class Region:
        nbytes = 7

    region, graph = Region(), Graph()
    graph.add(region, stop=None)
    kind = user(Sized)
    graph.add(kind)
    with graph:
        assert graph[kind].it is region


def test_two_candidates_are_ambiguous() -> None:
    """Where two subclasses could answer, the error names both, and how to say which."""

    @resource
    class MyDb(Db):
        pass

    with pytest.raises(AmbiguousDependencyError) as caught:
        Graph(user(Db), PgDb, MyDb).start()
    for word in ("PgDb", "MyDb", "User", "'it'", "named"):
        assert word in str(caught.value)


def test_an_ambiguous_base_is_not_pulled_in_to_settle_it() -> None:
    """That the base class itself could be made decides nothing between two subclasses."""

    @resource
    class MyDb(Db):
        pass

    with pytest.raises(AmbiguousDependencyError):
        Graph(PgDb, MyDb, user(Db)).plan()


@pytest.mark.parametrize("many", [list[Store], Sequence[Store], tuple[Store, ...]])
def test_a_list_takes_all(many: Any) -> None:
    """All members that are one, in declared order."""

    @resource
    class Ram(Store):
        def get(self) -> int:
            return 2

        def close(self) -> None: ...

    kind = user(many)
    with Graph(Disk, kind, Ram, Metrics) as graph:
        assert [graph[Disk], graph[Ram]] == list(graph[kind].it)
        assert {("User", "Disk", True), ("User", "Ram", True)} == edges(graph)


def test_a_list_takes_the_exact_class_and_its_subclasses() -> None:
    """All means all: also where one member is of the very class."""
    kind = user(list[Db])
    with Graph(PgDb, Db, kind) as graph:
        assert [graph["PgDb"], graph["Db"]] == graph[kind].it


def test_a_list_of_what_comes_later() -> None:
    """Members added after it are among them, until the start."""
    kind = user(list[Store])
    graph = Graph(Disk, kind)
    graph.add(resource(name="second")(type("Second", (Disk,), {})))
    with graph:
        assert 2 == len(graph[kind].it)


@pytest.mark.parametrize("annotation", [Db | None, Optional[Db], Union[Db, None], Annotated[Db | None, "note"]])
def test_optional(annotation: Any) -> None:
    """With the default None: filled where the graph has it, not pulled in, and no error where it has not."""
    assert filled(annotation, default=None) is None
    assert isinstance(filled(annotation, Db, default=None), Db)
    assert ["User"] == list(Graph(user(annotation, default=None)))


def test_optional_without_a_default_gets_none() -> None:
    """``X | None`` is answered by None where there is no X."""
    assert filled(Db | None) is None


def test_an_optional_self_is_none() -> None:
    """A resource cannot fill its own parameter; an optional one is then None."""

    @resource(stop=None)
    class Logger:
        def __init__(self, parent: Any = None) -> None:
            self.parent = parent

    Logger.__init__.__annotations__["parent"] = Logger | None
    with Graph(Logger) as graph:
        assert graph[Logger].parent is None


def test_a_wrapper_of_its_own_kind_wraps_the_other() -> None:
    """A cache that is a Store and takes a Store takes the other one."""

    @resource
    class Cache(Store):
        def __init__(self, inner: Store) -> None:
            self.inner = inner

        def get(self) -> int:
            return self.inner.get()

        def close(self) -> None: ...

    with Graph(Cache, Disk) as graph:
        assert graph[Cache].inner is graph[Disk]


def test_marks() -> None:
    """Annotated[..., order_only], optional, and named say what they say; other metadata says nothing."""
    graph = Graph(user(Annotated[Metrics, "note", order_only]))
    assert {("User", "Metrics", False)} == edges(graph)
    assert [] == list(edges(Graph(user(Annotated[Metrics, optional], default=None))))
    assert isinstance(filled(Annotated[Metrics, order_only]), Metrics)
    second = resource(name="second")(type("Second", (Db,), {}))
    assert type(filled(Annotated[Db, named("second")], Db, second)) is second
    with pytest.raises(MissingDependencyError, match="thrid"):
        Graph(user(Annotated[Db, named("thrid")]), resource(name="third")(type("Third", (Db,), {}))).start()


def test_marks_can_be_combined() -> None:
    """Named and order-only."""
    second = resource(name="second")(type("Second", (Db,), {}))
    graph = Graph(user(Annotated[Db, named("second"), order_only]), Db, second)
    assert {("User", "second", False)} == edges(graph)


def test_a_use_and_an_order_only_parameter_make_a_use_edge() -> None:
    """Where one parameter uses what another only waits for, it is used."""

    @resource(stop=None)
    class Both:
        def __init__(self, a: Annotated[Db, order_only], b: Db, c: Annotated[Db, order_only]) -> None: ...

    assert {("Both", "Db", True)} == edges(Graph(Both))


def test_a_generic_class() -> None:
    """A parametrised class asks for the class."""

    @resource
    class Pool(Generic[T]):
        def close(self) -> None: ...

    assert isinstance(filled(Pool[int], Pool), Pool)


def test_provides() -> None:
    """A resource answers for what it says it provides, and for its own class still."""

    @resource(provides=Store)
    class Lazy:
        def close(self) -> None: ...

    assert isinstance(filled(Store, Lazy), Lazy)
    assert isinstance(filled(Lazy, Lazy), Lazy)


def test_what_an_adopted_object_provides() -> None:
    """The same for a live object."""

    class Fake:
        pass

    graph, fake = Graph(), Fake()
    graph.add(fake, provides=Db, stop=None)
    assert graph[Db] is fake
    assert graph[Fake] is fake


def returning(annotation: Any) -> Any:
    """A factory with that return annotation, that returns a new Disk."""

    def factory() -> Any:
        return Disk()

    factory.__annotations__["return"] = annotation
    return resource(stop="close")(factory)


def yielding(annotation: Any) -> Any:
    """The same for a generator."""

    def factory() -> Any:
        yield Disk()

    factory.__annotations__["return"] = annotation
    return resource(factory)


@pytest.mark.parametrize(
    "factory",
    [
        returning(Disk),
        returning(Store),
        returning(Annotated[Disk, "note"]),
        yielding(Iterator[Disk]),
        yielding(Generator[Disk, None, None]),
        yielding(Generator[Store, None, None]),
        yielding(AsyncIterator[Disk]),
    ],
    ids=lambda f: str(f.__annotations__["return"]),
)
def test_a_factory_provides_its_return_annotation(factory: Any) -> None:
    """The class itself for functions, what is yielded for generators."""
    assert isinstance(filled(Store, factory), Disk)


def test_factories_are_keys() -> None:
    """A factory in depends_on is pulled in, and its members are resources like others."""

    @resource(stop=None)
    def make() -> Db:
        return Db()

    @resource(depends_on=[make])
    class User:
        def close(self) -> None: ...

    assert {("User", "make", True)} == edges(Graph(User))


def test_a_factory_with_parameters() -> None:
    """Parameters of factories are filled like those of constructors."""

    @resource
    def cache(db: Db, size: int = 3) -> Iterator[Store]:
        assert isinstance(db, Db)
        yield Disk()

    graph = Graph(cache)
    assert {("cache", "Db", True)} == edges(graph)
    with graph:
        assert isinstance(graph[Store], Disk)


def test_the_graph_itself() -> None:
    """A parameter annotated Graph gets the graph, without an edge; optional or not."""
    for annotation in (Graph, Graph | None, Annotated[Graph, "note"]):
        kind = user(annotation)
        graph = Graph(kind)
        with graph:
            assert graph[kind].it is graph
        assert set() == edges(graph)


@pytest.mark.parametrize("annotation", [int, str, Any, dict[str, int], list[int], object, None, int | None, "int"])
def test_an_unfilled_parameter(annotation: Any) -> None:
    """A required parameter that no resource can fill is an error that names it and the cure."""
    with pytest.raises(DeclarationError) as caught:
        Graph(user(annotation)).start()
    for word in ("User", "'it'", "partial", "create"):
        assert word in str(caught.value)
    assert 5 == filled(annotation, default=5)


def test_an_unannotated_parameter() -> None:
    """Without an annotation nothing is guessed."""

    @resource(stop=None)
    class User:
        def __init__(self, db) -> None:  # type: ignore[no-untyped-def]  # that is the point
            ...

    with pytest.raises(DeclarationError, match="'db'"):
        Graph(Db, User).start()


def test_other_ways_of_being_constructed() -> None:
    """Dataclasses, named tuples, classes with __new__, with slots, keyword-only parameters: all are filled."""

    @resource(stop=None)
    @dataclasses.dataclass(frozen=True, slots=True)
    class Frozen:
        db: Db
        size: int = 3

    @dataclasses.dataclass(slots=True)
    @resource(stop=None)
    class Slotted:
        db: Db

    @resource(stop=None)
    class Row(NamedTuple):
        db: Db

    @resource(stop=None)
    class New:
        __slots__ = ("db",)

        def __new__(cls, db: Db) -> Self:
            made = super().__new__(cls)
            made.db = db  # type: ignore[misc]  # a slot
            return made

    @resource(stop=None)
    class Keyword:
        def __init__(self, *rest: int, db: Db, **more: int) -> None:
            self.db = db

    @resource(stop=None)
    class Positional:
        def __init__(self, db: Db, /, size: int = 1) -> None:
            self.db = db

    with Graph(Frozen, Slotted, Row, New, Keyword, Positional) as graph:
        for kind in (Frozen, Slotted, Row, New, Keyword, Positional):
            assert graph[kind].db is graph[Db], kind


def test_arguments_given_are_not_filled() -> None:
    """What a partial says stays as it is said, by position or by name; the rest is filled."""

    @resource(stop=None)
    class User:
        def __init__(self, db: Db, metrics: Metrics, size: int) -> None:
            self.given = (db, metrics, size)

    own = Db()
    for target in (partial(User, own, size=3), partial(User, db=own, size=3), partial(partial(User, own), size=3)):
        with Graph(target) as graph:
            db, metrics, size = graph[User].given
            assert (True, True, 3) == (db is own, metrics is graph[Metrics], size)
            assert {("User", "Metrics", True)} == edges(graph)


def test_a_context_manager_factory() -> None:
    """A function made by contextmanager can be entered, and its edges be said."""

    @contextmanager
    def session() -> Iterator[int]:
        yield 3

    graph = Graph(Db)
    graph.start()
    assert 3 == graph.enter(session(), name="session", depends_on=[Db])
    assert {("session", "Db", True)} == edges(graph)
    graph.teardown()


def test_depends_on_wins() -> None:
    """Where depends_on and an annotation speak of one dependency, depends_on decides, and the parameter is filled."""

    @resource(depends_on=[order_only(Db)], stop=None)
    class User:
        def __init__(self, db: Db) -> None:
            self.db = db

    graph = Graph(User)
    assert {("User", "Db", False)} == edges(graph)
    with graph:
        assert graph[User].db is graph[Db]


def test_depends_on_takes_all_shapes() -> None:
    """Classes, factories, instances and names; bare, order-only, optional, and both."""

    @resource(stop=None)
    def factory() -> int:
        return 3

    live = object()

    @resource(
        depends_on=(
            Db,
            factory,
            live,
            "disk",
            order_only("Metrics"),
            optional("nowhere"),
            optional(File),
            optional(order_only(PgDb)),
            order_only(optional(Reads)),
        ),
        stop=None,
    )
    class User: ...

    graph = Graph(Metrics, resource(name="disk")(type("D", (Disk,), {})), factory)
    graph.add(live, stop=None, name="live")
    graph.add(User)
    assert {
        ("User", "Db", True),
        ("User", "factory", True),
        ("User", "live", True),
        ("User", "disk", True),
        ("User", "Metrics", False),
    } == edges(graph)


def test_the_stronger_of_two_edges_is_kept() -> None:
    """Said twice in depends_on, as a use and as order only, it is a use: the safe side."""

    @resource(depends_on=[Db, order_only(Db)], stop=None)
    class User: ...

    @resource(depends_on=[order_only(Db), Db], stop=None)
    class Other: ...

    assert {("User", "Db", True), ("Other", "Db", True)} == edges(Graph(User, Other))
