"""The disk tier: what is on the disk is found again, and what is wrong there is never served."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import threading

import pytest

from examples.kv_offload.serving.prompts import content
from examples.kv_offload.tiers.directory import Directory
from examples.kv_offload.tiers.disk_tier import DiskTier
from examples.kv_offload.tiers.pack_files import PackFiles, Sync
from examples.kv_offload.tiers.pack_format import (
    HEADER_BYTES,
)
from examples.kv_offload.tiers.tier import Lookup, Outcome

from .conftest import BLOCK, Batch


class Rig:
    """Disk tiers over one memory and one directory, stopped at the end."""

    def __init__(self, memory, path):
        self.memory, self.path, self.tiers = memory, path, []

    def tier(self, cap=64 << 20, **options):
        tier = DiskTier(self.memory.view(), Directory(self.path), cap, **options)
        tier.start()
        self.tiers.append(tier)
        return tier

    def store(self, tier, keys):
        """Write these keys' blocks through the region, and free the region again."""
        slots = self.memory.pool.reserve(keys, "test")
        for key, slot in zip(keys, slots, strict=True):
            tier._view.block(slot)[:] = content(key, BLOCK)
        done = Batch()
        tier.submit_store(done.job("store", keys, slots))
        (job,) = done.wait()
        self.memory.pool.abort(keys, "test")
        return job

    def load(self, tier, keys):
        """Load these keys' blocks into a clean region; the bytes of those that are said to be good."""
        slots = self.memory.pool.reserve(keys, "test")
        for slot in slots:
            tier._view.block(slot)[:] = bytes(BLOCK)
        done = Batch()
        tier.submit_load(done.job("load", keys, slots))
        (job,) = done.wait()
        loaded = {
            key: bytes(tier._view.block(slot)) for key, slot, good in zip(keys, slots, job.ok, strict=True) if good
        }
        self.memory.pool.abort(keys, "test")
        return loaded

    def packs(self):
        return sorted(self.path.glob("*.kvpack"))


@pytest.fixture
def rig(memory, tmp_path):
    """A place to make disk tiers."""
    rig = Rig(memory, tmp_path / "kv")
    yield rig
    for tier in rig.tiers:
        tier.stop()


def test_what_was_stored_is_loaded(rig, key):
    """In any order, with holes, and only what is there."""
    tier = rig.tier()
    keys = [key(number) for number in range(8)]
    assert (True,) * 8 == rig.store(tier, keys).ok
    wanted = [keys[5], key(99), keys[2], keys[3], keys[0]]
    assert {each: content(each, BLOCK) for each in wanted if each != key(99)} == rig.load(tier, wanted)
    assert (8, 4, 1) == (tier.stats().stored, tier.stats().loaded, tier.stats().missed)
    assert 1 == len(rig.packs())


@pytest.mark.parametrize("sync", list(Sync))
def test_blocks_survive_a_restart(rig, key, sync):
    """A second tier over the same directory finds them."""
    keys = [key(number) for number in range(4)]
    first = rig.tier(sync=sync)
    rig.store(first, keys)
    first.stop()
    second = rig.tier(sync=sync)
    assert [Lookup.HIT] * 4 == [second.lookup(each) for each in keys]
    assert {each: content(each, BLOCK) for each in keys} == rig.load(second, keys)


def test_a_block_is_written_once(rig, key):
    """Storing it again writes nothing and says yes."""
    tier = rig.tier()
    rig.store(tier, [key(1), key(2)])
    job = rig.store(tier, [key(1), key(2)])
    assert ((True, True), 0) == (job.ok, job.nbytes)
    assert 1 == len(rig.packs())


def test_wrong_bytes_are_a_counted_miss(rig, key):
    """One flipped bit costs one block, and the tier no longer claims it."""
    tier = rig.tier()
    rig.store(tier, [key(1), key(2), key(3)])
    (pack,) = rig.packs()
    with pack.open("r+b") as file:
        file.seek(HEADER_BYTES + BLOCK + 1000)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    assert {each: content(each, BLOCK) for each in (key(1), key(3))} == rig.load(tier, [key(1), key(2), key(3)])
    assert Lookup.MISS is tier.lookup(key(2))
    assert 1 == tier.stats().corrupt


@pytest.mark.parametrize("size", [HEADER_BYTES + BLOCK, HEADER_BYTES + BLOCK + 100, HEADER_BYTES, 100, 0])
def test_a_file_cut_short_under_a_running_tier(rig, key, size):
    """Only whole blocks are served; the rest is a counted miss."""
    tier = rig.tier()
    rig.store(tier, [key(1), key(2)])
    os.truncate(rig.packs()[0], size)
    there = [key(1)] if size >= HEADER_BYTES + BLOCK else []
    assert {each: content(each, BLOCK) for each in there} == rig.load(tier, [key(1), key(2)])
    assert 2 - len(there) == tier.stats().corrupt


