"""A region of several processes: one creator, a barrier, no name left behind, and nobody else's name touched."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from examples.kv_offload.memory import numa
from examples.kv_offload.memory.region import Mapping
from examples.kv_offload.memory.shared import (
    DIRECTORY,
    HEADER_BYTES,
    PREFIX,
    RendezvousError,
    SharedFile,
    SharedMapping,
    SharedName,
    nameless,
)
from lifegraph import Fate, Graph

ROOT = Path(__file__).resolve().parents[2]
SIZE = 1 << 20

WORKER = """
import sys
from functools import partial
from lifegraph import Graph
from examples.kv_offload.memory.shared import SharedFile, SharedMapping, SharedName
name, size, workers, rank, limit = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
graph = Graph(
    partial(SharedName, name, size, workers, rank, limit=limit), SharedFile, partial(SharedMapping, size=size, gather=True),
)
with graph:
    region = graph[SharedMapping]
    with region.cut(rank, 1) as mine:
        mine[0] = rank + 1
    print("created" if graph[SharedName].created else "joined", flush=True)
    sys.stdin.readline()
    with region.cut(0, workers) as all:
        print(bytes(all).hex(), flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def name():
    """A name that nobody else has; it must be gone after the test."""
    name = f"test-{uuid.uuid4().hex}"
    yield name
    assert not (DIRECTORY / f"{PREFIX}{name}").exists()


class Workers:
    """Worker processes at one name."""

    def __init__(self, name, count, ranks=None, size=SIZE, limit=20.0):
        self.processes: list[Any] = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, name, str(size), str(count), str(rank), str(limit)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in (range(count) if ranks is None else ranks)
        ]

    def hear(self):
        """The next line of each."""
        return [process.stdout.readline().strip() for process in self.processes]

    def go_on(self):
        """A line to each."""
        for process in self.processes:
            process.stdin.write("\n")
            process.stdin.flush()

    def end(self):
        """Their exit codes and errors."""
        ends = [process.communicate(timeout=60) for process in self.processes]
        return [(process.returncode, err) for process, (_, err) in zip(self.processes, ends, strict=True)]


def test_of_many_that_race_one_creates(name):
    """All map one memory; the name is gone as soon as they have; each sees what the others wrote."""
    workers = Workers(name, 4)
    assert ["created", "joined", "joined", "joined"] == sorted(workers.hear())
    assert not (DIRECTORY / f"{PREFIX}{name}").exists()
    workers.go_on()
    assert ["01020304"] * 4 == workers.hear()
    workers.go_on()
    assert [(0, "")] * 4 == workers.end()


def test_a_name_that_a_killed_run_left_is_reclaimed(name):
    """Killed while they wait for the last worker, they leave a name; the next run takes it away and has its own."""
    first = Workers(name, 3, ranks=[0, 1])
    deadline = time.monotonic() + 30
    while marks(name) < 2:
        assert time.monotonic() < deadline, "two workers never mapped it"
    for process in first.processes:
        process.send_signal(signal.SIGKILL)
    assert [-9, -9] == [code for code, _ in first.end()]
    assert (DIRECTORY / f"{PREFIX}{name}").exists()
    second = Workers(name, 3)
    assert ["created", "joined", "joined"] == sorted(second.hear())
    second.go_on()
    assert ["010203"] * 3 == second.hear()
    second.go_on()
    assert [(0, "")] * 3 == second.end()


def marks(name):
    """How many workers have said that they have mapped it."""
    try:
        return (DIRECTORY / f"{PREFIX}{name}").read_bytes()[64:128].count(1)
    except FileNotFoundError:
        return 0


def test_who_waits_in_vain_says_for_whom(name):
    """The barrier has its limit; the roll-back removes the name."""
    [(code, error)] = Workers(name, 3, ranks=[1], limit=0.2).end()
    assert 1 == code
    assert "worker 1 waited 0.2 s for worker(s) [0, 2] to map" in error


def test_a_second_worker_of_a_rank_is_refused(name):
    """It would write where another one does."""
    first = SharedName(name, SIZE, 2, 0)
    first.start()
    [(code, error)] = Workers(name, 2, ranks=[0]).end()
    assert 1 == code
    assert "there is a worker 0 already" in error
    first.stop()
    assert first.is_stopped()


