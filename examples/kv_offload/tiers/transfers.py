"""A tier's own I/O threads, with the queue before them.

Not an executor: Python joins an executor's threads at exit, so one stuck transfer would keep the process from ending.
These are daemon threads, and only `stop` waits for them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from .tier import Job, Lookup, Outcome, TierStats


class Transfers:
    """Runs jobs on `threads` threads, oldest first. Thread-safe.

    `execute` carries one job out and returns, for each block, whether it was done; it sets `nbytes` to what it moved.
    Where it raises, the job is failed, and the thread goes on.
    """

    def __init__(self, name: str, threads: int, execute: Callable[[Job], list[bool]], queue_limit: int = 1024) -> None:
        self._name = name
        self._execute = execute
        self._queue_limit = queue_limit
        self._wake = threading.Condition()
        self._queue: deque[Job] = deque()
        self._finished: deque[Job] = deque()
        self._count = threads
        self._threads: list[threading.Thread] = []
        self._door_open = False
        self._leaving = False
        self.stats = TierStats()

    def start(self) -> None:
        """Open the door."""
        self._door_open, self._leaving = True, False
        for number in range(self._count):
            thread = threading.Thread(target=self._serve, name=f"{self._name}-io-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def submit(self, job: Job) -> None:
        """Queue a job, or settle it as refused."""
        with self._wake:
            taken = self._door_open and len(self._queue) < self._queue_limit
            if taken:
                self._queue.append(job)
                self._wake.notify()
        if not taken:
            self._settle(job, Outcome.REFUSED, error=f"{self._name} takes no more jobs")

    def poll(self) -> list[Job]:
        """What was settled since the last poll, oldest first."""
        finished = []
        with suppress(IndexError):
            while True:
                finished.append(self._finished.popleft())
        return finished

    def close_door(self) -> None:
        """Refuse new jobs from now on."""
        with self._wake:
            self._door_open = False

    def stop(self) -> None:
        """Cancel the queued jobs, then wait for the threads, without a limit. May be called again."""
        with self._wake:
            self._door_open, self._leaving = False, True
            queued = list(self._queue)
            self._queue.clear()
            self._wake.notify_all()
        for job in queued:
            self._settle(job, Outcome.CANCELLED, error=f"{self._name} stopped before it began")
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def reach(self) -> Lookup:
        """What may be said of a block that is here: HIT, PENDING while the queue is full, MISS once the door is closed."""
        if not self._door_open:
            return Lookup.MISS
        return Lookup.HIT if len(self._queue) < self._queue_limit else Lookup.PENDING

    def count(self, *, corrupt: int = 0, evicted: int = 0) -> None:
        """Add to the counts that no job carries."""
        with self._wake:
            self.stats.corrupt += corrupt
            self.stats.evicted += evicted

    def alive(self) -> int:
        """Threads that still run."""
        return sum(thread.is_alive() for thread in self._threads)

    def _serve(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._leaving:
                    self._wake.wait()
                if not self._queue:
                    return
                job = self._queue.popleft()
            job.began = True
            began = time.perf_counter()
            try:
                ok = self._execute(job)
            except Exception as error:  # noqa: BLE001 - whatever it was, the job failed and the thread goes on
                self._settle(job, Outcome.FAILED, error=f"{type(error).__name__}: {error}")
            else:
                job.seconds = time.perf_counter() - began
                self._settle(job, Outcome.DONE, ok)

    def _settle(self, job: Job, outcome: Outcome, ok: list[bool] | None = None, error: str = "") -> None:
        job.settle(outcome, ok, error)
        with self._wake:
            self.stats.add(job)
        self._finished.append(job)