@pytest.mark.parametrize("size", [HEADER_BYTES + 2 * BLOCK - 1, HEADER_BYTES, 10, 0])
def test_a_file_cut_short_before_the_start(rig, key, size):
    """It is removed, counted, and said."""
    first = rig.tier()
    rig.store(first, [key(1), key(2)])
    first.stop()
    os.truncate(rig.packs()[0], size)
    second = rig.tier()
    assert Lookup.MISS is second.lookup(key(1))
    assert ([], 1) == (rig.packs(), second.stats().corrupt)
    assert any("unusable pack" in note for note in second.notes)


def test_packs_of_another_block_size_or_version_are_left_alone(rig, key):
    """They may be good for somebody else."""
    rig.store(rig.tier(), [key(1), key(2)])
    (pack,) = rig.packs()
    other = PackFiles(rig.path, 2 * BLOCK)
    assert ([], []) == other.scan()
    assert ["left alone" in note for note in other.notes] == [True]
    with pack.open("r+b") as file:
        file.seek(8)
        file.write(b"\x09")
    second = rig.tier()
    assert (Lookup.MISS, [pack], 0) == (second.lookup(key(1)), rig.packs(), second.stats().corrupt)
    assert any("left alone: version 9" in note for note in second.notes)


def test_an_evicted_file_is_a_miss_and_not_corruption(rig, key):
    """Another process may have removed it."""
    tier = rig.tier()
    rig.store(tier, [key(1)])
    rig.packs()[0].unlink()
    assert {} == rig.load(tier, [key(1)])
    assert (0, Lookup.MISS) == (tier.stats().corrupt, tier.lookup(key(1)))


def test_the_cap_holds_and_the_least_recently_used_pack_goes(rig, key):
    """Loading from a pack keeps it."""
    tier = rig.tier(cap=2 * (HEADER_BYTES + 2 * BLOCK))
    rig.store(tier, [key(1), key(2)])
    rig.store(tier, [key(3), key(4)])
    rig.load(tier, [key(1)])
    rig.store(tier, [key(5), key(6)])
    assert [Lookup.HIT, Lookup.MISS, Lookup.HIT] == [tier.lookup(key(number)) for number in (1, 3, 5)]
    assert (2, 2) == (len(rig.packs()), tier.stats().evicted)
    assert sum(pack.stat().st_size for pack in rig.packs()) <= 2 * (HEADER_BYTES + 2 * BLOCK)


def test_the_cap_holds_over_a_restart(rig, key):
    """A smaller cap than last time removes the oldest packs."""
    first = rig.tier()
    for number in range(4):
        rig.store(first, [key(number)])
    first.stop()
    second = rig.tier(cap=2 * (HEADER_BYTES + BLOCK))
    assert 2 == len(rig.packs())
    assert [Lookup.MISS, Lookup.MISS, Lookup.HIT, Lookup.HIT] == [second.lookup(key(number)) for number in range(4)]


def test_a_batch_beyond_the_cap_is_not_stored(rig, key):
    """It says so, evicts nothing, and leaves no file."""
    tier = rig.tier(cap=HEADER_BYTES + BLOCK)
    rig.store(tier, [key(1)])
    assert (False, False) == rig.store(tier, [key(2), key(3)]).ok
    assert Lookup.HIT is tier.lookup(key(1))