@pytest.mark.parametrize(("size", "workers"), [(2 * SIZE, 2), (SIZE, 3)])
def test_workers_must_agree(name, size, workers):
    """Another size, or another count, is refused with both."""
    first = SharedName(name, SIZE, 2, 0)
    first.start()
    with pytest.raises(RendezvousError, match=f"is for 2 workers and {SIZE} bytes, not for {workers} and {size}"):
        SharedName(name, size, workers, 1, limit=0.1).start()
    first.stop()


def test_a_name_in_the_making_is_waited_for(name):
    """Whoever makes it holds its lock; a joiner does not take it for a dead one's, and gives up at its limit."""
    path = DIRECTORY / f"{PREFIX}{name}"
    with path.open("wb") as making:
        fcntl.flock(making, fcntl.LOCK_EX)
        with pytest.raises(RendezvousError, match="waited"):
            SharedName(name, SIZE, 2, 1, limit=0.05).start()
        assert path.exists()
    late = SharedName(name, SIZE, 2, 1)
    late.start()
    assert late.created, "its maker is dead"
    late.stop()


def test_a_name_that_others_took_since_is_left_alone(name):
    """Told by device and inode, not by its text."""
    path = DIRECTORY / f"{PREFIX}{name}"
    ours = SharedName(name, SIZE, 1, 0)
    ours.start()
    path.unlink()
    path.write_bytes(b"theirs")
    ours.stop()
    assert b"theirs" == path.read_bytes()
    path.unlink()


@pytest.mark.parametrize(
    ("workers", "rank", "text"), [(0, 0, "x"), (2, 2, "x"), (2, -1, "x"), (1, 0, "a/b"), (1, 0, "")]
)
def test_nonsense_is_refused_before_anything_is_made(workers, rank, text):
    """Ranks lie within the workers, and a name is no path."""
    with pytest.raises(ValueError, match=r"rank|name"):
        SharedName(text, SIZE, workers, rank)


class InUse(SharedMapping):
    """One that cannot be unmapped."""

    def stop(self):
        raise BufferError("somebody has a slice")


def test_a_held_memory_does_not_keep_its_name(name):
    """The mapping depends on its name for order only: it fails, its file is held, and the name goes."""
    path = DIRECTORY / f"{PREFIX}{name}"
    graph = Graph(name="held")
    graph.add(partial(SharedName, name, SIZE, 1, 0), name="name")
    graph.add(SharedFile, name="file")
    graph.add(partial(InUse, size=SIZE, gather=True), name="mapping")
    graph.start()
    mapping = graph["mapping"]
    report = graph.teardown()
    assert {"mapping": Fate.FAILED, "file": Fate.POISONED, "name": Fate.RELEASED} == dict(report.fates)
    assert mapping.mapped
    assert not path.exists()


def test_a_nameless_memory_is_shared_by_its_descriptor():
    """Written through one mapping, read through another; there is no name at any time."""
    before = {path.name for path in DIRECTORY.iterdir()}
    descriptor = nameless(SIZE)
    assert os.fstat(descriptor).st_size == SIZE + HEADER_BYTES
    files = [SharedFile(inherited=descriptor) for _ in range(2)]
    regions = [SharedMapping(file, SIZE) for file in files]
    for file, region in zip(files, regions, strict=True):
        file.start()
        region.start()
    os.close(descriptor)
    assert before == {path.name for path in DIRECTORY.iterdir()}
    with regions[0].cut(100, 4) as here, regions[1].cut(100, 4) as there:
        here[:] = b"abcd"
        assert b"abcd" == bytes(there)
    for file, region in zip(files, regions, strict=True):
        region.stop()
        file.stop()
        assert region.is_stopped()
        assert file.is_stopped()


def test_a_region_can_be_bound_to_a_node():
    """To one that is there, without a note; to one that is not, with a note that says so, and the region works."""
    here = numa.nodes()
    region = Mapping(SIZE, huge=False, node=here[0] if here else 0)
    region.start()
    assert here == [] or region.notes == []
    region.stop()
    region = Mapping(SIZE, huge=False, node=1000)
    region.start()
    assert any("not bound to NUMA node 1000" in note for note in region.notes)
    region.stop()
