"""Why holding beats unmapping: a transfer that is still in flight when its tier is said to be stopped.

    python -m examples.kv_offload.stories.unmapping

A tier's thread is in the middle of copying into the region when the tier's stop fails. One child process does what is
often done: it notes the error and unmaps. The copy goes on into nothing, and the process dies of SIGSEGV. The other
leaves it to the graph: the region is held, the copy ends in memory that nobody else has, and all else is released.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from lifegraph import Graph, resource

from ..memory.region import Mapping

SIZE = 16 << 20
_ROOT = Path(__file__).resolve().parents[3]


@resource
class CopyingTier:
    """Its thread copies by bare address, as a C++ library or a device does; so no export keeps the mapping."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self.late_byte = 0xEE
        self._data = bytes([self.late_byte]) * mapping.size
        self._half_way = threading.Event()
        self._go_on = threading.Event()
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def start(self) -> None:
        """Begin to copy, and return in the middle of it."""
        self._thread.start()
        self._half_way.wait()

    def stop(self) -> None:
        """The thread does not answer."""
        raise TimeoutError("the I/O thread did not end")

    def is_stopped(self) -> bool:
        """Whether the thread has ended."""
        return not self._thread.is_alive()

    def finish(self) -> None:
        """The late half of the copy."""
        self._go_on.set()
        self._thread.join()

    def _copy(self) -> None:
        half = self._mapping.size // 2
        ctypes.memmove(self._mapping.address, self._data, half)
        late = self._data[half:]  # now: memory for it must not be found where the region was
        self._half_way.set()
        self._go_on.wait()
        ctypes.memmove(self._mapping.address + half, late, half)


def unmap_anyway() -> int:
    """Notes the error of the tier, and unmaps."""
    mapping = Mapping(SIZE)
    mapping.start()
    tier = CopyingTier(mapping)
    tier.start()
    try:
        tier.stop()
    except TimeoutError as error:
        print(f"tier: {error} (noted)")
    mapping.stop()
    print("region: unmapped", flush=True)
    tier.finish()
    return 0


def hold() -> NoReturn:
    """Leaves it to the graph."""
    graph = Graph(name="story")
    graph.add(partial(Mapping, SIZE), name="mapping")
    graph.add(CopyingTier, name="tier")
    graph.start()
    mapping, tier = graph[Mapping], graph["tier"]
    report = graph.teardown()
    tier.finish()
    with mapping.cut(mapping.size - 1, 1) as last:
        late = last[0] == tier.late_byte
    print(
        f"tier: {report.fates['tier']}; region: {report.fates['mapping']}, the late copy ended in it: {late}",
        flush=True,
    )
    os._exit(report.exit_code)  # what is held must not be finalized


def happen(how: str) -> subprocess.CompletedProcess[str]:
    """One of the two, in a child process."""
    command = [sys.executable, "-m", f"{__package__}.unmapping", how]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=60, check=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Both children, and what became of them; 0 where they went as the story says."""
    match list(sys.argv[1:] if arguments is None else arguments):
        case ["unmap"]:
            return unmap_anyway()
        case ["hold"]:
            hold()
        case _:
            ends = {how: happen(how) for how in ("unmap", "hold")}
    for how, end in ends.items():
        died = f"died of {signal.Signals(-end.returncode).name}" if end.returncode < 0 else f"exit {end.returncode}"
        print(f"{how}: {died}\n    " + "\n    ".join(end.stdout.splitlines()))
    return 0 if (ends["unmap"].returncode, ends["hold"].returncode) == (-signal.SIGSEGV, 3) else 1


if __name__ == "__main__":
    sys.exit(main())
