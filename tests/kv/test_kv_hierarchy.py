"""The hierarchy: one pin per tier, promotion from the first that has it, in part where need be."""

from __future__ import annotations

import threading

import pytest

from examples.kv_offload.serving.hierarchy import Closed, Hierarchy
from examples.kv_offload.serving.prompts import Workload, content, keys_of, prompts
from examples.kv_offload.serving.traffic import COMPUTED, Traffic, WrongBytes
from examples.kv_offload.tiers.tier import Lookup, Outcome, Tier, TierStats

from .conftest import BLOCK, BLOCKS


class SlowTier:
    """A tier that settles its jobs when the test says so."""

    def __init__(self, label, view):
        self._label, self._view = label, view
        self.kept, self.jobs, self.settled = {}, [], []
        self.asked = threading.Event()

    def label(self):
        return self._label

    def lookup(self, key):
        return Lookup.HIT if key in self.kept else Lookup.MISS

    def submit_store(self, job):
        self.jobs.append(job)

    def submit_load(self, job):
        self.jobs.append(job)
        self.asked.set()

    def poll(self):
        settled, self.settled = self.settled, []
        return settled

    def drain(self):
        pass

    def stop(self):
        pass

    def is_stopped(self):
        return not self.jobs

    def stats(self):
        return TierStats()

    def settle(self, outcome=Outcome.DONE):
        """Carry out the oldest job."""
        job = self.jobs.pop(0)
        ok = [outcome is Outcome.DONE] * len(job.keys)
        for number, (key, slot) in enumerate(zip(job.keys, job.slots, strict=True)):
            if job.kind == "store" and ok[number]:
                self.kept[key] = bytes(self._view.block(slot))
            elif job.kind == "load":
                ok[number] = ok[number] and key in self.kept
                if ok[number]:
                    self._view.block(slot)[:] = self.kept[key]
        job.settle(outcome, ok)
        self.settled.append(job)


@pytest.fixture
def tiers(memory):
    """Two tiers, the nearer one first."""
    return [SlowTier("near", memory.view()), SlowTier("far", memory.view())]


@pytest.fixture
def hierarchy(memory, tiers):
    """A hierarchy over them."""
    return over(memory.pool, tiers, batch=4, flush_limit=0.01)


def over(pool, tiers, **options):
    """A hierarchy with these tiers, asked in this order."""
    hierarchy = Hierarchy(pool, **options)
    for rank, tier in reversed(list(enumerate(tiers))):
        hierarchy.attach(tier, rank)
    return hierarchy


def compute(memory, hierarchy, keys):
    """Store blocks as an engine does."""
    slots = hierarchy.reserve(keys, "engine")
    for key, slot in zip(keys, slots, strict=True):
        memory.views[0].block(slot)[:] = content(key, BLOCK)
    hierarchy.commit(keys, "engine")


def states(answers):
    return [answer.state for answer in answers]


def test_a_tier_is_whatever_has_its_methods(tiers):
    """The contract is a protocol, with methods only."""
    assert isinstance(tiers[0], Tier)
    assert issubclass(SlowTier, Tier)


def test_a_store_is_pinned_once_for_each_tier(memory, hierarchy, tiers, key):
    """Each tier gives its own pin back, whatever became of its copy."""
    compute(memory, hierarchy, [key(1), key(2)])
    assert {"near": 2, "far": 2} == memory.pool.owners()
    tiers[0].settle()
    assert {"far": 2} == memory.pool.owners()
    tiers[1].settle(Outcome.FAILED)
    assert {} == memory.pool.owners()
    assert [Lookup.HIT] * 2 == states(hierarchy.lookup([key(1), key(2)], "test"))
    hierarchy.release([key(1), key(2)], "test")
    assert ["near", "far"] == [label for label, _ in hierarchy.poll()]
    assert {"far: a store failed: ": 1} == hierarchy.troubles


def test_a_block_that_nobody_has_is_a_miss(hierarchy, key):
    """A miss is not waited for."""
    assert [Lookup.MISS] == states(hierarchy.lookup([key(1)], "test"))


def test_a_block_being_computed_is_asked_for_again(memory, hierarchy, key):
    """It is neither here nor missing."""
    hierarchy.reserve([key(1)], "engine")
    assert [Lookup.RETRY] == states(hierarchy.lookup([key(1)], "test"))
    hierarchy.abort([key(1)], "engine")
    assert [Lookup.MISS] == states(hierarchy.lookup([key(1)], "test"))


