"""Who stops before whom."""

from __future__ import annotations

import random
import threading
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifegraph import CycleError, Graph, order_only
from tests.graph.world import World, fates, whole_life


@given(st.integers(2, 12), st.randoms(use_true_random=False))
def test_a_stop_may_still_use_what_it_depends_on(size: int, chance: random.Random) -> None:
    """In a chain in any order of declaration, a stop's last write goes through a dependency that is still open.

    https://github.com/ets-labs/python-dependency-injector/issues/432
    """
    world, opened = World(), set[int]()

    def last_write(n: int) -> None:
        assert n == 0 or n - 1 in opened, "it was closed, or opened again"
        opened.remove(n)

    chain = [
        world.kind(f"r{n}", [f"r{n - 1}"] if n else [], start=partial(opened.add, n), stop=partial(last_write, n))
        for n in range(size)
    ]
    chance.shuffle(chain)
    _, report = whole_life(*chain)
    assert {"released"} == set(fates(report).values())
    assert [f"r{n}" for n in reversed(range(size))] == world.names("stopped")
    assert 0 == report.exit_code


def test_engine_session_token() -> None:
    """The very case: the lock's token is given back through the session, then the session is closed.

    https://github.com/ets-labs/python-dependency-injector/issues/432
    """
    world = World()
    whole_life(world.kind("engine"), world.kind("token", ["session"]), world.kind("session", ["engine"]))
    assert ["token", "session", "engine"] == world.names("stop")
    assert world.place("stopped", "token") < world.place("stop", "session")


def test_a_direct_edge_does_not_let_a_leaf_stop_early() -> None:
    """A triangle, five hundred times with pauses by chance: the config stays until all its users are stopped.

    https://github.com/samber/do/issues/219
    """
    chance = random.Random(219)
    for _ in range(500):
        world = World()

        def pause() -> None:
            threading.Event().wait(chance.random() * 0.001)

        _, report = whole_life(
            world.kind("config", stop=pause),
            world.kind("am", ["config"], stop=pause),
            world.kind("server", ["am", "config"], stop=pause),
            workers=4,
        )
        assert ["server", "am", "config"] == world.names("stop")
        assert world.place("stopped", "am") < world.place("stop", "config")
        assert 3 == len(report.released)


@given(st.data())
def test_no_stop_overlaps_that_of_a_dependent(data: st.DataObject) -> None:
    """In any graph, with shortcuts of any kind, a stop is entered when those of all dependents have returned.

    https://github.com/samber/do/issues/219
    """
    world, size = World(), data.draw(st.integers(2, 9))
    needs = [data.draw(st.sets(st.integers(0, n - 1), max_size=4)) if n else set() for n in range(size)]
    weak = data.draw(st.sets(st.tuples(st.integers(0, size), st.integers(0, size)), max_size=6))
    kinds = [
        world.kind(f"r{n}", [order_only(f"r{d}") if (n, d) in weak else f"r{d}" for d in sorted(needs[n])])
        for n in range(size)
    ]
    whole_life(*data.draw(st.permutations(kinds)), workers=data.draw(st.sampled_from([1, 2, 8])))
    for n in range(size):
        for dependency in needs[n]:
            assert world.place("stopped", f"r{n}") < world.place("stop", f"r{dependency}")
            assert world.place("started", f"r{dependency}") < world.place("made", f"r{n}")


@pytest.mark.parametrize("weak", [False, True], ids=["uses", "order only"])
def test_an_order_that_differs_for_starting_and_stopping_is_refused(weak: bool) -> None:
    """Asked to start B, foo, A and to stop foo last, the graph is refused by an error that names both edges.

    https://github.com/systemd/systemd/issues/7821
    """
    world = World()
    extra = [order_only(name) if weak else name for name in ("foo",)]
    with pytest.raises(CycleError) as caught:
        Graph(world.kind("boot-B", extra), world.kind("foo", ["boot-B"]), world.kind("A", ["foo"])).start()
    for edge in ("boot-B -> foo", "foo -> boot-B"):
        assert edge in str(caught.value)
    assert [] == world.log
    graph = Graph(world.kind("boot-B"), world.kind("foo", ["boot-B"]), world.kind("A", ["foo"]))
    before = graph.plan().edges
    with pytest.raises(CycleError, match="foo -> boot-B"):
        graph.depend("boot-B", *extra)
    assert before == graph.plan().edges
