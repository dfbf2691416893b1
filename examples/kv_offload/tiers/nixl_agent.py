"""One NIXL agent, from its creation to its destruction.

Deregistering memory proves nothing: it succeeds while a transfer into that memory is in flight, and so may the release
of the transfer. Two things are proof: a transfer's terminal state, and that the agent has been destroyed.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from itertools import count
from typing import Any, Literal

POLL_SECONDS = 0.0002

Extent = tuple[int, int, int]
"""address (or offset in a file), length, and device (or file descriptor)"""


class BrokenOff(ConnectionError):
    """A transfer was left before its terminal state: what it touches may still be written to."""


class NixlAgent:
    """Wraps `nixl_cu12.nixl_agent`. Transfers are made by one thread; `destroy` may come from another, after that."""

    def __init__(self, name: str, backend: str) -> None:
        os.environ.setdefault("UCX_TLS", "tcp")  # what runs anywhere; where there is RDMA, say so in the environment
        os.environ.setdefault("UCX_LOG_LEVEL", "error")
        os.environ.setdefault("NIXL_LOG_LEVEL", "ERROR")
        import nixl_cu12 as nixl  # noqa: PLC0415 - optional, and slow to import

        strict = nixl._api.nixl_thread_sync_t.NIXL_THREAD_SYNC_STRICT  # noqa: SLF001 - it has no other name
        self.name = name
        self._backend = backend
        self._agent: Any = nixl.nixl_agent(name, nixl.nixl_agent_config(backends=[backend], sync_mode=strict))
        self._alive = weakref.ref(self._agent.agent)
        self._registered: list[Any] = []
        self._unfinished: dict[int, Any] = {}
        self._numbers = count()

    def register(self, extent: Extent, kind: str) -> None:
        """Let transfers reach this memory (`DRAM`) or file (`FILE`)."""
        self._registered.append(self._agent.register_memory([(*extent, "")], kind, backends=[self._backend]))

    def metadata(self) -> bytes:
        """What another agent has to know to reach what is registered here."""
        return bytes(self._agent.get_agent_metadata())

    def meet(self, metadata: bytes) -> str:
        """Learn of another agent; says its name."""
        name: str | bytes = self._agent.add_remote_agent(metadata)
        return name.decode() if isinstance(name, bytes) else name

    def post(
        self, way: Literal["WRITE", "READ"], here: Sequence[Extent], there: Sequence[Extent], kind: str, whom: str
    ) -> int:
        """Begin a transfer between `DRAM` here and `kind` there; says its number.

        The handle stays in here: it keeps the agent alive, so nobody else may have it.
        """
        local = self._agent.get_xfer_descs(list(here), "DRAM")
        remote = self._agent.get_xfer_descs(list(there), kind)
        handle = self._agent.initialize_xfer(way, local, remote, whom, b"", backends=[self._backend])
        number = next(self._numbers)
        self._unfinished[number] = handle
        self._agent.transfer(handle)
        return number

    def settle(self, number: int, leaving: threading.Event) -> None:
        """Wait for the terminal state. Raises ConnectionError where it is an error, BrokenOff once `leaving` is set."""
        while (state := self._agent.check_xfer_state(self._unfinished[number])) == "PROC":
            if leaving.wait(POLL_SECONDS):
                raise BrokenOff("a transfer was left before its terminal state")
        self._agent.release_xfer_handle(self._unfinished.pop(number))
        if state != "DONE":
            raise ConnectionError(f"a transfer ended as {state}")

    def let_go(self, number: int) -> bool:
        """Release a transfer and take the registrations back, whatever its state; True where both said yes."""
        try:
            self._agent.release_xfer_handle(self._unfinished[number])
            self.deregister()
        except Exception:  # noqa: BLE001 - the binding raises kinds of its own, and each of them is a no
            return False
        return True

    def deregister(self) -> None:
        """Take all registrations back. It says yes whatever is in flight, so nobody may believe it."""
        for registered in self._registered:
            self._agent.deregister_memory(registered, backends=[self._backend])
        self._registered.clear()

    def destroy(self) -> None:
        """End the agent, and everything that is in flight with it. Raises RuntimeError where something keeps it alive."""
        self._unfinished.clear()
        self._registered.clear()
        self._agent = None
        if self._alive() is not None:
            raise RuntimeError(f"the NIXL agent {self.name} is still alive: its transfers may be, too")

    @property
    def alive(self) -> bool:
        """Whether it exists, and with it whatever it has in flight."""
        return self._alive() is not None

    @property
    def in_flight(self) -> int:
        """Transfers that were begun and have not been seen in a terminal state."""
        return len(self._unfinished)
