"""Where hooks run that no worker may take: threads of their own, and loops."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any

from ..run import Lives
from . import stacks
from .job import Job
from .pool import pool

if TYPE_CHECKING:
    from .host import Bell, Host, Porter
    from .loop import PrivateLoop

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
    """The dedicated threads and the host tasks of one graph. Used with the keys of its runs, for their members."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self._dedicated: dict[int, Dedicated] = {}
        self._private: PrivateLoop | None = None
        self._porters: dict[Any, Porter] = {}
        self._bells: dict[Any, Bell] = {}
        self._carried: dict[int, Job] = {}  # the last thing done on a loop for each member that is alive
        self._apart: dict[Job, Host] = {}  # what is done on loops beside the host tasks
        self._choosing = threading.Lock()  # a loop is chosen, or ended because nobody uses it
        self._lent = False
        self.factory: Callable[[], Any] | None = None  # makes the private loop

    def dedicated(self, member: int) -> Dedicated:
        """The thread of this member."""
        if member not in self._dedicated:
            self._dedicated[member] = Dedicated()
        return self._dedicated[member]

    def on_loop(self, member: int, job: Job, home: Any, base: Context, *, alone: bool) -> None:
        """Have this done where this member lives: on its own loop, else on the graph's, else on ``home``, else on a private one.

        ``alone``: there is nothing else of it that a task would have to keep.
        """
        name = self._lives.model.names[member]
        host: Host | None = self._lives.hosts.get(member)
        if host is not None:
            self._carried[member] = job
            host.do(job, name)
            return
        with self._choosing:
            loop = self._loop_of(member, home)
            self._carried[member] = job
        if not alone:
            self._host(member, loop, base.copy()).do(job, name)
            return
        context = job.context = base.copy()
        job.host = partial(self._host, member, loop, context)
        self._porter(loop, base).do(job, name)

    def beside(self, member: int, job: Job, home: Any, base: Context) -> None:
        """Have this done on the same loop, in a task of its own: it waits for nothing that hangs in the host task."""
        from .host import Host  # noqa: PLC0415 - loads asyncio, which only async resources need

        with self._choosing:
            loop = self._loop_of(member, home)
            self._apart = {job: host for job, host in self._apart.items() if not job.heard}
            name, note = self._lives.model.names[member], self._lives.notes.append
            host = self._apart[job] = Host(self._bell(loop), base.copy(), name, note, ours=self._is_own(loop))
        host.do(job, name)
        host.end()

    def _loop_of(self, member: int, home: Any) -> Any:
        loop = self._lives.loops.get(member) or self._lives.home or home or self._own_loop().loop
        self._lives.loops[member] = loop
        return loop

    def _host(self, member: int, loop: Any, context: Context) -> Host:
        from .host import Host  # noqa: PLC0415 - loads asyncio, which only async resources need

        name, note = self._lives.model.names[member], self._lives.notes.append
        host = self._lives.hosts[member] = Host(self._bell(loop), context, name, note, ours=self._is_own(loop))
        return host

    def _porter(self, loop: Any, base: Context) -> Porter:
        porter = self._porters.get(loop)
        if porter is None:
            from .host import Porter  # noqa: PLC0415 - the same

            porter = self._porters[loop] = Porter(self._bell(loop), base.copy(), ours=self._is_own(loop))
        return porter

    def _bell(self, loop: Any) -> Bell:
        bell = self._bells.get(loop)
        if bell is None:
            from .host import Bell  # noqa: PLC0415 - the same

            bell = self._bells[loop] = Bell(loop)
        return bell

    def _is_own(self, loop: Any) -> bool:
        return self._private is not None and loop is self._private.loop

    def nudge(self) -> None:
        """An interrupt may have struck a loop just when it was told something."""
        for tasked in [*self._lives.hosts.values(), *self._porters.values()]:
            tasked.nudge()

    def _own_loop(self) -> PrivateLoop:
        from .loop import PrivateLoop  # noqa: PLC0415 - loads asyncio, which only async resources need

        if self._private is None:
            self._private = PrivateLoop(self.factory)
        return self._private

    @contextmanager
    def lent_loop(self) -> Generator[Any, None, None]:
        """The private loop; it is not ended while inside."""
        with self._choosing:
            self._lent = True
            loop = self._own_loop().loop
        try:
            yield loop
        finally:
            self._lent = False

    def where(self, member: int) -> str | None:
        """Where what runs on a loop for this member hangs."""
        job = self._carried.get(member)
        return stacks.of_awaitable(job.doing) if job is not None else None

    def tidy(self, members: Iterable[int]) -> None:
        """Give back the threads and tasks of those of these ``members`` that are no longer alive, and a loop nobody uses."""
        alive = self._lives.is_alive
        for member in [member for member in members if not alive(member)]:
            if (thread := self._dedicated.pop(member, None)) is not None:
                thread.end()
            if (host := self._lives.hosts.pop(member, None)) is not None:
                host.end()
            self._carried.pop(member, None)
            self._lives.loops.pop(member, None)
        with self._choosing:
            self._apart = {job: host for job, host in self._apart.items() if not job.heard}
            if not self._carried and not self._apart:  # no loop is kept for nothing
                self._porters.clear()
                self._bells.clear()
            if self._lent or self._private is None or any(self._is_own(host.loop) for host in self._apart.values()):
                return
            if not any(self._is_own(self._lives.loops.get(member)) for member in list(self._carried)):
                self._porters.pop(self._private.loop, None)
                self._bells.pop(self._private.loop, None)
                self._private.end()
                self._private = None
