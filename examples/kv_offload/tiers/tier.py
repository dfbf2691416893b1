"""What a tier is, and the jobs it is given."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol, runtime_checkable

KEY_BYTES = 32


class Lookup(StrEnum):
    """The answer for one key."""

    HIT = "hit"
    """here, and usable now"""
    PENDING = "pending"
    """on its way here: ask again"""
    RETRY = "retry"
    """somebody has it, but there is no room to bring it here yet: ask again"""
    MISS = "miss"
    """nobody has it"""


class Outcome(StrEnum):
    """How a job ended."""

    DONE = "done"
    """carried out; `ok` says for which blocks"""
    FAILED = "failed"
    CANCELLED = "cancelled"
    """was still queued when its tier stopped"""
    REFUSED = "refused"
    """was handed in after the door closed, or to a full queue"""


class Job:
    """One batch of blocks on its way into or out of a tier.

    The tier settles it exactly once, from any thread, when it no longer touches the blocks; `on_settled` is then called
    on that thread, and must be brief and not raise.
    """

    __slots__ = ("_lock", "began", "error", "keys", "kind", "nbytes", "ok", "on_settled", "outcome", "seconds", "slots")

    def __init__(
        self,
        kind: Literal["store", "load"],
        keys: Sequence[bytes],
        slots: Sequence[int],
        on_settled: Callable[[Job], None],
    ) -> None:
        self.kind = kind
        self.keys = tuple(keys)
        self.slots = tuple(slots)
        self.on_settled = on_settled
        self.began = False
        self.outcome: Outcome | None = None
        self.ok: tuple[bool, ...] = (False,) * len(self.keys)
        self.nbytes = 0
        self.seconds = 0.0
        self.error = ""
        self._lock = threading.Lock()

    def settle(self, outcome: Outcome, ok: Sequence[bool] | None = None, error: str = "") -> None:
        """Say how it ended. Raises RuntimeError the second time."""
        with self._lock:
            if self.outcome is not None:
                raise RuntimeError(f"a {self.kind} of {len(self.keys)} blocks was settled twice")
            if ok is not None:
                self.ok = tuple(ok)
            self.error = error
            self.outcome = outcome
        self.on_settled(self)


@dataclass(slots=True)
class TierStats:
    """Counts since start. Blocks and bytes are those really moved; seconds are spent in the transfers themselves."""

    stored: int = 0
    stored_bytes: int = 0
    store_seconds: float = 0.0
    loaded: int = 0
    loaded_bytes: int = 0
    load_seconds: float = 0.0
    missed: int = 0
    corrupt: int = 0
    evicted: int = 0
    failed: int = 0
    cancelled: int = 0
    refused: int = 0

    def add(self, job: Job) -> None:
        """Count a settled job."""
        done = sum(job.ok)
        match job.outcome:
            case Outcome.CANCELLED:
                self.cancelled += len(job.keys)
            case Outcome.REFUSED:
                self.refused += len(job.keys)
            case Outcome.FAILED:
                self.failed += len(job.keys)
            case _ if job.kind == "store":
                self.stored += done
                self.stored_bytes += job.nbytes
                self.store_seconds += job.seconds
                self.failed += len(job.keys) - done
            case _:
                self.loaded += done
                self.loaded_bytes += job.nbytes
                self.load_seconds += job.seconds
                self.missed += len(job.keys) - done


@runtime_checkable
class Tier(Protocol):
    """A place behind the region where blocks can be kept. Every method is thread-safe; none of the first six waits."""

    def label(self) -> str:
        """Its name among the tiers; also the owner of the pins taken for it."""

    def lookup(self, key: bytes) -> Lookup:
        """HIT when a load would be taken now, PENDING while it is being stored or the queue is full, else MISS."""

    def submit_store(self, job: Job) -> None:
        """Queue copies of ready blocks. A job that cannot be taken is settled as refused at once."""

    def submit_load(self, job: Job) -> None:
        """Queue loads into blocks being written. A key whose load fails is not claimed by `lookup` any longer."""

    def poll(self) -> list[Job]:
        """The jobs settled since the last poll."""

    def drain(self) -> None:
        """Take no more jobs; those queued still go on."""

    def stop(self) -> None:
        """Cancel what is queued, wait for what runs, and let go of the blocks. Waits as long as that takes."""

    def is_stopped(self) -> bool:
        """Whether none of its threads, agents or peers can touch a block any longer."""

    def stats(self) -> TierStats:
        """Counts since start."""
