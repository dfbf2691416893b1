"""What the bookkeeping costs, what a teardown costs, and how fast blocks are copied."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from statistics import median

import crc32c

from lifegraph import Graph

from ..assembly import Settings, assemble
from ..memory.libc import copy
from ..memory.pool import BlockPool
from ..memory.region import Mapping
from ..memory.registration import Registration
from ..serving.hierarchy import Hierarchy
from ..tiers.tier import Job, Lookup, Outcome, TierStats

BLOCK = 1 << 20
CHUNK = 256 << 10


class NullTier:
    """Does nothing, and that at once: what is left is the bookkeeping."""

    def __init__(self) -> None:
        self.claims = False
        self.jobs: list[Job] = []

    def label(self) -> str:
        return "null"

    def lookup(self, key: bytes) -> Lookup:
        return Lookup.HIT if self.claims else Lookup.MISS

    def submit_store(self, job: Job) -> None:
        job.settle(Outcome.DONE, (True,) * len(job.keys))

    def submit_load(self, job: Job) -> None:
        self.jobs.append(job)

    def poll(self) -> list[Job]:
        return []

    def drain(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def is_stopped(self) -> bool:
        return True

    def stats(self) -> TierStats:
        return TierStats()


def per_block(blocks: int = 4096, batch: int = 32, rounds: int = 7) -> dict[str, float]:
    """Microseconds of the scheduler's time for each block, one tier attached."""
    took: dict[str, list[float]] = {"store and cascade": [], "look-up, hit": [], "promotion": []}
    for _ in range(rounds):
        mapping = Mapping(4096)
        pool = BlockPool(Registration(mapping), blocks * 4096, 4096)  # no block of it is touched
        hierarchy, tier = Hierarchy(pool), NullTier()
        hierarchy.attach(tier, 0)
        keys = [number.to_bytes(32, "big") for number in range(blocks)]
        batches = [keys[first : first + batch] for first in range(0, blocks, batch)]

        def store(hierarchy: Hierarchy = hierarchy, batches: list[list[bytes]] = batches) -> None:
            for each in batches:
                hierarchy.reserve(each, "engine")
                hierarchy.commit(each, "engine")

        def hit(hierarchy: Hierarchy = hierarchy, batches: list[list[bytes]] = batches) -> None:
            for each in batches:
                hierarchy.lookup(each, "engine")

        def promote(
            hierarchy: Hierarchy = hierarchy, tier: NullTier = tier, batches: list[list[bytes]] = batches
        ) -> None:
            for each in batches:
                hierarchy.lookup(each, "engine")
                for job in tier.jobs:
                    job.settle(Outcome.DONE, (True,) * len(job.keys))
                tier.jobs.clear()

        took["store and cascade"].append(_seconds(store) / blocks * 1e6)
        took["look-up, hit"].append(_seconds(hit) / blocks * 1e6)
        hierarchy.release(keys, "engine")
        pool.reset()
        tier.claims = True
        took["promotion"].append(_seconds(promote) / blocks * 1e6)
    return {name: median(each) for name, each in took.items()}


def idle_teardown(size: int, rounds: int = 3) -> dict[str, float]:
    """Milliseconds to tear an idle hierarchy down, and how many of them are the graph's own."""
    whole, own, start = [], [], []
    for _ in range(rounds):
        graph: Graph = assemble(Settings(size))
        start.append(_seconds(graph.start))
        began = time.perf_counter()
        report = graph.teardown()
        seconds = time.perf_counter() - began
        hooks = sum(report.outcomes[name].seconds or 0.0 for name in report.critical_path)
        whole.append(seconds)
        own.append(seconds - hooks)
        if not report.ok:
            raise RuntimeError(report.to_text())
    return {"start": median(start) * 1e3, "teardown": median(whole) * 1e3, "of which the graph": median(own) * 1e3}


def busy_teardown(size: int) -> dict[str, str]:
    """Tear down with a full store queue: what became of every block that was handed to the disk."""
    graph: Graph = assemble(Settings(size, tiers=("disk",), patience=0.0))
    graph.start()
    disk, blocks = graph["disk"], graph["pool"].capacity
    settled: list[Job] = []
    jobs = 400
    for number in range(jobs):
        slots = [(32 * number + offset) % blocks for offset in range(32)]
        keys = [(32 * number + offset).to_bytes(32, "big") for offset in range(32)]
        disk.submit_store(Job("store", keys, slots, settled.append))
    seconds = _seconds(graph.teardown)
    stats = disk.stats()
    told = stats.stored + stats.failed + stats.cancelled + stats.refused
    return {
        "teardown": f"{seconds * 1e3:.0f} ms",
        "blocks handed in": str(32 * jobs),
        "stored": str(stats.stored),
        "failed": str(stats.failed),
        "cancelled": str(stats.cancelled),
        "refused": str(stats.refused),
        "unreported": str(32 * jobs - told),
        "jobs settled": f"{len(settled)} of {jobs}",
    }


def pinned_release(size: int, rounds: int = 3) -> dict[str, float]:
    """Milliseconds to unpin and unmap, with huge pages and with ordinary ones."""
    took = {}
    for name, huge in (("huge pages", True), ("4 KiB pages", False)):
        times = []
        for _ in range(rounds):
            mapping = Mapping(size, huge=huge)
            mapping.start()
            registration = Registration(mapping)
            registration.start()

            def release(registration: Registration = registration, mapping: Mapping = mapping) -> None:
                registration.stop()
                mapping.stop()

            times.append(_seconds(release))
        took[name] = median(times) * 1e3
    return took


def copies(size: int = 64 << 20, rounds: int = 7) -> dict[str, float]:
    """Bytes in a second, from one part of a region to another, on one thread."""
    mapping = Mapping(2 * size)
    mapping.start()
    source, target = mapping.cut(0, size), mapping.cut(size, size)
    source[:] = os.urandom(1 << 20) * (size >> 20)

    def whole() -> None:
        ctypes.memmove(mapping.address + size, mapping.address, size)

    def by_blocks() -> None:
        for offset in range(0, size, BLOCK):
            copy(target[offset : offset + BLOCK], source[offset : offset + BLOCK])

    def with_sums() -> None:
        for offset in range(0, size, CHUNK):
            copy(target[offset : offset + CHUNK], source[offset : offset + CHUNK])
            crc32c.crc32c(target[offset : offset + CHUNK])

    ways = {"one memcpy of all": whole, "blocks of 1 MiB": by_blocks, "the same with crc32c, 256 KiB behind": with_sums}
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, call in ways.items():
            took[name].append(_seconds(call))
    source.release()
    target.release()
    mapping.stop()
    return {name: size / median(times[1:]) for name, times in took.items()}


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
