"""A small hierarchy of plain objects, started and stopped by hand: these tests are about the data plane alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from examples.kv_offload.memory.pool import BlockPool
from examples.kv_offload.memory.region import Mapping
from examples.kv_offload.memory.registration import Registration
from examples.kv_offload.memory.view import View
from examples.kv_offload.tiers.tier import Job

BLOCK = 64 << 10
BLOCKS = 16


class Batch:
    """Collects settled jobs, so that a test can wait for them."""

    def __init__(self) -> None:
        self._done = threading.Condition()
        self.settled: list[Job] = []

    def job(self, kind: str, keys: list[bytes], slots: list[int]) -> Job:
        return Job("store" if kind == "store" else "load", keys, slots, self._settled)

    def wait(self, count: int = 1, limit: float = 20.0) -> list[Job]:
        with self._done:
            assert self._done.wait_for(lambda: len(self.settled) >= count, limit), (
                f"{len(self.settled)} of {count} jobs"
            )
            return self.settled

    def _settled(self, job: Job) -> None:
        with self._done:
            self.settled.append(job)
            self._done.notify_all()


@dataclass
class Memory:
    """A region with a pool and as many views as are asked for."""

    size: int = BLOCK * BLOCKS
    block: int = BLOCK
    mapping: Mapping = field(init=False)
    registration: Registration = field(init=False)
    pool: BlockPool = field(init=False)
    views: list[View] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mapping = Mapping(self.size)
        self.mapping.start()
        self.registration = Registration(self.mapping)
        self.registration.start()
        self.pool = BlockPool(self.registration, self.size, self.block)

    def view(self) -> View:
        view = View("test", self.pool, self.mapping)
        view.start()
        self.views.append(view)
        return view

    def stop(self) -> None:
        for view in self.views:
            view.stop()
        self.pool.stop()
        self.registration.stop()
        self.mapping.stop()


@pytest.fixture
def memory() -> Iterator[Memory]:
    """A pinned region of 16 blocks of 64 KiB, which must be free of any use at the end of the test."""
    memory = Memory()
    yield memory
    memory.stop()


@pytest.fixture
def batch() -> Batch:
    """Somebody to settle jobs with."""
    return Batch()


@pytest.fixture
def key() -> Callable[[int], bytes]:
    """The n-th key."""
    return lambda number: number.to_bytes(32, "big")
