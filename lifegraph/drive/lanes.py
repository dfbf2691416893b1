"""Where hooks run that no worker may take: threads of their own, and loops."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context
from typing import TYPE_CHECKING, Any

from ..run import Lives
from . import stacks
from .pool import pool

if TYPE_CHECKING:
    from .loop import Host, PrivateLoop

__all__ = ["Dedicated", "Lanes"]


class Dedicated:
    """One thread for all hooks of one resource."""

    def __init__(self) -> None:
        self._tasks: deque[Callable[[], None]] = deque()
        self._bell = threading.Semaphore(0)
        self._ended = False
        pool.engage(self._live)

    def do(self, task: Callable[[], None]) -> None:
        """Do this after what was asked before."""
        self._tasks.append(task)
        self._bell.release()

    def end(self) -> None:
        """Give the thread back, after what was asked before."""
        self.do(self._end)

    def _live(self) -> None:
        while not self._ended:
            self._bell.acquire()
            self._tasks.popleft()()

    def _end(self) -> None:
        self._ended = True


class Lanes:
    """The dedicated threads and the host tasks of one graph. Used with the key of its run."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self._dedicated: dict[int, Dedicated] = {}
        self._private: PrivateLoop | None = None
        self._lent = False
        self.factory: Callable[[], Any] | None = None  # makes the private loop

    def dedicated(self, member: int) -> Dedicated:
        """The thread of this member."""
        if member not in self._dedicated:
            self._dedicated[member] = Dedicated()
        return self._dedicated[member]

    def host(self, member: int, home: Any, base: Context) -> Host:
        """The host task of this member: on its own loop, else on the graph's, else on ``home``, else on a private one."""
        from .loop import Host  # noqa: PLC0415 - loads asyncio, which only async resources need

        host: Host | None = self._lives.hosts.get(member)
        if host is None:
            loop = self._lives.loops.get(member) or self._lives.home or home
            if loop is None:
                loop = self._own_loop().loop
            self._lives.loops[member] = loop
            name = self._lives.model.names[member]
            host = self._lives.hosts[member] = Host(
                loop,
                base.copy(),
                name,
                self._lives.notes.append,
                ours=self._private is not None and loop is self._private.loop,
            )
        return host

    def _own_loop(self) -> PrivateLoop:
        from .loop import PrivateLoop  # noqa: PLC0415 - loads asyncio, which only async resources need

        if self._private is None:
            self._private = PrivateLoop(self.factory)
        return self._private

    @contextmanager
    def lent_loop(self) -> Generator[Any, None, None]:
        """The private loop; it is not ended while inside."""
        self._lent = True
        try:
            yield self._own_loop().loop
        finally:
            self._lent = False

    def where(self, member: int) -> str | None:
        """Where the host task of this member hangs."""
        host: Host | None = self._lives.hosts.get(member)
        return stacks.of_awaitable(host.doing) if host is not None else None

    def tidy(self) -> None:
        """Give back the threads, tasks and loop of what is no longer alive."""
        alive = self._lives.is_alive
        for member in [member for member in list(self._dedicated) if not alive(member)]:
            if (thread := self._dedicated.pop(member, None)) is not None:  # another run may tidy at this moment
                thread.end()
        for member in [member for member in list(self._lives.hosts) if not alive(member)]:
            if (host := self._lives.hosts.pop(member, None)) is not None:
                host.end()
            self._lives.loops.pop(member, None)
        if self._lent or self._private is None:
            return
        if not any(host.loop is self._private.loop for host in list(self._lives.hosts.values())):
            self._private.end()
            self._private = None
