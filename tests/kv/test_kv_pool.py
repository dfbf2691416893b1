"""The pool: what a block's states allow, for any sequence of calls."""

from __future__ import annotations

import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from examples.kv_offload.memory.policies import Arc, PolicyName
from examples.kv_offload.memory.pool import BlockPool, BlockState, Counts

CAPACITY = 6
KEYS = st.lists(st.binary(min_size=1, max_size=1).map(lambda key: bytes([key[0] % 12])), max_size=4, unique=True)
OWNERS = st.sampled_from(["disk", "peer", "engine"])


def pool(blocks=CAPACITY, policy=PolicyName.LRU):
    """A pool over no memory at all: it never touches any."""
    return BlockPool(None, blocks * 4096, 4096, policy)  # type: ignore[arg-type]  # the registration is only kept


class PoolMachine(RuleBasedStateMachine):
    """Compares the pool with a model that knows the slots of keys, their writers and their pins."""

    policy = PolicyName.LRU

    def __init__(self):
        super().__init__()
        self.pool = pool(policy=self.policy)
        self.writers: dict[bytes, tuple[str, int]] = {}
        self.ready: dict[bytes, int] = {}
        self.pins: dict[bytes, list[str]] = {}

    def _forget_evicted(self):
        for key in [key for key in self.ready if self.pool.state(key) is BlockState.FREE]:
            assert not self.pins.get(key), "a pinned block was evicted"
            del self.ready[key]

    @rule(keys=KEYS, writer=OWNERS)
    def reserve(self, keys, writer):
        before = (dict(self.ready), self.pool.counts())
        if any(key in self.ready or key in self.writers for key in keys):
            with pytest.raises(ValueError, match="already"):
                self.pool.reserve(keys, writer)
            slots = None
        else:
            pinned = sum(bool(self.pins.get(key)) for key in self.ready)
            fits = len(keys) <= CAPACITY - pinned - len(self.writers)
            slots = self.pool.reserve(keys, writer)
            assert fits == (slots is not None)
        if slots is None:
            assert before == (self.ready, self.pool.counts())
        else:
            self._forget_evicted()
            self.writers.update(zip(keys, ((writer, slot) for slot in slots), strict=True))

    @rule(writer=OWNERS, owners=st.lists(OWNERS, max_size=2))
    def commit(self, writer, owners):
        mine = {key: slot for key, (who, slot) in self.writers.items() if who == writer}
        assert list(mine.values()) == self.pool.commit(list(mine), writer, owners)
        for key, slot in mine.items():
            del self.writers[key]
            self.ready[key] = slot
            self.pins[key] = list(owners)

    @rule(writer=OWNERS)
    def abort(self, writer):
        mine = [key for key, (who, _) in self.writers.items() if who == writer]
        self.pool.abort(mine, writer)
        for key in mine:
            del self.writers[key]
            assert self.pool.state(key) is BlockState.FREE

    @rule(keys=KEYS, owner=OWNERS)
    def pin(self, keys, owner):
        slots = self.pool.pin(keys, owner)
        assert (slots is not None) == all(key in self.ready for key in keys)
        if slots is not None:
            assert [self.ready[key] for key in keys] == slots
            for key in keys:
                self.pins.setdefault(key, []).append(owner)

    @rule(keys=KEYS, owner=OWNERS)
    def pin_each(self, keys, owner):
        assert [self.ready.get(key) for key in keys] == self.pool.pin_each(keys, owner)
        for key in keys:
            if key in self.ready:
                self.pins.setdefault(key, []).append(owner)

    @rule(owner=OWNERS)
    def unpin(self, owner):
        mine = [key for key, owners in self.pins.items() if owner in owners]
        self.pool.unpin(mine, owner)
        for key in mine:
            self.pins[key].remove(owner)

    @rule(count=st.integers(0, CAPACITY + 1))
    def evict(self, count):
        before = self.pool.counts()
        if self.pool.evict(count):
            assert self.pool.counts().free >= count
            self._forget_evicted()
        else:
            assert before == self.pool.counts()

    @rule()
    def reset(self):
        pinned = sum(bool(self.pins.get(key)) for key in self.ready)
        assert pinned + len(self.writers) == self.pool.reset()
        self._forget_evicted()
        assert pinned == len(self.ready)

    @invariant()
    def slots_are_never_shared(self):
        slots = [*self.ready.values(), *(slot for _, slot in self.writers.values())]
        assert len(set(slots)) == len(slots)

    @invariant()
    def counts_agree(self):
        pinned = sum(bool(self.pins.get(key)) for key in self.ready)
        free = CAPACITY - len(self.ready) - len(self.writers)
        assert Counts(free, len(self.writers), len(self.ready), pinned) == self.pool.counts()
        assert CAPACITY - len(self.writers) - pinned == self.pool.room()


class ArcMachine(PoolMachine):
    """The same with the other policy: which block goes may differ, what may go does not."""

    policy = PolicyName.ARC


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestArcMachine = ArcMachine.TestCase
TestArcMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
both_policies = pytest.mark.parametrize("policy", PolicyName)


def filled(blocks, key, policy=PolicyName.LRU):
    """A pool full of ready blocks, the first key the least recently used."""
    full = pool(blocks, policy)
    keys = [key(number) for number in range(blocks)]
    full.reserve(keys, "engine")
    full.commit(keys, "engine")
    return full, keys


def test_the_least_recently_used_goes_first(key):
    """A pin and unpin is a use."""
    full, keys = filled(3, key)
    full.pin(keys[:1], "engine")
    full.unpin(keys[:1], "engine")
    full.reserve([key(9)], "engine")
    assert [BlockState.READY, BlockState.FREE, BlockState.READY] == [full.state(each) for each in keys]
    assert 1 == full.evicted


