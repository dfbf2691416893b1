"""Annotations that are text: postponed evaluation, quotes, and imports for typing only, in modules of their own."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from lifegraph import AmbiguousDependencyError, DeclarationError, Graph
from tests.graph.test_annotations import edges

Module = Callable[..., ModuleType]

_numbers = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """Writes and imports a module; ``{n}`` in its source makes names of other modules unique to the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    number, before = next(_numbers), set(sys.modules)

    def make(name: str, source: str) -> ModuleType:
        unique = f"{name}{number}"
        text = textwrap.dedent(source).replace("{n}", str(number))
        (tmp_path / f"{unique}.py").write_text(text)
        __import__(unique)
        return sys.modules[unique]

    yield make
    for name in set(sys.modules) - before:
        if name.endswith(str(number)):
            del sys.modules[name]


FORMS = {
    "plain": ("Db", True),
    "quoted": ('"Db"', True),
    "optional": ("Db | None = None", True),
    "old optional": ("Optional[Db] = None", True),
    "optional of text": ('Optional["Db"] = None', True),
    "order": ("Annotated[Db, order_only]", False),
    "order of text": ('Annotated["Db", order_only]', False),
    "named": ('Annotated[Db, named("Db")]', True),
    "list": ("list[Db]", True),
    "list of text": ('list["Db"]', True),
    "dotted": ("store{n}.Db", True),
}


@pytest.mark.parametrize("future", [True, False], ids=["postponed", "at once"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_text(module: Module, form: str, future: bool) -> None:
    """Each is read as it would be if it were written without quotes."""
    annotation, uses = FORMS[form]
    module("store", "from lifegraph import resource\n@resource\nclass Db:\n    def close(self): ...\n")
    made = module(
        "user",
        f"""\
        {"from __future__ import annotations" if future else ""}
        from typing import Annotated, Optional
        import store{{n}}
        from store{{n}} import Db
        from lifegraph import named, order_only, resource

        @resource(stop=None)
        class User:
            def __init__(self, db: {annotation}):
                self.db = db
        """,
    )
    graph = Graph(made.Db, made.User)
    assert {("User", "Db", uses)} == edges(graph)
    with graph:
        got = graph[made.User].db
        assert graph[made.Db] is (got[0] if isinstance(got, list) else got)


def test_a_class_defined_later_in_the_module(module: Module) -> None:
    """Text is read when the graph is checked, not when the class is declared."""
    made = module(
        "later",
        """\
        from __future__ import annotations
        from lifegraph import resource

        @resource(stop=None)
        class User:
            def __init__(self, db: Db): self.db = db

        @resource
        def cache(db: Db) -> Iterator[Cache]:
            yield Cache()

        @resource
        class Db:
            def close(self): ...

        class Cache: ...
        from collections.abc import Iterator
        """,
    )
    graph = Graph(made.User, made.cache)
    assert {("User", "Db", True), ("cache", "Db", True)} == edges(graph)
    with graph:
        assert isinstance(graph[made.Cache], made.Cache)


DB = """\
from __future__ import annotations
from typing import TYPE_CHECKING
from lifegraph import resource
if TYPE_CHECKING:
    from store{n} import Db

@resource(stop=None)
class User:
    def __init__(self, db: Db): self.db = db
"""


class TestTypeCheckingOnly:
    """What is imported for typing only is found among the graph's own classes, or the error says what was wanted."""

    def test_a_class_of_the_graph(self, module: Module) -> None:
        """A member class of that name is meant."""
        store = module("store", "from lifegraph import resource\n@resource\nclass Db:\n    def close(self): ...\n")
        user = module("user", DB)
        assert {("User", "Db", True)} == edges(Graph(store.Db, user.User))
        assert {("User", "Db", True)} == edges(Graph(user.User, store.Db))

    def test_the_class_of_a_live_object(self, module: Module) -> None:
        """The class of an adopted object is among them."""
        store = module("store", "class Db:\n    def close(self): ...\n")
        user = module("user", DB)
        graph = Graph()
        graph.add(store.Db(), stop="close")
        graph.add(user.User)
        assert {("User", "Db", True)} == edges(graph)

    def test_what_a_factory_provides(self, module: Module) -> None:
        """The class that a factory provides is among them."""
        store = module(
            "store",
            "from lifegraph import resource\nclass Db: ...\n@resource(stop=None)\ndef make() -> Db:\n    return Db()\n",
        )
        user = module("user", DB)
        assert {("User", "make", True)} == edges(Graph(store.make, user.User))

    def test_two_classes_of_one_name(self, module: Module) -> None:
        """Nothing is guessed: where two members are called so, it is an error."""
        text = "from lifegraph import resource\n@resource\nclass Db:\n    def close(self): ...\n"
        store, other = module("store", text), module("other", text)
        user = module("user", DB)
        for kinds in ((store.Db, other.Db), (other.Db, store.Db)):
            with pytest.raises((AmbiguousDependencyError, DeclarationError), match="Db"):
                Graph(*kinds, user.User).start()

    def test_the_graph(self, module: Module) -> None:
        """``Graph`` itself is often imported so."""
        user = module(
            "user", DB.replace("from store{n} import Db", "from lifegraph import Graph").replace("db: Db", "db: Graph")
        )
        graph = Graph(user.User)
        with graph:
            assert graph[user.User].db is graph

    def test_nothing_of_that_name(self, module: Module) -> None:
        """The error names class, parameter and annotation, and a cure."""
        user = module("user", DB)
        with pytest.raises(DeclarationError) as caught:
            Graph(user.User).start()
        for word in ("User", "'db'", "'Db'", "user"):
            assert word in str(caught.value)

    def test_given_by_a_partial(self, module: Module) -> None:
        """An argument that is given needs no annotation that can be read."""
        from functools import partial

        user = module("user", DB)
        with Graph(partial(user.User, db=3)) as graph:
            assert 3 == graph[user.User].db


def test_text_that_is_no_type(module: Module) -> None:
    """Text that cannot be read at all is a fault of its own, and does not hide the others."""
    made = module(
        "odd",
        """\
        from lifegraph import resource
        @resource(stop=None)
        class Odd:
            def __init__(self, a: "1 +", b: "1/0", c: "nowhere.Db", d: int): ...
        """,
    )
    with pytest.raises(DeclarationError) as caught:
        Graph(made.Odd).start()
    assert 4 == len(caught.value.faults)
    for parameter in "abcd":
        assert f"{parameter!r}" in str(caught.value)


def test_local_classes_are_found(module: Module) -> None:
    """A class of the function around it is found when the graph has it."""
    made = module(
        "local",
        """\
        from __future__ import annotations
        from lifegraph import resource
        def make():
            @resource
            class Db:
                def close(self): ...
            @resource(stop=None)
            class User:
                def __init__(self, db: Db): self.db = db
            return Db, User
        """,
    )
    kind, user = made.make()
    assert {("User", "Db", True)} == edges(Graph(kind, user))
