"""The disk tier: batches of blocks as files of a directory, found again after a restart."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated

import crc32c

from lifegraph import named, resource

from ..memory.view import View
from .directory import Directory
from .pack_files import PackFiles, Sync
from .pack_format import HEADER_BYTES, MAX_BLOCKS, seal
from .pack_index import Pack, PackIndex, Place
from .tier import Job, Lookup, TierStats
from .transfers import Transfers


@resource
class DiskTier:
    """Keeps blocks in `directory`, up to `cap` bytes, the least recently used packs out first.

    Every block is checked on load: wrong, missing or short bytes are a miss, counted and forgotten, never served.
    Several processes may share the directory; each knows, caps and evicts only the packs it found or wrote.
    Thread-safe.
    """

    def __init__(
        self,
        view: Annotated[View, named("view(disk)")],
        directory: Directory,
        cap: int,
        *,
        threads: int = 2,
        sync: Sync = Sync.BATCH,
        queue_limit: int = 1024,
    ) -> None:
        self._view = view
        self._files = PackFiles(directory.path, view.block_size, sync)
        self._cap = cap
        self._index = PackIndex(cap)
        self._transfers = Transfers("disk", threads, self.execute, queue_limit)
        self._storing: Counter[bytes] = Counter()
        self._lock = threading.Lock()
        self.notes: list[str] = []

    def start(self) -> None:
        """Sweep what a dead writer left, index the packs that are there, start the threads. Raises OSError."""
        self._index = PackIndex(self._cap)
        self._files.open()
        swept = self._files.sweep()
        good, bad = self._files.scan()
        for path, header in good:
            victims = self._index.reserve(header.file_bytes)
            if victims is None:
                path.unlink(missing_ok=True)
                continue
            self._remove(victims)
            self._remove(self._index.add(path, header))
        for path, _ in bad:
            path.unlink(missing_ok=True)
        self.notes = [*self._files.notes, *(f"unusable pack {path.name} removed: {why}" for path, why in bad)]
        if swept:
            self.notes.append(f"{swept} leftover temporary file(s) removed")
        self._transfers.count(corrupt=len(bad))
        self._transfers.start()

    def label(self) -> str:
        return "disk"

    def lookup(self, key: bytes) -> Lookup:
        if key in self._index:
            return self._transfers.reach()
        return Lookup.PENDING if self._storing[key] > 0 else Lookup.MISS

    def submit_store(self, job: Job) -> None:
        with self._lock:
            self._storing.update(job.keys)
        settled = job.on_settled

        def stored(job: Job) -> None:
            with self._lock:
                self._storing.subtract(job.keys)
                for key in job.keys:
                    if self._storing[key] <= 0:
                        del self._storing[key]
            settled(job)

        job.on_settled = stored
        self._transfers.submit(job)

    def submit_load(self, job: Job) -> None:
        self._transfers.submit(job)

    def poll(self) -> list[Job]:
        return self._transfers.poll()

    def drain(self) -> None:
        self._transfers.close_door()

    def stop(self) -> None:
        """Cancel what is queued and join the I/O threads: nothing touches the view afterwards."""
        self._transfers.stop()

    def is_stopped(self) -> bool:
        """No thread of it runs any longer, so none of them touches a block."""
        return not self._transfers.alive()

    def stats(self) -> TierStats:
        return self._transfers.stats

    def execute(self, job: Job) -> list[bool]:
        """Carry one job out, on one of the tier's own threads."""
        return self._store(job) if job.kind == "store" else self._load(job)

    def _store(self, job: Job) -> list[bool]:
        ok = [key in self._index for key in job.keys]
        new = [index for index, known in enumerate(ok) if not known]
        for begin in range(0, len(new), MAX_BLOCKS):
            batch = new[begin : begin + MAX_BLOCKS]
            if self._write_pack([job.keys[index] for index in batch], [job.slots[index] for index in batch]):
                job.nbytes += len(batch) * self._view.block_size
                for index in batch:
                    ok[index] = True
        return ok

    def _write_pack(self, keys: Sequence[bytes], slots: Sequence[int]) -> bool:
        nbytes = HEADER_BYTES + len(keys) * self._view.block_size
        victims = self._index.reserve(nbytes)
        if victims is None:
            return False
        self._remove(victims)
        blocks = [self._view.block(slot) for slot in slots]
        try:
            header = seal(keys, blocks)
            path = self._files.write(header, blocks)
        except BaseException:  # the bytes set aside are given back whatever ended the write, and the error goes on
            self._index.give_back(nbytes)
            raise
        self._remove(self._index.add(path, header), evicted=False)
        return True

    def _load(self, job: Job) -> list[bool]:
        ok = [False] * len(job.keys)
        places = self._index.find(job.keys)
        packs: dict[int, list[tuple[int, Place]]] = {}
        for index, place in enumerate(places):
            if place is not None:
                packs.setdefault(id(place.pack), []).append((index, place))
        for group in packs.values():
            for (index, place), good in zip(group, self._load_from_pack(job, group), strict=True):
                ok[index] = good
                if not good:
                    self._remove(self._index.drop(job.keys[index], place), evicted=False)
        job.nbytes = sum(ok) * self._view.block_size
        return ok

    def _load_from_pack(self, job: Job, group: Sequence[tuple[int, Place]]) -> list[bool]:
        pack = group[0][1].pack
        blocks = [self._view.block(job.slots[index]) for index, _ in group]
        wanted = [(place.position, block) for (_, place), block in zip(group, blocks, strict=True)]
        try:
            came = self._files.read(pack.path, pack.header, wanted)
        except FileNotFoundError:
            return [False] * len(group)  # evicted between the look-up and now
        except OSError:
            came = [False] * len(group)
        good = [
            whole and crc32c.crc32c(block[: place.entry.length]) == place.entry.crc
            for (_, place), block, whole in zip(group, blocks, came, strict=True)
        ]
        self._transfers.count(corrupt=good.count(False))
        return good

    def _remove(self, packs: Iterable[Pack], *, evicted: bool = True) -> None:
        for pack in packs:
            pack.path.unlink(missing_ok=True)
            if evicted:
                self._transfers.count(evicted=len(pack.live))
