"""The walk, exhaustively: every small DAG, every outcome, every order of arrival, with cuts at every state.

The oracle is written anew from the rule, over whole histories, and shares no code with the walk: it looks
at the actions told (``go``, ``news``) as much as at the states.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifegraph.walk import BAD, MOVES, State, Walk

NODES = int(os.environ.get("LIFEGRAPH_WALK_NODES", "4"))
INF = float("inf")
SETTLED = {s for s in State if s >= State.PASSED}

STATES = {1: 8, 2: 46, 3: 412, 4: 6128}  # reachable, pinned so that a search which stops short is seen

Edges = tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]


def dags(size: int) -> Iterator[Edges]:
    """Every labelled DAG whose numbering is topological, each edge absent or carrying."""
    pairs = list(itertools.combinations(range(size), 2))
    for kinds in itertools.product((0, 1), repeat=len(pairs)):
        yield rows(size, pairs, kinds)


def mixed_dags(size: int) -> Iterator[Edges]:
    """Every such DAG with each edge absent, carrying or ordering."""
    pairs = list(itertools.combinations(range(size), 2))
    for kinds in itertools.product((0, 1, 2), repeat=len(pairs)):
        yield rows(size, pairs, kinds)


def rows(size: int, pairs: list[tuple[int, int]], kinds: tuple[int, ...]) -> Edges:
    """Adjacency (carrying, ordering) from a kind for each pair."""
    carrying = tuple(tuple(b for (a, b), k in zip(pairs, kinds, strict=True) if a == n and k == 1) for n in range(size))
    ordering = tuple(tuple(b for (a, b), k in zip(pairs, kinds, strict=True) if a == n and k == 2) for n in range(size))
    return carrying, ordering


class Observed:
    """A walk and everything it has told, held against the rule after every letter."""

    def __init__(self, edges: Edges, idle: tuple[int, ...]) -> None:
        self.carrying, self.ordering = edges
        self.idle = set(idle)
        self.size = len(self.carrying)
        self.walk = Walk(self.carrying, self.ordering, idle)
        self.told: dict[int, list[State]] = {n: [] for n in range(self.size)}
        self.before: list[State] = [State.WAITING] * self.size
        self.expected_bad: set[int] = set()
        self.cut = False
        self.last_letter = ""

    def letter(self, kind: str, node: int = -1) -> None:
        """Send one letter and check all that follows from it."""
        walk = self.walk
        self.last_letter = kind
        match kind:
            case "open":
                walk.open()
            case "begin":
                assert walk.begin(node)
            case "done":
                assert walk.done(node)
            case "failed":
                assert walk.failed(node)
            case "halt":
                self.cut = True
                walk.halt()
            case "hurry":
                self.cut = True
                walk.hurry()
            case "late":
                before = self.snapshot()
                assert not walk.done(node)
                assert not walk.failed(node)
                assert not walk.begin(node)
                assert self.snapshot() == before, "a late answer changes nothing"
        self.check(kind, node)

    def snapshot(self) -> tuple[object, ...]:
        """All that can be seen of the walk."""
        return bytes(self.walk.states), tuple(self.walk.go), tuple(self.walk.news), self.walk.over, self.walk.cut

    def check(self, kind: str, letter_node: int) -> None:
        """The told actions and the states agree with each other and with the rule."""
        walk = self.walk
        now = [walk.state(n) for n in range(self.size)]
        for node in walk.go:
            self.told[node].append(State.TOLD)
        for state, node in walk.news:
            self.told[node].append(state)
        asked = {letter_node} if kind in ("done", "failed", "begin") else set()
        for node in range(self.size):
            old, new = self.before[node], now[node]
            if old != new:
                path = (old, new) in MOVES or (old, new) == (State.WAITING, State.TOLD)
                assert path, f"{old} -> {new} is no move"
                announced = [s for s in self.told[node] if s == new]
                assert announced or node in asked, f"node {node} became {new} untold"
        walk.go.clear()
        walk.news.clear()
        for node in range(self.size):
            story = [s for s in self.told[node] if s != State.RUNNING]
            settlements = [s for s in story if s in SETTLED]
            assert len(story) == len(set(story)), f"node {node} was told the same twice: {story}"
            assert len(settlements) <= 1
            if State.TOLD in story:
                assert set(story) <= {State.TOLD, State.CUT, State.FAILED}, f"told to go and also {story}"
            self.rule(node, now)
        assert walk.over == all(s in SETTLED for s in now)
        assert sorted(walk.acting) == [n for n in range(self.size) if now[n] == State.RUNNING]
        if kind == "hurry":
            assert walk.over
        self.before = now

    def rule(self, node: int, now: list[State]) -> None:
        """What the state of ``node`` may be, given those that come before it and nothing else."""
        users = [n for n in range(self.size) if node in self.carrying[n]]
        orders = [n for n in range(self.size) if node in self.ordering[n]]
        ready = all(now[n] in SETTLED for n in users + orders)
        bad = any(now[n] in BAD for n in users)
        state = now[node]
        if not ready:
            assert state == State.WAITING, "order: nothing has its turn before those before it are settled"
        elif bad:
            assert state == State.BLOCKED, "safety: what a bad node carries onto never acts"
        elif node in self.idle:
            assert state == State.PASSED
        elif self.cut:
            assert state in (State.CUT, State.RUNNING, State.DONE, State.FAILED)
        else:
            assert state in (State.TOLD, State.RUNNING, State.DONE, State.FAILED), "liveness: its turn was given"
        if state == State.BLOCKED:
            assert bad, "isolation: only what is carried onto is blocked"


def replay(edges: Edges, idle: tuple[int, ...], letters: tuple[tuple[str, int], ...]) -> Observed:
    """A fresh walk that got these letters."""
    seen = Observed(edges, idle)
    for kind, node in letters:
        seen.letter(kind, node)
    return seen


def explore(edges: Edges, idle: tuple[int, ...]) -> int:
    """Visit every state of one DAG reachable by any letters in any order; return how many there were."""
    visited: set[tuple[object, ...]] = set()
    frontier: list[tuple[tuple[str, int], ...]] = [(("open", -1),)]
    while frontier:
        letters = frontier.pop()
        seen = replay(edges, idle, letters)
        key = (bytes(seen.walk.states), seen.cut)
        if key in visited:
            continue
        visited.add(key)
        choices: list[tuple[str, int]] = []
        for node in range(seen.size):
            state = seen.walk.state(node)
            if state == State.TOLD:
                choices.append(("begin", node))
            elif state == State.RUNNING:
                choices += [("done", node), ("failed", node)]
            elif state in SETTLED:
                replay(edges, idle, letters).letter("late", node)
        if not seen.cut:
            choices += [("halt", -1)]
        if not seen.walk.over:
            choices += [("hurry", -1)]
        assert seen.walk.over or choices, "a walk that is not over can always go on"
        frontier += [(*letters, choice) for choice in choices]
    return len(visited)


@pytest.mark.parametrize("size", range(1, NODES + 1))
def test_every_dag_every_outcome_every_order(size: int) -> None:
    """On every DAG of this size, in every reachable state, every letter keeps the rule."""
    states = sum(explore(edges, ()) for edges in dags(size))
    assert states == STATES.get(size, states)


@pytest.mark.parametrize("size", range(1, 4))
def test_every_mixed_dag_with_idle_nodes(size: int) -> None:
    """The same with ordering edges and every choice of idle nodes."""
    for edges in mixed_dags(size):
        for idle in itertools.chain.from_iterable(itertools.combinations(range(size), k) for k in range(size + 1)):
            explore(edges, idle)


def test_every_mixed_dag_of_four_walks_down_in_every_outcome() -> None:
    """Four nodes with both kinds of edges: every outcome of every node, first come first served, keeps the rule."""
    for edges in mixed_dags(4):
        for outcomes in itertools.product(("done", "failed"), repeat=4):
            seen = replay(edges, (), (("open", -1),))
            while not seen.walk.over:
                node = next(n for n in range(4) if seen.walk.state(n) in (State.TOLD, State.RUNNING))
                seen.letter("begin" if seen.walk.state(node) == State.TOLD else outcomes[node], node)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Edges, tuple[int, ...], list[int]]:
    """A DAG of up to 12 nodes with idle ones, and choices for what happens next."""
    size = draw(st.integers(1, 12))
    pairs = list(itertools.combinations(range(size), 2))
    kinds = tuple(draw(st.lists(st.sampled_from((0, 0, 1, 2)), min_size=len(pairs), max_size=len(pairs))))
    idle = tuple(draw(st.sets(st.integers(0, size - 1), max_size=3)))
    return rows(size, pairs, kinds), idle, draw(st.lists(st.integers(0, 99), min_size=40, max_size=40))


@given(histories())
@settings(max_examples=300)
def test_larger_dags_keep_the_rule(history: tuple[Edges, tuple[int, ...], list[int]]) -> None:
    """Random walks over larger DAGs keep the same rule after every letter."""
    edges, idle, choices = history
    seen = replay(edges, idle, (("open", -1),))
    for choice in choices:
        if seen.walk.over:
            break
        if choice >= 97:
            seen.letter("halt" if choice < 99 else "hurry")
            continue
        active = [n for n in range(seen.size) if seen.walk.state(n) in (State.TOLD, State.RUNNING)]
        node = active[choice % len(active)]
        if seen.walk.state(node) == State.TOLD:
            seen.letter("begin", node)
        else:
            seen.letter("failed" if choice % 3 == 0 else "done", node)


def test_a_deadline_is_told_once_and_a_new_beginning_renews_it() -> None:
    """What runs past its deadline is told once; beginning again gives it another."""
    walk = Walk([(), ()])
    walk.open()
    walk.begin(0, 5.0)
    walk.begin(1, 3.0)
    assert walk.next_deadline == 3.0
    walk.tick(2.9)
    assert walk.news == []
    walk.tick(3.0)
    walk.tick(3.5)
    assert walk.news == [(State.RUNNING, 1)]
    assert walk.next_deadline == 5.0
    assert walk.begin(1, 4.0)
    assert walk.next_deadline == 4.0
    walk.tick(4.0)
    assert walk.news == [(State.RUNNING, 1)] * 2
    assert walk.failed(1)
    assert not walk.begin(1, 9.0)


def test_the_end_hurries() -> None:
    """At the end everything is settled: what ran has failed, what it carries onto is blocked, the rest is cut."""
    walk = Walk([(1,), (), (), (4,), ()], ordering=[(), (), (3,), (), ()], end=7.0)
    walk.open()
    assert walk.next_deadline == 7.0
    walk.begin(0, 100.0)
    assert walk.deadline(0) == 7.0
    walk.tick(7.0)
    assert walk.over
    assert [walk.state(n) for n in range(5)] == [State.FAILED, State.BLOCKED, State.CUT, State.CUT, State.BLOCKED]
    assert walk.next_deadline == INF


def test_grow_joins_before_and_after_its_blockers() -> None:
    """A node added during the walk waits for those unsettled, and is blocked by those that are bad."""
    walk = Walk([[], []])
    walk.open()
    walk.begin(0)
    walk.begin(1)
    third = walk.grow([0, 1])
    assert walk.state(third) == State.WAITING
    walk.done(0)
    walk.done(1)
    assert walk.go == [0, 1, third]
    assert walk.grow([0], idle=True) == 3
    assert walk.state(3) == State.PASSED
    walk.begin(third)
    walk.failed(third)
    assert walk.state(walk.grow([third])) == State.BLOCKED
    assert walk.over


def test_misuse_is_said() -> None:
    """An answer before its beginning, and a beginning before its turn, are errors of the driver."""
    walk = Walk([(1,), ()])
    walk.open()
    with pytest.raises(ValueError, match="node 1 began before its turn"):
        walk.begin(1)
    with pytest.raises(ValueError, match="node 0 answered before it began"):
        walk.done(0)


def test_a_chain_of_a_million_is_walked_without_recursion() -> None:
    """A failure at the top of a million blocks them all, iteratively."""
    size = 1_000_000
    walk = Walk([(n + 1,) if n + 1 < size else () for n in range(size)])
    walk.open()
    walk.begin(0)
    walk.failed(0)
    assert walk.over
    assert walk.state(size - 1) == State.BLOCKED


def test_a_halt_takes_back_what_was_told_and_not_taken_yet() -> None:
    """A node that was told to go and is cut stands in one list only."""
    walk = Walk([(), ()])
    walk.open()
    walk.begin(1)
    walk.halt()
    assert [] == walk.go
    assert [(State.CUT, 0)] == walk.news
