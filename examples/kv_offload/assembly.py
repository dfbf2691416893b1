"""The hierarchy as a graph: who exists, and nothing about who stops when. The order follows from who uses whom."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from collections.abc import Mapping as Faults
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from lifegraph import Graph

from .faults import Fault, broken
from .memory.policies import PolicyName
from .memory.pool import BlockPool
from .memory.region import Mapping
from .memory.registration import Registration
from .memory.shared import SharedFile, SharedMapping, SharedName
from .memory.view import View
from .serving.content import Content
from .serving.hierarchy import Hierarchy
from .serving.link import Link
from .serving.traffic import Traffic
from .serving.workers import Crew, WorkerProcess
from .tiers.directory import Directory
from .tiers.disk_tier import DiskTier
from .tiers.nixl_far import NixlHost
from .tiers.nixl_tier import NixlTier
from .tiers.peer_host import PeerHost
from .tiers.peer_tier import PeerTier
from .tiers.redis_server import RedisServer
from .tiers.redis_tier import RedisTier

SMALLEST_BLOCK = 64 << 10
BLOCKS = 256
HANG_LIMIT = 4.0
KILL_LIMIT = 1.0
TIERS: Final = ("peer", "nixl", "redis", "disk")
"""in the order in which they are asked"""
FAR: Final = {"peer": "peer process", "nixl": "nixl host", "redis": "redis server", "disk": "directory"}
"""what each tier keeps its blocks in"""


@dataclass(frozen=True, slots=True)
class Settings:
    """How large, where, which tiers, and what is to go wrong. Sizes are bytes."""

    size: int
    directory: Path | None = None
    faults: Faults[str, Fault] = field(default_factory=dict)
    """by the name of a resource"""
    for_good: bool = True
    """whether a kill helps against a fault no more than a stop"""
    tiers: tuple[str, ...] = ("peer", "disk")
    policy: PolicyName = PolicyName.LRU
    redis_url: str | None = None
    content: Content | None = None
    """what the blocks hold; bytes that follow from their keys where nothing is said"""
    hang_limit: float = HANG_LIMIT
    """seconds given to a stop that is to hang"""
    kill_limit: float = KILL_LIMIT
    """seconds given to the kill of a resource with a fault"""
    workers: int = 0
    """worker processes that compute the blocks, in a region that they share; none: the engine itself computes them"""
    stop_limits: Faults[str, float] = field(default_factory=dict)
    """seconds given to other stops, by name"""
    patience: float = 5.0
    """seconds that a link, and the manager, give the tiers to finish what they have"""

    @property
    def block_size(self) -> int:
        """A 256th of the region, but at least 64 KiB, and whole pages."""
        return max(SMALLEST_BLOCK, self.size // BLOCKS // SMALLEST_BLOCK * SMALLEST_BLOCK)

    @property
    def blocks(self) -> int:
        """How many the region holds."""
        return self.size // self.block_size

    @property
    def peer_cap(self) -> int:
        """The peer keeps as much as the region does; so do the others that keep blocks in memory."""
        return self.size

    @property
    def disk_cap(self) -> int:
        """The disk keeps four times as much."""
        return 4 * self.size


class Assembly:
    """Puts one hierarchy together."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._graph = Graph(name="kv_offload")

    def build(self) -> Graph:
        """The graph, not started."""
        settings = self._settings
        if settings.workers:
            self._share()
        else:
            self._add(partial(Mapping, settings.size), "mapping")
        self._add(Registration, "registration")
        pool = partial(BlockPool, size=settings.size, block_size=settings.block_size, policy=settings.policy)
        self._add(pool, "pool")
        self._add(partial(Hierarchy, flush_limit=settings.patience), "manager")
        branches: dict[str, Callable[[], None]] = {
            "peer": self._peer, "nixl": self._nixl, "redis": self._redis, "disk": self._disk,
        }  # fmt: skip
        for rank, label in enumerate(tier for tier in TIERS if tier in settings.tiers):
            self._add(partial(View, label), f"view({label})")
            branches[label]()
            self._add(partial(Link, label, rank, patience=settings.patience), f"link({label})", depends_on=[label])
        self._add(partial(View, "engine"), "view(engine)")
        if settings.workers:
            self._employ()
        else:
            self._add(partial(Traffic, content=settings.content), "engine")
        return self._graph

    def _share(self) -> None:
        """A region that worker processes can map, in place of a private one."""
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._add(partial(SharedName, name, self._settings.size, self._settings.workers + 1, 0), "name")
        self._add(SharedFile, "file")
        self._add(partial(SharedMapping, size=self._settings.size), "mapping")

    def _employ(self) -> None:
        """The workers, and an engine whose blocks they compute."""
        workers = self._settings.workers
        for rank in range(1, workers + 1):
            self._add(partial(WorkerProcess, rank, workers + 1), f"worker {rank}")
        self._add(Crew, "crew")
        self._add(Traffic, "engine")

    def _peer(self) -> None:
        self._add(partial(PeerHost, self._settings.peer_cap), FAR["peer"])
        self._add(PeerTier, "peer", stop_timeout=30.0)

    def _nixl(self) -> None:
        self._add(partial(NixlHost, self._settings.blocks, self._settings.block_size), FAR["nixl"])
        self._add(NixlTier, "nixl", stop_timeout=30.0)

    def _redis(self) -> None:
        self._add(partial(RedisServer, 2 * self._settings.peer_cap, self._settings.redis_url), FAR["redis"])
        self._add(RedisTier, "redis", stop_timeout=30.0)

    def _disk(self) -> None:
        self._add(partial(Directory, self._settings.directory), FAR["disk"])
        self._add(partial(DiskTier, cap=self._settings.disk_cap), "disk", stop_timeout=30.0)

    def _add(self, target: type[Any] | partial[Any], name: str, **options: Any) -> None:
        """The resource, or in its place one with the fault that it is to have."""
        fault = self._settings.faults.get(name)
        if fault is not None:
            kind, args, words = _taken_apart(target)
            worse: Callable[..., Any] = broken(kind, fault, for_good=self._settings.for_good)
            target = partial(worse, *args, **words)
            options |= {"kill_timeout": self._settings.kill_limit}
            if fault in (Fault.HANG, Fault.LATE):
                options |= {"stop_timeout": self._settings.hang_limit}
        if name in self._settings.stop_limits:
            options |= {"stop_timeout": self._settings.stop_limits[name]}
        self._graph.add(target, name=name, **options)


def _taken_apart(target: type[Any] | partial[Any]) -> tuple[type[Any], tuple[Any, ...], dict[str, Any]]:
    if isinstance(target, partial):
        return cast(type[Any], target.func), target.args, target.keywords
    return target, (), {}


def assemble(settings: Settings) -> Graph:
    """The graph of one hierarchy, not started."""
    return Assembly(settings).build()


def branch(label: str) -> list[str]:
    """What to tear down so that a tier is gone with everything that is only there for it."""
    return [f"view({label})", FAR[label]]
