"""The peer tier: another process, whose death or lies cost blocks and never serve wrong bytes."""

from __future__ import annotations

import os
import signal
import socket
import threading

import crc32c
import pytest

from examples.kv_offload.serving.prompts import content
from examples.kv_offload.tiers import peer_wire
from examples.kv_offload.tiers.peer_host import PeerHost
from examples.kv_offload.tiers.peer_tier import PeerTier
from examples.kv_offload.tiers.peer_wire import (
    MAX_BLOCK_BYTES,
    Item,
    Op,
    authenticate,
    receive_frame,
    send_frame,
)
from examples.kv_offload.tiers.tier import Lookup, Outcome

from .conftest import BLOCK, BLOCKS, Batch

SECRET = b"s" * 32


@pytest.fixture
def host():
    """A peer process of 64 MiB."""
    host = PeerHost(64 << 20)
    host.start()
    yield host
    if host.running:
        os.kill(host.pid, signal.SIGCONT)
    host.stop()


@pytest.fixture
def tier(memory, host):
    """A tier that is connected to it."""
    tier = PeerTier(memory.view(), host)
    tier.start()
    yield tier
    tier.kill()


def filled(memory, tier, keys):
    """Slots that hold these keys' blocks."""
    slots = memory.pool.reserve(keys, "test")
    for each, slot in zip(keys, slots, strict=True):
        tier._view.block(slot)[:] = content(each, BLOCK)
    return slots


def clean(tier, slots):
    for slot in slots:
        tier._view.block(slot)[:] = bytes(BLOCK)


def ask(tier, kind, keys, slots):
    """One job, waited for."""
    done = Batch()
    (tier.submit_store if kind == "store" else tier.submit_load)(done.job(kind, keys, slots))
    return done.wait()[0]


def test_what_was_stored_is_loaded(memory, tier, key):
    """Every block comes back, and what the peer never had is a miss."""
    keys = [key(number) for number in range(BLOCKS - 1)]
    slots = filled(memory, tier, keys)
    assert all(ask(tier, "store", keys, slots).ok)
    assert Lookup.HIT is tier.lookup(keys[0])
    clean(tier, slots)
    job = ask(tier, "load", [*keys, key(99)], [*slots, BLOCKS - 1])
    assert (True,) * len(keys) + (False,) == job.ok
    assert all(content(each, BLOCK) == tier._view.block(slot) for each, slot in zip(keys, slots, strict=True))
    assert (len(keys), len(keys), 1) == (tier.stats().stored, tier.stats().loaded, tier.stats().missed)
    memory.pool.abort(keys, "test")


def test_the_process_is_asked_waited_for_and_reaped(host):
    """After stop there is no such process."""
    pid = host.pid
    assert host.running
    host.stop()
    assert not host.running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("kind", ["store", "load"])
def test_sigkill_in_the_middle_of_a_transfer(memory, host, tier, key, kind):
    """The running job fails, the queued one too, nothing is claimed or served any longer, and stop works."""
    keys = [key(number) for number in range(BLOCKS)]
    slots = filled(memory, tier, keys)
    if kind == "load":
        ask(tier, "store", keys, slots)
    os.kill(host.pid, signal.SIGSTOP)
    tier._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    running, queued = Batch(), Batch()
    execute, entered = tier._transfers._execute, threading.Event()

    def told(job):
        entered.set()
        return execute(job)

    tier._transfers._execute = told
    submit = tier.submit_store if kind == "store" else tier.submit_load
    submit(running.job(kind, keys, slots))
    submit(queued.job(kind, keys, slots))
    assert entered.wait(20)
    assert [] == running.settled
    os.kill(host.pid, signal.SIGKILL)
    for job in (running.wait()[0], queued.wait()[0]):
        assert (Outcome.FAILED, (False,) * BLOCKS) == (job.outcome, job.ok)
    assert tier.broken
    assert Lookup.MISS is tier.lookup(keys[0])
    tier.stop()
    memory.pool.abort(keys, "test")


