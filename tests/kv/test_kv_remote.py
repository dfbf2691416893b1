"""What holds for every tier with another side: it serves right bytes or none, and its end can be proven."""

from __future__ import annotations

import signal
import threading

import pytest

from examples.kv_offload.serving.prompts import content
from examples.kv_offload.tiers.nixl_far import NixlHost
from examples.kv_offload.tiers.nixl_tier import NixlTier
from examples.kv_offload.tiers.redis_server import RedisServer
from examples.kv_offload.tiers.redis_tier import RedisTier
from examples.kv_offload.tiers.tier import Lookup, Outcome, Tier

from .conftest import BLOCK, BLOCKS
from .remote_tiers import ALL, CAP, WITH_A_PROCESS, Rig, needs_nixl, needs_redis


@pytest.fixture
def rig(request, memory, tmp_path):
    """One of the tiers, started."""
    rig = Rig(memory, request.param, tmp_path)
    yield rig
    rig.over()


all_tiers = pytest.mark.parametrize("rig", ALL, indirect=True)
with_a_process = pytest.mark.parametrize("rig", WITH_A_PROCESS, indirect=True)


@all_tiers
def test_what_was_stored_is_loaded(rig, key):
    """Every block comes back byte for byte; what was never stored is a miss, and a second store moves nothing."""
    assert isinstance(rig.tier, Tier)
    keys = [key(number) for number in range(BLOCKS - 1)]
    slots = rig.fill(keys)
    assert Lookup.MISS is rig.tier.lookup(keys[0])
    stored = rig.ask("store", keys, slots)
    assert (Outcome.DONE, len(keys) * BLOCK) == (stored.outcome, stored.nbytes)
    assert all(stored.ok)
    again = rig.ask("store", keys, slots)
    assert (True, 0) == (all(again.ok), again.nbytes)
    assert Lookup.HIT is rig.tier.lookup(keys[0])
    rig.clean()
    job = rig.ask("load", [*keys, key(99)], [*slots, BLOCKS - 1])
    assert (True,) * len(keys) + (False,) == job.ok
    assert all(content(each, BLOCK) == rig.view.block(slot) for each, slot in zip(keys, slots, strict=True))
    assert (len(keys), 1, 0) == (rig.tier.stats().loaded, rig.tier.stats().missed, rig.tier.stats().corrupt)


@all_tiers
def test_blocks_may_come_back_into_other_slots(rig, key):
    """A block is known by its key, not by where it was."""
    keys = [key(number) for number in range(4)]
    rig.ask("store", keys, rig.fill(keys))
    rig.clean()
    assert all(rig.ask("load", keys, [9, 3, 12, 0]).ok)
    assert [content(each, BLOCK) for each in keys] == [bytes(rig.view.block(slot)) for slot in (9, 3, 12, 0)]


@all_tiers
def test_the_end_is_evident(rig, key):
    """Not stopped while up; stopped afterwards, once and for all; nothing is claimed and new jobs are refused."""
    keys = [key(1)]
    rig.ask("store", keys, rig.fill(keys))
    assert not rig.tier.is_stopped()
    rig.tier.drain()
    assert Outcome.REFUSED is rig.ask("load", keys, [0]).outcome
    assert Lookup.MISS is rig.tier.lookup(keys[0])
    rig.tier.stop()
    assert rig.tier.is_stopped()
    rig.tier.stop()
    assert rig.tier.is_stopped()


@with_a_process
@pytest.mark.parametrize("kind", ["store", "load"])
def test_a_frozen_other_side_is_left_by_kill(rig, key, kind):
    """Stop would wait for ever; kill ends the transfer that runs, which then counts for nothing, and proves the end."""
    keys = [key(number) for number in range(BLOCKS)]
    slots = rig.fill(keys)
    if kind == "load":
        rig.ask("store", keys, slots)
    rig.signal(signal.SIGSTOP)
    running = rig.begin(kind, keys, slots)
    stopping = threading.Thread(target=rig.tier.stop, daemon=True)
    stopping.start()
    rig.tier.kill()
    assert rig.tier.is_stopped()
    job = running.wait()[0]
    assert job.outcome in (Outcome.FAILED, Outcome.CANCELLED)
    assert not any(job.ok)
    stopping.join(20)
    assert not stopping.is_alive()
    for slot in slots:
        rig.view.block(slot)[:] = b"\x11" * BLOCK
    rig.signal(signal.SIGCONT)
    rig.far.stop()
    assert all(rig.view.block(slot) == b"\x11" * BLOCK for slot in slots), "something came after the end"