def test_promotion_comes_from_the_first_tier_that_has_it(memory, hierarchy, tiers, key):
    """In batches, and the bytes are those that were stored."""
    keys = [key(number) for number in range(6)]
    for number, each in enumerate(keys):
        tiers[number % 2].kept[each] = content(each, BLOCK)
    tiers[1].kept[keys[0]] = bytes(BLOCK)
    answers = hierarchy.lookup(keys, "test")
    assert [(Lookup.PENDING, ("near", "far")[number % 2]) for number in range(6)] == [
        (answer.state, answer.source) for answer in answers
    ]
    assert [Lookup.PENDING] * 6 == states(hierarchy.lookup(keys, "test"))
    for tier in tiers:
        tier.settle()
    answers = hierarchy.lookup(keys, "test")
    assert [Lookup.HIT] * 6 == states(answers)
    for each, answer in zip(keys, answers, strict=True):
        assert content(each, BLOCK) == memory.views[0].block(answer.slot)
    hierarchy.release(keys, "test")


def test_promotion_takes_what_there_is_room_for(memory, hierarchy, tiers, key):
    """The rest is asked for again; what a load does not bring is a miss."""
    busy = [key(100 + number) for number in range(BLOCKS - 3)]
    memory.pool.reserve(busy, "engine")
    keys = [key(number) for number in range(5)]
    tiers[0].kept.update((each, content(each, BLOCK)) for each in keys)
    assert [Lookup.PENDING] * 3 + [Lookup.RETRY] * 2 == states(hierarchy.lookup(keys, "test"))
    del tiers[0].kept[keys[1]]
    tiers[0].settle()
    assert [Lookup.HIT, Lookup.PENDING, Lookup.HIT, Lookup.RETRY] == states(
        hierarchy.lookup([keys[0], keys[3], keys[2], keys[4]], "test")
    )
    assert [Lookup.MISS] == states(hierarchy.lookup([keys[1]], "test"))
    tiers[0].settle(Outcome.FAILED)
    hierarchy.release([keys[0], keys[2]], "test")
    memory.pool.abort(busy, "engine")


def test_a_detached_tier_is_asked_no_more(memory, hierarchy, tiers, key):
    """What it has is a miss, a store goes to the others alone, and it can be attached again, at its old place."""
    tiers[0].kept[key(1)] = content(key(1), BLOCK)
    assert 0 == hierarchy.detach("near", 5)
    assert ["far"] == hierarchy.attached()
    assert [Lookup.MISS] == states(hierarchy.lookup([key(1)], "test"))
    compute(memory, hierarchy, [key(2)])
    assert {"far": 1} == memory.pool.owners()
    tiers[1].settle()
    hierarchy.attach(tiers[0], 0)
    with pytest.raises(ValueError, match="attached already"):
        hierarchy.attach(tiers[0], 5)
    assert ["near", "far"] == hierarchy.attached()
    assert [Lookup.PENDING] == states(hierarchy.lookup([key(1)], "test"))
    tiers[0].settle()
    assert hierarchy.flush(0)


def test_a_tier_that_is_late_to_leave_keeps_its_blocks(memory, hierarchy, tiers, key):
    """Its loads and stores still hold their slots, so nothing else gets them, until it settles them."""
    tiers[0].kept[key(1)] = content(key(1), BLOCK)
    compute(memory, hierarchy, [key(2)])
    tiers[1].settle()
    hierarchy.lookup([key(1)], "test")
    assert 2 == hierarchy.detach("near", 0.01)
    assert {"near": 1, "promotion from near": 1} == memory.pool.owners()
    others = [key(100 + number) for number in range(BLOCKS)]
    assert memory.pool.reserve(others, "engine") is None
    tiers[0].settle(Outcome.CANCELLED)
    tiers[0].settle(Outcome.CANCELLED)
    assert {} == memory.pool.owners()
    assert [Lookup.MISS] == states(hierarchy.lookup([key(1)], "test"))


def test_detaching_waits_for_what_the_tier_has(memory, hierarchy, tiers, key):
    """It returns as soon as the last job is settled, with nothing left."""
    compute(memory, hierarchy, [key(1)])
    left = []
    leaving = threading.Thread(target=lambda: left.append(hierarchy.detach("near", 20)))
    leaving.start()
    tiers[0].settle()
    leaving.join(20)
    assert [0] == left
    tiers[1].settle()


