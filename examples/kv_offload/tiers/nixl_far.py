"""The other side of a NIXL tier: the memory of another process, or a file."""

from __future__ import annotations

import base64
import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass

from lifegraph import resource

from .child_process import ChildProcess
from .directory import Directory
from .nixl_agent import Extent, NixlAgent


@dataclass(frozen=True, slots=True)
class Far:
    """Where an agent's one-sided transfers go to and come from."""

    agent: str
    kind: str
    """`DRAM` or `FILE`"""
    base: int
    device: int

    def slot(self, number: int, block_size: int) -> Extent:
        """The place of one block."""
        return (self.base + number * block_size, block_size, self.device)


class FarMemory(ABC):
    """Room for `slots` blocks of `block_size` bytes, reached through one backend of NIXL."""

    backend: str
    slots: int
    block_size: int

    @abstractmethod
    def reach(self, agent: NixlAgent) -> Far:
        """Let this agent know it."""


@resource
class NixlHost(ChildProcess, FarMemory):
    """Another process with registered memory, reached over UCX. It takes no part in a transfer."""

    backend = "UCX"

    def __init__(self, slots: int, block_size: int, *, limit: float = 20.0) -> None:
        super().__init__(limit=limit)
        self.slots, self.block_size = slots, block_size
        self._base = 0
        self._metadata = b""

    def start(self) -> None:
        """Spawn it and wait until its memory is registered. Raises RuntimeError where that takes longer than the limit."""
        line = self.spawn(
            f"{__package__}.nixl_process", ["--size", str(self.slots * self.block_size)], b"", {"UCX_TLS": "tcp"}
        )
        said = json.loads(line)
        self._base, self._metadata = said["base"], base64.b64decode(said["metadata"])

    def reach(self, agent: NixlAgent) -> Far:
        return Far(agent.meet(self._metadata), "DRAM", self._base, 0)


@resource
class NixlSpool(FarMemory):
    """A nameless file, written and read by NIXL's POSIX backend. Nothing of it survives this process."""

    backend = "POSIX"

    def __init__(self, directory: Directory, slots: int, block_size: int) -> None:
        self._directory = directory
        self.slots, self.block_size = slots, block_size
        self._descriptor = -1

    def start(self) -> None:
        """Make the file. Raises OSError."""
        self._descriptor = os.open(self._directory.path, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._descriptor, self.slots * self.block_size)

    def stop(self) -> None:
        """Close it; its blocks go with it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def reach(self, agent: NixlAgent) -> Far:
        agent.register((0, self.slots * self.block_size, self._descriptor), "FILE")
        return Far(agent.name, "FILE", 0, self._descriptor)