@with_a_process
def test_the_death_of_the_other_side_is_a_failure_and_no_more(rig, key):
    """Later jobs fail with the reason, nothing is claimed any longer, and stop works."""
    keys = [key(1)]
    slots = rig.fill(keys)
    rig.ask("store", keys, slots)
    rig.far.kill()
    assert rig.far.is_stopped()
    job = rig.ask("load", keys, slots)
    assert (Outcome.FAILED, (False,)) == (job.outcome, job.ok)
    assert job.error
    assert rig.tier.broken
    assert Lookup.MISS is rig.tier.lookup(keys[0])
    assert "no connection" in rig.ask("store", keys, slots).error
    rig.tier.stop()
    assert rig.tier.is_stopped()


@needs_redis
def test_wrong_bytes_in_redis_are_a_counted_miss(memory, tmp_path, key):
    """A changed payload, one cut short and one without its checksum cost one block each."""
    rig = Rig(memory, "redis", tmp_path)
    keys = [key(number) for number in range(4)]
    slots = rig.fill(keys)
    rig.ask("store", keys, slots)
    client = rig.far.client()
    names = [b"kv:" + each.hex().encode() for each in keys]
    client.hset(names[0], "block", b"\0" * BLOCK)
    client.hset(names[1], "block", b"short")
    client.hdel(names[2], "crc")
    client.close()
    rig.clean()
    assert (False, False, False, True) == rig.ask("load", keys, slots).ok
    assert (2, 3) == (rig.tier.stats().corrupt, rig.tier.stats().missed)
    assert [Lookup.MISS] * 3 + [Lookup.HIT] == [rig.tier.lookup(each) for each in keys]
    rig.over()


@needs_redis
def test_redis_is_shared(memory, key):
    """A second tier on the same server finds the blocks at its start, and later ones at its next refresh."""
    server = RedisServer(CAP)
    server.start()
    first, second = RedisTier(memory.view(), server), RedisTier(memory.view(), server, refresh=0)
    rig = Rig.__new__(Rig)
    rig.memory, rig.view, rig.tier = memory, memory.views[0], first
    first.start()
    rig.ask("store", [key(1)], rig.fill([key(1)]))
    second.start()
    assert Lookup.HIT is second.lookup(key(1))
    rig.ask("store", [key(2)], rig.fill([key(2)]))
    assert Lookup.MISS is second.lookup(key(2)), "a look-up does not wait"
    rig.tier = second
    rig.ask("load", [key(1)], [0])  # the refresh goes first
    assert Lookup.HIT is second.lookup(key(2))
    first.stop()
    second.stop()
    server.stop()


@needs_redis
def test_a_full_redis_refuses_and_says_so(memory, tmp_path, key):
    """With a policy that evicts nothing, what does not fit is not stored, and the tier goes on."""
    rig = Rig(memory, "redis", tmp_path)
    client = rig.far.client()
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1mb")
    client.close()
    keys = [key(number) for number in range(BLOCKS)]
    job = rig.ask("store", keys, rig.fill(keys))
    assert Outcome.DONE is job.outcome
    assert not all(job.ok)
    assert rig.tier.stats().failed == job.ok.count(False)
    assert not rig.tier.broken
    rig.over()


@needs_redis
def test_a_server_of_somebody_else_is_left_alone(memory, tmp_path, key):
    """By its URL it is used; the stop of our side does not end it."""
    rig = Rig(memory, "redis", tmp_path)
    theirs = RedisServer(CAP, url=f"unix://{rig.far.socket_path}")
    theirs.start()
    tier = RedisTier(memory.view(), theirs)
    tier.start()
    tier.stop()
    theirs.stop()
    assert theirs.is_stopped()
    assert rig.far.client().ping()
    rig.over()


def test_without_a_redis_server_it_says_what_to_install(monkeypatch):
    """Before anything is started."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="apt-get install redis-server"):
        RedisServer(CAP).start()


@needs_nixl
def test_nixl_writes_over_what_was_used_the_longest_ago(memory, key):
    """Far slots are few; what was written over is a miss, and not claimed."""
    far = NixlHost(4, BLOCK)
    far.start()
    tier = NixlTier(memory.view(), far)
    tier.start()
    rig = Rig.__new__(Rig)
    rig.memory, rig.view, rig.tier = memory, memory.views[0], tier
    keys = [key(number) for number in range(6)]
    slots = rig.fill(keys)
    rig.ask("store", keys[:4], slots[:4])
    rig.ask("load", keys[:1], [0])
    rig.ask("store", keys[4:], slots[4:])
    assert [Lookup.HIT, Lookup.MISS, Lookup.MISS, *[Lookup.HIT] * 3] == [tier.lookup(each) for each in keys]
    assert (False, True) == rig.ask("load", [keys[1], keys[5]], [0, 1]).ok
    assert 2 == tier.stats().evicted
    tier.stop()
    far.stop()


@needs_nixl
def test_a_view_that_nixl_knows_by_address_does_not_stop(memory, tmp_path):
    """The tier holds a slice of every block for as long as its agent exists."""
    rig = Rig(memory, "nixl-posix", tmp_path)
    with pytest.raises(BufferError, match="still in use"):
        rig.view.stop()
    rig.over()
    rig.view.stop()