class Liar(PeerHost):
    """A peer of one connection that answers as it is told, and then hangs up."""

    def __init__(self, answer):
        super().__init__(0)
        self.secret = SECRET
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._thread = threading.Thread(target=self._serve, args=(answer,))
        self._thread.start()

    def _serve(self, answer):
        sock, _ = self._listener.accept()
        with sock:
            authenticate(sock, SECRET, asking=False)
            _, items = receive_frame(sock, (Op.LOAD,))
            answer(sock, items)

    def stop(self):
        self._thread.join(20)
        self._listener.close()


def half(sock, items):
    """The head, and half of the first block."""
    payload = memoryview(b"x" * (BLOCK // 2))
    send_frame(sock, Op.LOADED, [Item(item.key, True, BLOCK, 0) for item in items], [payload])


def oversized(sock, items):
    """A block longer than a slot."""
    send_frame(sock, Op.LOADED, [Item(item.key, True, BLOCK + 1, 0) for item in items])


def huge(sock, items):
    """A length beyond the bound of the protocol."""
    entries = b"".join(peer_wire._ENTRY.pack(item.key, True, MAX_BLOCK_BYTES + 1, 0) for item in items)
    sock.sendall(peer_wire._HEAD.pack(peer_wire.MAGIC, Op.LOADED, len(items)) + entries)


def other_keys(sock, items):
    """An answer to another question."""
    send_frame(sock, Op.LOADED, [Item(b"?" * 32, good=False) for _ in items])


def other_op(sock, items):
    """An answer of another kind."""
    send_frame(sock, Op.STORED, items)


def silence(sock, items):
    """No answer."""


@pytest.mark.parametrize("answer", [half, oversized, huge, other_keys, other_op, silence])
def test_a_broken_answer_fails_the_job_and_ends_the_tier(memory, key, answer):
    """No block of it counts as loaded."""
    liar = Liar(answer)
    tier = PeerTier(memory.view(), liar)
    tier.start()
    job = ask(tier, "load", [key(1), key(2)], [0, 1])
    assert (Outcome.FAILED, (False, False)) == (job.outcome, job.ok)
    assert tier.broken
    tier.stop()
    liar.stop()


def test_wrong_bytes_are_a_counted_miss(memory, key):
    """The right length with the wrong checksum costs that block alone."""
    good = content(key(2), BLOCK)

    def flip(sock, items):
        crc = crc32c.crc32c(good)
        payloads = [memoryview(b"x" * BLOCK), memoryview(good)]
        send_frame(sock, Op.LOADED, [Item(item.key, True, BLOCK, crc) for item in items], payloads)

    liar = Liar(flip)
    tier = PeerTier(memory.view(), liar)
    tier.start()
    job = ask(tier, "load", [key(1), key(2)], [0, 1])
    assert (Outcome.DONE, (False, True), 1) == (job.outcome, job.ok, tier.stats().corrupt)
    assert good == tier._view.block(1)
    tier.stop()
    liar.stop()


def test_kill_ends_a_transfer_that_would_wait_for_ever(memory, host, tier, key):
    """With the peer frozen, hanging up fails the running job and frees the thread."""
    os.kill(host.pid, signal.SIGSTOP)
    done = Batch()
    tier.submit_load(done.job("load", [key(1)], [0]))
    tier.kill()
    assert done.wait()[0].outcome in (Outcome.FAILED, Outcome.CANCELLED)
    assert 0 == tier._transfers.alive()


def test_a_wrong_secret_is_refused_by_the_process(memory, host):
    """The start fails, and the process goes on serving those who know it."""
    stranger = PeerHost(0)
    stranger.address = host.address
    tier = PeerTier(memory.view(), stranger)
    with pytest.raises(OSError):
        tier.start()
    tier.stop()
    friend = PeerTier(memory.view(), host)
    friend.start()
    friend.stop()
