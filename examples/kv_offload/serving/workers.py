"""Worker processes that compute the blocks, as those of a serving engine do: into one region that all of them map."""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated

from lifegraph import order_only, resource

from ..memory.libc import address_of
from ..memory.region import Mapping
from ..memory.shared import SharedName
from ..tiers.child_process import ChildProcess
from .content import SyntheticContent


@resource
class WorkerProcess(ChildProcess):
    """One of them. It uses the region: one that does not leave, and cannot be killed, keeps the region where it is."""

    def __init__(
        self, rank: int, workers: int, mapping: Mapping, name: Annotated[SharedName, order_only], *, limit: float = 15.0
    ) -> None:
        super().__init__(limit=limit)
        self._arguments = [name.text, str(mapping.size), str(workers), str(rank)]

    def start(self) -> None:
        """Spawn it, and wait until it has mapped the region. Raises RuntimeError where that takes longer than the limit."""
        self.spawn(f"{__package__}.worker_process", self._arguments, b"", {})

    def order(self, key: bytes, offset: int, length: int) -> None:
        """Begin to compute one block. Raises BrokenPipeError where the worker is gone."""
        self.say(json.dumps({"key": key.hex(), "offset": offset, "length": length}).encode())

    def finish(self) -> None:
        """Wait until the block is written. Raises ConnectionError where the worker is gone."""
        if self.hear() != b"written\n":
            raise ConnectionError(f"worker process {self.pid} ended before its block was written")


@resource
class Crew(SyntheticContent):
    """All workers: gathers them at the barrier, and hands the missing blocks of a prompt out to them.

    What they write is checked like everything else that is served. Used by one thread.
    """

    def __init__(self, workers: list[WorkerProcess], mapping: Mapping, name: Annotated[SharedName, order_only]) -> None:
        super().__init__()
        self._workers = workers
        self._mapping = mapping
        self._name = name

    def start(self) -> None:
        """Wait until every worker has mapped the region; its name is gone then. Raises RendezvousError."""
        self._name.arrive()

    def write(self, prompt: Sequence[tuple[bytes, memoryview]], missing: AbstractSet[bytes]) -> None:
        waiting = [(key, block) for key, block in prompt if key in missing]
        while waiting:
            turn, waiting = waiting[: len(self._workers)], waiting[len(self._workers) :]
            for worker, (key, block) in zip(self._workers, turn, strict=False):
                worker.order(key, address_of(block) - self._mapping.address, len(block))
            for worker, _ in zip(self._workers, turn, strict=False):
                worker.finish()

    def checked(self) -> str:
        return f"computed by {len(self._workers)} worker processes, {super().checked()}"
