"""The NIXL tier: one-sided transfers between the registered pool and memory, or a file, elsewhere."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pickle import PickleBuffer
from typing import Annotated, Literal

import crc32c

from lifegraph import named, resource

from ..memory.view import View
from .nixl_agent import Extent, NixlAgent
from .nixl_far import Far, FarMemory
from .remote import RemoteTier
from .tier import Job

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class _Kept:
    slot: int
    crc: int


@resource
class NixlTier(RemoteTier):
    """Writes blocks into far slots and reads them back, with one thread. Thread-safe.

    The far side takes no part, so which slot holds what is known here alone, the least recently used is written over,
    and what comes back is checked against the checksum that was taken here.

    `stop` waits for terminal states, takes the registration back and destroys the agent. `kill` destroys the agent
    under what is in flight: that is the fence.
    """

    def __init__(self, view: Annotated[View, named("view(nixl)")], far: FarMemory, *, queue_limit: int = 1024) -> None:
        super().__init__("nixl", view, queue_limit)
        self._far_memory = far
        self._leaving = threading.Event()
        self._agent: NixlAgent | None = None
        self._far: Far | None = None
        self._held: list[PickleBuffer] = []
        self._there: OrderedDict[bytes, _Kept] = OrderedDict()
        self._free = list(range(far.slots - 1, -1, -1))

    def connect(self) -> None:
        if self._far_memory.block_size != self._view.block_size:
            raise ValueError(f"far blocks of {self._far_memory.block_size} bytes, not {self._view.block_size}")
        agent = NixlAgent(f"tier-{os.getpid()}-{next(_numbers)}", self._far_memory.backend)
        self._held = self._view.hold()
        agent.register((self._view.address, self._view.nbytes, 0), "DRAM")
        self._far = self._far_memory.reach(agent)
        self._agent = agent

    def break_off(self) -> None:
        self._leaving.set()

    def hang_up(self) -> None:
        """Deregister, which proves nothing, and destroy the agent, which does. Raises RuntimeError where it lives on."""
        if self._agent is not None:
            if not self._agent.in_flight:
                self._agent.deregister()
            self._agent.destroy()
            self._agent = None
        for block in self._held:
            block.release()

    def is_stopped(self) -> bool:
        """No thread runs, and the agent is gone."""
        return super().is_stopped() and (self._agent is None or not self._agent.alive)

    def store(self, job: Job) -> list[bool]:
        ok, new = self.new_ones(job)
        slots = self._take(min(len(new), self._far_memory.slots))
        new = new[: len(slots)]
        if not new:
            return ok
        kept = [
            _Kept(slot, crc32c.crc32c(self._view.block(job.slots[at]))) for at, slot in zip(new, slots, strict=True)
        ]
        self._transfer("WRITE", [job.slots[position] for position in new], slots)
        for position, place in zip(new, kept, strict=True):
            self._there[job.keys[position]] = place
            ok[position] = True
        self.learn(job.keys[position] for position in new)
        job.nbytes = len(new) * self._view.block_size
        return ok

    def load(self, job: Job) -> list[bool]:
        places = [self._there.get(key) for key in job.keys]
        found = [(slot, place) for slot, place in zip(job.slots, places, strict=True) if place is not None]
        if found:
            self._transfer("READ", [slot for slot, _ in found], [place.slot for _, place in found])
        ok = []
        for key, slot, place in zip(job.keys, job.slots, places, strict=True):
            right = place is not None and crc32c.crc32c(self._view.block(slot)) == place.crc
            if place is not None:
                self._there.move_to_end(key)
                self._transfers.count(corrupt=not right)
            ok.append(right)
        self.unlearn(job, ok)
        job.nbytes = sum(ok) * self._view.block_size
        return ok

    def _take(self, wanted: int) -> list[int]:
        """Far slots to write to, those of the least recently used blocks if there are no others."""
        given_up = []
        while len(self._free) < wanted:
            key, place = self._there.popitem(last=False)
            given_up.append(key)
            self._free.append(place.slot)
        if given_up:
            with self._lock:
                self._kept.difference_update(given_up)
            self._transfers.count(evicted=len(given_up))
        return [self._free.pop() for _ in range(wanted)]

    def _transfer(self, way: Literal["WRITE", "READ"], slots: Sequence[int], far_slots: Sequence[int]) -> None:
        if self._agent is None or self._far is None:
            raise ConnectionError("no agent: not started")
        size = self._view.block_size
        here: list[Extent] = [(self._view.address + slot * size, size, 0) for slot in slots]
        there = [self._far.slot(slot, size) for slot in far_slots]
        number = self._agent.post(way, here, there, self._far.kind, self._far.agent)
        self._agent.settle(number, self._leaving)
