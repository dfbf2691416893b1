"""What tiers have in common whose other end may vanish: one thread, and a line that is good, or broken for good."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ..memory.view import View
from .tier import Job, Lookup, TierStats
from .transfers import Transfers


class RemoteTier:
    """Carries jobs out one after the other, and knows which keys the other side has. Thread-safe.

    A subclass says how to `connect`, `store`, `load` and `hang_up`. Once one of the two in the middle raises, the
    line is in a state that nobody knows, and the tier is broken: the running job fails, so do all later ones, and
    nothing is claimed any longer. What had been received by then is never served.
    """

    def __init__(self, label: str, view: View, queue_limit: int = 1024) -> None:
        self._label = label
        self._view = view
        self._transfers = Transfers(label, 1, self.execute, queue_limit)
        self._lock = threading.Lock()
        self._ending = threading.Lock()
        self._kept: set[bytes] = set()
        self._broken = ""

    def connect(self) -> None:
        """Reach the other side. Raises OSError."""
        raise NotImplementedError

    def store(self, job: Job) -> list[bool]:
        """Copy the blocks over; says which of them the other side has now. Raises OSError."""
        raise NotImplementedError

    def load(self, job: Job) -> list[bool]:
        """Fill the blocks; says which of them are whole and right. Raises OSError."""
        raise NotImplementedError

    def break_off(self) -> None:
        """Make a running `store` or `load` end at once, from another thread."""
        raise NotImplementedError

    def hang_up(self) -> None:
        """Leave the other side; nothing runs any longer. May be called again."""
        raise NotImplementedError

    def start(self) -> None:
        """Connect, and begin to take jobs. Raises OSError."""
        self.connect()
        self._transfers.start()

    def label(self) -> str:
        return self._label

    def lookup(self, key: bytes) -> Lookup:
        with self._lock:
            return self._transfers.reach() if key in self._kept else Lookup.MISS

    def submit_store(self, job: Job) -> None:
        self._transfers.submit(job)

    def submit_load(self, job: Job) -> None:
        self._transfers.submit(job)

    def poll(self) -> list[Job]:
        return self._transfers.poll()

    def drain(self) -> None:
        self._transfers.close_door()

    def stop(self) -> None:
        """Cancel what is queued, wait for the transfer that runs, hang up."""
        self._end()

    def kill(self) -> None:
        """Break the running transfer off, which then fails, and join the thread: nothing is in use after that."""
        self.break_off()
        self._end()

    def _end(self) -> None:
        self._transfers.stop()
        with self._ending:  # a kill may come while a stop waits, and then both go on
            self.hang_up()

    def is_stopped(self) -> bool:
        """No thread of it runs any longer, so none of it touches a block."""
        return not self._transfers.alive()

    def stats(self) -> TierStats:
        return self._transfers.stats

    @property
    def broken(self) -> str:
        """Why the tier is of no more use, or the empty string."""
        return self._broken

    def execute(self, job: Job) -> list[bool]:
        """Carry one job out, on the tier's own thread."""
        if self._broken:
            raise ConnectionError(f"no connection: {self._broken}")
        try:
            return self.store(job) if job.kind == "store" else self.load(job)
        except Exception as error:
            with self._lock:
                self._broken = f"{type(error).__name__}: {error}"
                self._kept.clear()
            raise

    def new_ones(self, job: Job) -> tuple[list[bool], list[int]]:
        """For a store: what the other side has already, by position; and the positions of the others."""
        with self._lock:
            known = [key in self._kept for key in job.keys]
        return known, [position for position, here in enumerate(known) if not here]

    def learn(self, keys: Iterable[bytes]) -> None:
        """The other side has these."""
        with self._lock:
            self._kept.update(keys)

    def unlearn(self, job: Job, ok: Iterable[bool]) -> None:
        """For a load: what did not come is not claimed any longer."""
        with self._lock:
            self._kept.difference_update(key for key, good in zip(job.keys, ok, strict=True) if not good)
