"""Storing to and loading from a disk: our tier, bare system calls, and vLLM's file tier, in turns."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Protocol

from ..memory.pool import BlockPool
from ..memory.region import Mapping
from ..memory.registration import Registration
from ..memory.view import View
from ..tiers.directory import Directory
from ..tiers.disk_tier import DiskTier
from ..tiers.pack_files import PackFiles, Sync
from ..tiers.tier import Job

BATCH = 32
_PEER = Path(__file__).with_name("vllm_peer.py")


class Contestant(Protocol):
    """Somebody who stores and loads the same number of blocks; seconds of each."""

    name: str

    def store(self) -> float:
        """All blocks, to where nothing is yet."""

    def load(self) -> float:
        """All blocks that were stored last."""


class Ours:
    """The disk tier: packs of a batch each, crc32c of every block taken on store and compared on load."""

    def __init__(self, directory: Path, block: int, blocks: int, sync: Sync) -> None:
        self.name = f"ours, crc32c, sync {sync}"
        self._mapping = Mapping(block * blocks)
        self._mapping.start()
        pool = BlockPool(Registration(self._mapping), self._mapping.size, block)
        self._view = View("bench", pool, self._mapping)
        self._view.start()
        self._fill()
        self._directory, self._blocks, self._sync = directory, blocks, sync
        self._tier: DiskTier | None = None

    def _fill(self) -> None:
        with self._mapping.cut(0, self._mapping.size) as whole:
            whole[:] = bytes(range(256)) * (self._mapping.size // 256)

    def store(self) -> float:
        self._forget()
        self._tier = DiskTier(self._view, Directory(self._directory), 1 << 40, threads=2, sync=self._sync)
        self._tier.start()
        return self._run("store")

    def load(self) -> float:
        return self._run("load")

    def close(self) -> None:
        """Let go of everything."""
        self._forget()
        self._view.stop()
        self._mapping.stop()

    def _forget(self) -> None:
        if self._tier is not None:
            self._tier.stop()
            self._tier = None
        for path in self._directory.glob("*"):
            path.unlink()

    def _run(self, kind: str) -> float:
        assert self._tier is not None
        batches = [range(first, min(first + BATCH, self._blocks)) for first in range(0, self._blocks, BATCH)]
        left, done = threading.Semaphore(0), []

        def settled(job: Job) -> None:
            done.append(all(job.ok))
            left.release()

        submit = self._tier.submit_store if kind == "store" else self._tier.submit_load
        began = time.perf_counter()
        for batch in batches:
            keys = [number.to_bytes(32, "big") for number in batch]
            submit(Job("store" if kind == "store" else "load", keys, batch, settled))
        for _ in batches:
            left.acquire()
        seconds = time.perf_counter() - began
        if not all(done):
            raise RuntimeError(f"a {kind} did not do all of its blocks")
        return seconds


class Bare:
    """pwritev and preadv of a batch at a time into one file, with direct I/O, and no checksum."""

    name = "bare system calls, no checksum"

    def __init__(self, directory: Path, block: int, blocks: int) -> None:
        self._path = directory / "bare"
        files = PackFiles(directory, block)
        files.open()
        self._direct = os.O_DIRECT if files.direct else 0
        self._block, self._blocks = block, blocks
        self._memory = mmap.mmap(-1, block * blocks)
        self._memory[:] = bytes(range(256)) * (block * blocks // 256)
        view = memoryview(self._memory)
        self._views = [view[number * block : (number + 1) * block] for number in range(blocks)]

    def store(self) -> float:
        self._path.unlink(missing_ok=True)
        return self._run(os.O_WRONLY | os.O_CREAT, os.pwritev)

    def load(self) -> float:
        return self._run(os.O_RDONLY, os.preadv)

    def _run(self, flags: int, call: object) -> float:
        move = os.pwritev if call is os.pwritev else os.preadv
        began = time.perf_counter()
        descriptor = os.open(self._path, flags | self._direct, 0o600)
        for first in range(0, self._blocks, BATCH):
            part = self._views[first : first + BATCH]
            if move(descriptor, part, first * self._block) != sum(map(len, part)):
                raise RuntimeError("the kernel did less than it was asked for")
        os.close(descriptor)
        return time.perf_counter() - began


class Vllm:
    """vLLM's file tier, in a process of its own."""

    name = "vLLM's file tier, no checksum"

    def __init__(self, python: Path, directory: Path, block: int, blocks: int) -> None:
        batch = 1 if block >= 1 << 20 else 16  # blocks in a job: its best, of those tried; it has 16 threads
        command = [str(python), str(_PEER), str(directory), str(block), str(blocks), str(batch)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def store(self) -> float:
        return self._ask("store")

    def load(self) -> float:
        return self._ask("load")

    def close(self) -> None:
        """Let it leave."""
        self._process.communicate()

    def _ask(self, what: str) -> float:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        if not said:
            raise RuntimeError(f"vLLM's process ended with {self._process.wait()}")
        return float(said)


@contextmanager
def _contestants(directory: Path, block: int, blocks: int, vllm: Path | None) -> Iterator[list[Contestant]]:
    with ExitStack() as stack:

        def place(name: str) -> Path:
            path = directory / name
            path.mkdir()
            stack.callback(shutil.rmtree, path)
            return path

        ours = [Ours(place(f"ours-{sync}"), block, blocks, sync) for sync in (Sync.NEVER, Sync.BATCH)]
        for each in ours:
            stack.callback(each.close)
        found: list[Contestant] = [*ours, Bare(place("bare"), block, blocks)]
        if vllm is not None:
            peer = Vllm(vllm, place("vllm"), block, blocks)
            stack.callback(peer.close)
            found.append(peer)
        yield found


def measure(directory: Path, block: int, total: int, rounds: int, vllm: Path | None) -> dict[str, tuple[float, float]]:
    """Bytes in a second, stored and loaded, by contestant: medians over rounds that go there and back again."""
    seconds: dict[str, list[tuple[float, float]]] = {}
    with (
        tempfile.TemporaryDirectory(dir=directory, prefix="kv_bench-") as scratch,
        _contestants(Path(scratch), block, total // block, vllm) as contestants,
    ):
        for turn in range(rounds + 1):  # the first one warms up
            order: Sequence[Contestant] = contestants if turn % 2 else contestants[::-1]
            for each in order:
                took = (each.store(), each.load())
                if turn:
                    seconds.setdefault(each.name, []).append(took)
    return {
        name: (total / median(took[0] for took in all_of), total / median(took[1] for took in all_of))
        for name, all_of in seconds.items()
    }