def visit(pool, keys):
    """What a request does to a block that is here, or to one that it has to compute."""
    if pool.pin(keys, "engine") is None:
        assert pool.reserve(keys, "engine") is not None
        pool.commit(keys, "engine", pin_for=["engine"])
        pool.unpin(keys, "engine")
        return 0
    pool.unpin(keys, "engine")
    return 1


@pytest.mark.parametrize(("policy", "kept"), [(PolicyName.LRU, 0), (PolicyName.ARC, 4)])
def test_a_long_scan_washes_out_what_is_used_often_unless_the_policy_is_arc(key, policy, kept):
    """Four blocks are used twice, then forty others once each: LRU has lost the four, ARC has them still."""
    busy = pool(8, policy)
    often = [key(number) for number in range(4)]
    for each in often * 2:
        visit(busy, [each])
    for number in range(40):
        visit(busy, [key(100 + number)])
    assert kept == sum(busy.state(each) is BlockState.READY for each in often)


def test_arc_learns_from_what_is_asked_for_again():
    """What was given up after one use and is wanted again gives such blocks a larger share; the reverse takes it back."""
    arc = Arc(4)

    def serve(key):
        arc.arrive(key)
        arc.idle(key)

    for key in (b"a", b"b", b"c", b"d"):
        serve(key)
    arc.use(b"a")
    assert [b"b"] == arc.give_up(1)
    assert 0 == arc.share
    serve(b"b")
    grown = arc.share
    assert grown > 0
    assert [b"c", b"a"] == arc.give_up(2), "those used once have no more than their share any longer"
    serve(b"a")
    assert arc.share < grown


def test_arc_remembers_no_more_than_it_has_room_for():
    """Over any number of keys it knows at most twice its capacity."""
    arc = Arc(3)
    for number in range(100):
        key = number.to_bytes(2, "big")
        if arc.idle_count() == 3:
            arc.give_up(1)
        arc.arrive(key)
        arc.idle(key)
        if number % 3 == 0:
            arc.use(key)
    assert len(arc.remembered()) <= 3
    assert arc.idle_count() == 3


@both_policies
def test_an_aborted_write_leaves_no_trace(key, policy):
    """The slot is free, and the same key can be written again."""
    empty = pool(2, policy)
    empty.reserve([key(1)], "engine")
    empty.abort([key(1)], "engine")
    assert Counts(2, 0, 0, 0) == empty.counts()
    assert empty.reserve([key(1), key(2)], "engine") is not None
    assert empty.reserve([key(3)], "engine") is None, "what is being written is never given up"


@both_policies
def test_a_reset_forgets_all_but_what_is_in_use(key, policy):
    """A pinned block stays, with its pin; afterwards the pool works on."""
    full, keys = filled(3, key, policy)
    full.pin(keys[:1], "disk")
    assert 1 == full.reset()
    assert Counts(2, 0, 1, 1) == full.counts()
    full.unpin(keys[:1], "disk")
    assert full.reserve([key(7), key(8), key(9)], "engine") is not None


def test_holders_say_how_much_and_for_how_long(key):
    """Each owner with its blocks and bytes, and the age of the oldest of them; those who hold longest come first."""
    full, keys = filled(3, key)
    full.pin(keys[:2], "disk")
    full.pin(keys[:1], "peer")
    full.pin(keys[:1], "disk")
    full.unpin(keys[:1], "disk")
    told = full.holders()
    assert [("disk", 2, 2 * 4096), ("peer", 1, 4096)] == [(each.owner, each.blocks, each.nbytes) for each in told]
    assert told[0].age >= told[1].age >= 0


@both_policies
def test_a_batch_is_evicted_whole_or_not_at_all(key, policy):
    """With one block pinned, no room is made for three."""
    full, keys = filled(3, key, policy)
    full.pin(keys[:1], "peer")
    assert full.reserve([key(7), key(8), key(9)], "engine") is None
    assert (3, 0) == (full.counts().ready, full.evicted)


def test_a_strangers_pin_or_write_is_not_given_back(key):
    """Each pin and each write has its owner."""
    full, keys = filled(2, key)
    full.pin(keys, "peer")
    with pytest.raises(KeyError, match="disk"):
        full.unpin(keys, "disk")
    other = pool()
    other.reserve([key(1)], "engine")
    with pytest.raises(KeyError, match="disk"):
        other.commit([key(1)], "disk")
    with pytest.raises(KeyError, match="disk"):
        other.abort([key(1)], "disk")


def test_stop_names_who_still_uses_blocks(key):
    """It raises while a block is pinned or being written, and works afterwards."""
    full, keys = filled(2, key)
    full.pin(keys, "disk")
    with pytest.raises(RuntimeError, match=r"disk \(2\)"):
        full.stop()
    full.unpin(keys, "disk")
    full.stop()
    assert Counts(2, 0, 0, 0) == full.counts()


def test_many_threads_never_share_a_slot(key):
    """Under contention a reserved slot has one writer, and the end finds nothing in use."""
    shared, problems, users = pool(8), [], [threading.Lock() for _ in range(8)]

    def work(thread):
        for turn in range(300):
            keys = [key(thread * 10_000 + turn * 2 + number) for number in range(2)]
            slots = shared.reserve(keys, f"thread-{thread}")
            if slots is None:
                continue
            for slot in slots:
                if not users[slot].acquire(blocking=False):
                    problems.append(slot)
            for slot in slots:
                users[slot].release()
            if turn % 2:
                shared.commit(keys, f"thread-{thread}")
            else:
                shared.abort(keys, f"thread-{thread}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == problems
    assert {} == shared.owners()