def test_leftover_temporary_files_are_swept_but_not_those_of_a_living_writer(rig, tmp_path):
    """The writer's lock tells them apart."""
    rig.path.mkdir()
    (rig.path / ".dead.tmp").write_bytes(b"half")
    with (rig.path / ".alive.tmp").open("wb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        tier = rig.tier()
        assert [".alive.tmp"] == [path.name for path in rig.path.iterdir()]
    assert any("1 leftover" in note for note in tier.notes)


def test_a_full_disk_fails_the_job_and_leaves_nothing(rig, key, monkeypatch):
    """The room set aside for the pack is given back."""
    tier = rig.tier()

    def full(descriptor, buffers, offset):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full)
        job = rig.store(tier, [key(1)])
    assert Outcome.FAILED is job.outcome
    assert "No space left" in job.error
    assert ([], 0, Lookup.MISS) == (list(rig.path.iterdir()), tier._index.nbytes, tier.lookup(key(1)))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 512 KiB."""
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_disk_that_is_really_full(memory, small_disk, key):
    """What does not fit fails and is counted, leaves no file, and costs nothing that was stored; the tier goes on."""
    rig = Rig(memory, small_disk)
    tier = rig.tier()
    kept = [key(number) for number in range(5)]
    assert all(all(rig.store(tier, [each]).ok) for each in kept)
    job = rig.store(tier, [key(number) for number in range(5, 12)])
    assert (Outcome.FAILED, 7) == (job.outcome, tier.stats().failed)
    assert "No space left" in job.error
    assert 5 == len(list(small_disk.iterdir()))
    assert {each: content(each, BLOCK) for each in kept} == rig.load(tier, kept)
    next(small_disk.glob("*.kvpack")).unlink()
    assert all(rig.store(tier, [key(20)]).ok), "with room again it stores again"
    tier.stop()


def test_partial_writes_and_reads_are_carried_on(rig, key, monkeypatch):
    """The kernel may do less than asked for."""
    write, read = os.pwritev, os.preadv
    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, offset: write(fd, [buffers[0][:4096]], offset))
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, offset: read(fd, [buffers[0][:4096]], offset))
    tier = rig.tier()
    rig.store(tier, [key(1), key(2)])
    assert {each: content(each, BLOCK) for each in (key(1), key(2))} == rig.load(tier, [key(1), key(2)])


def test_without_direct_io_it_says_so_and_works(rig, key, monkeypatch):
    """Some file systems refuse O_DIRECT."""
    opened = os.open

    def refuse(path, flags, mode=0o777):
        if flags & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    tier = rig.tier()
    assert any("no direct I/O" in note for note in tier.notes)
    rig.store(tier, [key(1)])
    assert {key(1): content(key(1), BLOCK)} == rig.load(tier, [key(1)])


def test_concurrent_writers_in_one_directory(rig, key):
    """Two tiers write the same and different blocks at once; a third finds all of them, whole."""
    tiers = [rig.tier(), rig.tier()]
    keys = [[key(number) for number in range(6)], [key(number) for number in range(3, 9)]]
    pools = [
        rig.memory.pool.reserve([b"a%d" % n for n in range(6)], "a"),
        rig.memory.pool.reserve([b"b%d" % n for n in range(6)], "b"),
    ]
    done = Batch()
    for tier, mine, slots in zip(tiers, keys, pools, strict=True):
        for each, slot in zip(mine, slots, strict=True):
            tier._view.block(slot)[:] = content(each, BLOCK)
    for turn in range(6):
        for tier, mine, slots in zip(tiers, keys, pools, strict=True):
            tier.submit_store(done.job("store", [mine[turn]], [slots[turn]]))
    assert all(job.ok == (True,) for job in done.wait(12))
    rig.memory.pool.abort([b"a%d" % n for n in range(6)], "a")
    rig.memory.pool.abort([b"b%d" % n for n in range(6)], "b")
    for tier in tiers:
        tier.stop()
    everything = [key(number) for number in range(9)]
    assert {each: content(each, BLOCK) for each in everything} == rig.load(rig.tier(), everything)
    assert 9 == len(rig.packs())


def test_stop_cancels_what_is_queued_and_waits_for_what_runs(rig, key):
    """Every job handed in is settled, and none after stop has returned."""
    entered, go_on = threading.Event(), threading.Event()
    tier = rig.tier(threads=1)
    execute = tier._transfers._execute

    def held_up(job):
        entered.set()
        assert go_on.wait(20)
        return execute(job)

    tier._transfers._execute = held_up
    slots = rig.memory.pool.reserve([key(number) for number in range(3)], "test")
    done = Batch()
    for number in range(3):
        tier.submit_store(done.job("store", [key(number)], [slots[number]]))
    assert entered.wait(20)
    stopping = threading.Thread(target=tier.stop)
    stopping.start()
    done.wait(2)
    assert stopping.is_alive()
    go_on.set()
    stopping.join(20)
    assert [Outcome.CANCELLED, Outcome.CANCELLED, Outcome.DONE] == [job.outcome for job in done.wait(3)]
    tier.submit_store(done.job("store", [key(7)], [0]))
    assert Outcome.REFUSED is done.wait(4)[3].outcome
    assert (2, 1, 1) == (tier.stats().cancelled, tier.stats().refused, tier.stats().stored)
    rig.memory.pool.abort([key(number) for number in range(3)], "test")


def test_after_the_door_is_closed_nothing_is_claimed(rig, key):
    """A block that could not be loaded any more is a miss; with a full queue it is asked for again."""
    tier = rig.tier(threads=1, queue_limit=1)
    rig.store(tier, [key(1)])
    assert Lookup.HIT is tier.lookup(key(1))
    go_on, entered, done = threading.Event(), threading.Event(), Batch()
    execute = tier._transfers._execute

    def held_up(job):
        entered.set()
        assert go_on.wait(20)
        return execute(job)

    tier._transfers._execute = held_up
    for _ in range(2):
        tier.submit_load(done.job("load", [key(9)], [0]))
        assert entered.wait(20)
    assert Lookup.PENDING is tier.lookup(key(1))
    tier.submit_load(done.job("load", [key(9)], [0]))
    assert Outcome.REFUSED is done.wait()[0].outcome
    tier.drain()
    assert Lookup.MISS is tier.lookup(key(1))
    go_on.set()
    done.wait(3)
