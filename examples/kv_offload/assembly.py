"""The hierarchy as a graph: who exists, and nothing about who stops when. The order follows from who uses whom."""

from __future__ import annotations

from collections.abc import Mapping as Faults
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from lifegraph import Graph

from .faults import DISK, PEER
from .memory.pool import BlockPool
from .memory.region import Mapping
from .memory.registration import Registration
from .memory.view import View
from .serving.hierarchy import Hierarchy
from .serving.traffic import Traffic
from .tiers.directory import Directory
from .tiers.peer_host import PeerHost

SMALLEST_BLOCK = 64 << 10
BLOCKS = 256
HANG_LIMIT = 4.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How large, where, and what is to go wrong. Sizes are bytes; a fault is `start`, `stop` or `hang`, by tier."""

    size: int
    directory: Path | None = None
    faults: Faults[str, str] = field(default_factory=dict)

    @property
    def block_size(self) -> int:
        """A 256th of the region, but at least 64 KiB, and whole pages."""
        return max(SMALLEST_BLOCK, self.size // BLOCKS // SMALLEST_BLOCK * SMALLEST_BLOCK)

    @property
    def peer_cap(self) -> int:
        """The peer keeps as much as the region does."""
        return self.size

    @property
    def disk_cap(self) -> int:
        """The disk keeps four times as much."""
        return 4 * self.size


def assemble(settings: Settings) -> Graph:
    """The graph of one hierarchy, not started. The peer is asked before the disk: it is declared first."""
    disk, peer = settings.faults.get("disk", ""), settings.faults.get("peer", "")
    graph = Graph(name="kv_offload")
    graph.add(partial(Mapping, settings.size), name="mapping")
    graph.add(Registration, name="registration")
    graph.add(partial(BlockPool, size=settings.size, block_size=settings.block_size), name="pool")
    for borrower in ("engine", "peer", "disk"):
        graph.add(partial(View, borrower), name=f"view({borrower})")
    graph.add(partial(PeerHost, settings.peer_cap), name="peer process")
    graph.add(PEER[peer], name="peer", stop_timeout=_limit(peer))
    graph.add(partial(Directory, settings.directory), name="directory")
    graph.add(partial(DISK[disk], cap=settings.disk_cap), name="disk", stop_timeout=_limit(disk))
    graph.add(Hierarchy, name="manager")
    graph.add(Traffic, name="engine")
    return graph


def _limit(fault: str) -> float:
    """Seconds for a tier to finish the transfers that run; a hang need not be waited for that long."""
    return HANG_LIMIT if fault == "hang" else 30.0