def test_a_reset_holds_promotions(memory, hierarchy, tiers, key):
    """It waits for those under way, none begins meanwhile; then the region is empty but for what is pinned."""
    for number in range(3):
        tiers[0].kept[key(number)] = content(key(number), BLOCK)
    hierarchy.lookup([key(0)], "test")
    with pytest.raises(TimeoutError, match="1 blocks are still on their way"):
        hierarchy.reset(0.01)
    left = []
    reset = threading.Thread(target=lambda: left.append(hierarchy.reset(20)))
    reset.start()
    while not hierarchy._held:
        pass
    assert [Lookup.RETRY] == states(hierarchy.lookup([key(1)], "test"))
    assert 1 == len(tiers[0].jobs)
    tiers[0].settle()
    reset.join(20)
    assert [0] == left
    assert BLOCKS == memory.pool.counts().free
    assert [Lookup.PENDING] == states(hierarchy.lookup([key(1)], "test")), "tiers keep what they have"
    tiers[0].settle()
    assert [Lookup.HIT] == states(hierarchy.lookup([key(1)], "test"))
    assert 1 == hierarchy.reset(5)
    hierarchy.release([key(1)], "test")


def test_stop_refuses_new_work_and_names_what_is_left(memory, hierarchy, tiers, key):
    """A late tier keeps its own pins, and nothing else."""
    compute(memory, hierarchy, [key(1)])
    tiers[0].settle()
    hierarchy.stop()
    assert {"far": 1} == hierarchy.outstanding()
    assert {"jobs left after 0.01 s: 1 to far": 1} == hierarchy.troubles
    with pytest.raises(Closed):
        hierarchy.lookup([key(1)], "test")
    with pytest.raises(Closed):
        hierarchy.reserve([key(2)], "test")
    tiers[1].settle(Outcome.CANCELLED)
    assert hierarchy.flush(0)


def test_waiting_ends_with_the_next_settled_job(memory, hierarchy, tiers, key):
    """One settled since the look-up counts, even before the wait."""
    compute(memory, hierarchy, [key(1)])
    since = hierarchy.settled
    assert not hierarchy.wait(since, 0)
    tiers[0].settle()
    assert hierarchy.wait(since, 0)
    tiers[1].settle()


class PromptTier(SlowTier):
    """A tier that settles everything at once."""

    def submit_store(self, job):
        super().submit_store(job)
        self.settle()

    submit_load = submit_store


def test_traffic_checks_every_block_it_is_served(memory):
    """A region smaller than the working set, and still only right bytes; one wrong byte is noticed."""
    tier = PromptTier("near", memory.view())
    traffic = Traffic(over(memory.pool, [tier]), memory.view(), patience=5)
    traffic.start()
    work = list(prompts(Workload(30, prefixes=4, prefix_blocks=6, suffix_blocks=2)))
    told: list[int] = []
    traffic.serve(work, told.append)
    assert list(range(1, 31)) == told
    assert sum(map(len, work)) == traffic.served.total()
    assert len({key for keys in work for key in keys}) == traffic.served[COMPUTED]
    assert traffic.served["near"] > 0
    memory.pool.evict(BLOCKS)
    tier.kept[work[-1][0]] = bytes(BLOCK)
    with pytest.raises(WrongBytes):
        traffic.serve(work[-1:])
    traffic.stop()


def test_traffic_gives_up_after_its_patience(memory, key):
    """A tier that never answers is an error that says what was waited for, and leaves no pin behind."""
    tier = SlowTier("far", memory.view())
    tier.kept[key(1)] = content(key(1), BLOCK)
    traffic = Traffic(over(memory.pool, [tier]), memory.view(), patience=0.01)
    traffic.start()
    with pytest.raises(TimeoutError, match="1 blocks on their way"):
        traffic.serve([[key(1)]])
    assert {"promotion from far": 1} == memory.pool.owners()
    tier.settle()
    traffic.stop()


def test_traffic_can_be_stopped_while_a_prompt_waits(memory, key):
    """It does not wait for a tier that never answers, and gives its pins back."""
    tier = SlowTier("far", memory.view())
    tier.kept[key(1)] = content(key(1), BLOCK)
    traffic = Traffic(over(memory.pool, [tier]), memory.view())
    traffic.start()
    user = threading.Thread(target=traffic.serve, args=([[key(1)]],))
    user.start()
    assert tier.asked.wait(20)
    traffic.stop()
    user.join(20)
    assert not user.is_alive()
    tier.settle()
    assert {} == memory.pool.owners()


def test_keys_speak_of_everything_before_them():
    """Two chains share keys exactly as far as they share blocks."""
    assert keys_of(["a", "b", "c"])[:2] == keys_of(["a", "b", "d"])[:2]
    assert keys_of(["a", "b", "c"])[2] != keys_of(["a", "x", "c"])[2]


def test_no_two_pages_of_a_block_are_alike(key):
    """A page in the wrong place is noticed."""
    block = content(key(1), BLOCK)
    assert BLOCK == len(block)
    assert BLOCK // 4096 == len({block[offset : offset + 4096] for offset in range(0, BLOCK, 4096)})
    assert block != content(key(2), BLOCK)
