"""The pool: what a block's states allow, for any sequence of calls."""

from __future__ import annotations

import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from examples.kv_offload.memory.pool import BlockPool, BlockState, Counts

CAPACITY = 6
KEYS = st.lists(st.binary(min_size=1, max_size=1).map(lambda key: bytes([key[0] % 12])), max_size=4, unique=True)
OWNERS = st.sampled_from(["disk", "peer", "engine"])


def pool(blocks=CAPACITY):
    """A pool over no memory at all: it never touches any."""
    return BlockPool(None, blocks * 4096, 4096)  # type: ignore[arg-type]  # the registration is only kept


class PoolMachine(RuleBasedStateMachine):
    """Compares the pool with a model that knows the slots of keys, their writers and their pins."""

    def __init__(self):
        super().__init__()
        self.pool = pool()
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


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def filled(blocks, key):
    """A pool full of ready blocks, the first key the least recently used."""
    full = pool(blocks)
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


def test_a_batch_is_evicted_whole_or_not_at_all(key):
    """With one block pinned, no room is made for three."""
    full, keys = filled(3, key)
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
