"""The hierarchy: what is stored goes to every tier, what is asked for is brought back from the first that has it.

It owns no memory and no thread, only the bookkeeping between the pool and the tiers.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from lifegraph import resource

from ..memory.pool import BlockPool, BlockState
from ..tiers.tier import Job, Lookup, Outcome, Tier


class Closed(RuntimeError):
    """The hierarchy takes no more work."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a look-up found for one key."""

    state: Lookup
    slot: int = -1
    """where it is, for a HIT"""
    source: str = ""
    """the tier that it comes from, when it is on its way"""


@dataclass(frozen=True, slots=True, order=True)
class _Attached:
    rank: int
    label: str
    tier: Tier = field(compare=False)


@resource
class Hierarchy:
    """Stores with one pin per tier; looks up; promotes in batches of at most `batch` blocks, in part if need be.

    Tiers come and go under traffic, see `link.py`. Thread-safe. No method waits but `wait`, `flush`, `reset`, `detach`
    and `stop`, which do so for the seconds they are told.
    """

    def __init__(self, pool: BlockPool, *, batch: int = 32, flush_limit: float = 5.0) -> None:
        self._pool = pool
        self._tiers: tuple[_Attached, ...] = ()
        self._batch = batch
        self._flush_limit = flush_limit
        self._order = threading.Lock()
        self._changed = threading.Condition()
        self._coming: dict[bytes, str] = {}
        self._outstanding: Counter[str] = Counter()
        self._open = True
        self._held = False
        self.settled = 0
        """jobs settled so far: take it before a look-up, and hand it to `wait`"""
        self.troubles: Counter[str] = Counter()
        """what went wrong, and how many times"""

    def attach(self, tier: Tier, rank: int) -> None:
        """Store to it from now on, and ask it after those of a lower rank. Raises ValueError where it is there already."""
        with self._order:
            self._check_open()
            label = tier.label()
            if label in self.attached():
                raise ValueError(f"a tier {label!r} is attached already")
            self._tiers = tuple(sorted([*self._tiers, _Attached(rank, label, tier)]))

    def detach(self, label: str, timeout: float) -> int:
        """Give it no more jobs, and wait for those it has; says how many are left after `timeout` seconds.

        Their blocks stay pinned in its name, or being written, until it settles them: nothing else gets their slots.
        """
        with self._order:
            self._tiers = tuple(each for each in self._tiers if each.label != label)
        with self._changed:
            self._changed.wait_for(lambda: not self._outstanding[label], timeout)
            return self._outstanding[label]

    def attached(self) -> list[str]:
        """The tiers that are there, in the order in which they are asked."""
        return [each.label for each in self._tiers]

    def reset(self, timeout: float) -> int:
        """Forget every block of the region that nobody uses; says how many are left because somebody does.

        While it waits for the promotions under way, none begins. Tiers keep what they have. Raises TimeoutError, with
        nothing forgotten, where promotions are still under way after `timeout` seconds.
        """
        with self._order:
            self._check_open()
            self._held = True
        try:
            with self._changed:
                if not self._changed.wait_for(lambda: not self._coming, timeout):
                    raise TimeoutError(f"{len(self._coming)} blocks are still on their way after {timeout} s")
            with self._order:
                return self._pool.reset()
        finally:
            self._held = False

    def lookup(self, keys: Sequence[bytes], owner: str) -> list[Answer]:
        """One answer for each key. Each HIT is pinned for `owner` until `release`; promotions begin for what a tier has."""
        with self._order:
            self._check_open()
            slots = self._pool.pin_each(keys, owner)
            answers = [Answer(Lookup.MISS) if slot is None else Answer(Lookup.HIT, slot) for slot in slots]
            wanted: dict[_Attached, list[int]] = {}
            for index, key in enumerate(keys):
                if slots[index] is None:
                    answers[index] = self._elsewhere(index, key, wanted)
            for attached, indices in wanted.items():
                for promoted in self._promote(attached, [keys[index] for index in indices]):
                    answers[indices[promoted]] = Answer(Lookup.PENDING, source=attached.label)
        return answers

    def release(self, keys: Sequence[bytes], owner: str) -> None:
        """Give the pins of look-ups back."""
        self._pool.unpin(keys, owner)

    def reserve(self, keys: Sequence[bytes], writer: str) -> list[int] | None:
        """Slots to compute these missing blocks into, or None while there is no room."""
        with self._order:
            self._check_open()
            return self._pool.reserve(keys, writer)

    def commit(self, keys: Sequence[bytes], writer: str) -> None:
        """The blocks are computed: they can be served, and go to every tier."""
        with self._order:
            self._check_open()
            slots = self._pool.commit(keys, writer, pin_for=self.attached())
            for each in self._tiers:
                for begin in range(0, len(keys), self._batch):
                    batch = slice(begin, begin + self._batch)
                    job = Job("store", keys[batch], slots[batch], partial(self._stored, each.label))
                    self._hand_out(each.label)
                    each.tier.submit_store(job)

    def abort(self, keys: Sequence[bytes], writer: str) -> None:
        """The blocks were not computed after all."""
        self._pool.abort(keys, writer)

    def wait(self, since: int, timeout: float) -> bool:
        """Wait until more jobs than `since` are settled, or for `timeout` seconds; True where some were."""
        with self._changed:
            return self._changed.wait_for(lambda: self.settled > since, timeout)

    def flush(self, timeout: float) -> bool:
        """Wait until no tier has anything left to do; False where it still has after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._outstanding.total(), timeout)

    def outstanding(self) -> dict[str, int]:
        """Jobs not settled yet, by tier."""
        with self._changed:
            return {label: count for label, count in self._outstanding.items() if count}

    def poll(self) -> list[tuple[str, Job]]:
        """The jobs settled since the last poll, with their tier's name."""
        return [(each.label, job) for each in self._tiers for job in each.tier.poll()]

    def stop(self) -> None:
        """Take no more work and give the tiers time to finish theirs.

        A tier that is late does not keep the hierarchy from stopping: its blocks stay pinned in its name, and what it
        does with them is for its own stop to prove.
        """
        with self._order:
            self._open = False
        if not self.flush(self._flush_limit):
            left = ", ".join(f"{count} to {label}" for label, count in self.outstanding().items())
            self.troubles[f"jobs left after {self._flush_limit} s: {left}"] += 1

    def is_stopped(self) -> bool:
        """It takes no work any longer. What tiers still do is not its own."""
        return not self._open

    def _elsewhere(self, index: int, key: bytes, wanted: dict[_Attached, list[int]]) -> Answer:
        if self._pool.state(key) is not BlockState.FREE:
            source = self._coming.get(key)
            return Answer(Lookup.RETRY) if source is None else Answer(Lookup.PENDING, source=source)
        pending = False
        for each in self._tiers:
            found = each.tier.lookup(key)
            if found is Lookup.HIT:
                if not self._held:
                    wanted.setdefault(each, []).append(index)
                return Answer(Lookup.RETRY, source=each.label)
            pending = pending or found is Lookup.PENDING
        return Answer(Lookup.RETRY if pending else Lookup.MISS)

    def _promote(self, attached: _Attached, keys: list[bytes]) -> Iterator[int]:
        """Begin to load as many of the keys as there is room for; yields the indices of those."""
        label = attached.label
        writer = f"promotion from {label}"
        taken = keys[: self._pool.room()]
        for begin in range(0, len(taken), self._batch):
            batch = taken[begin : begin + self._batch]
            slots = self._pool.reserve(batch, writer)
            if slots is None:
                return
            self._coming.update(dict.fromkeys(batch, label))
            self._hand_out(label)
            attached.tier.submit_load(Job("load", batch, slots, partial(self._loaded, label, writer)))
            yield from range(begin, begin + len(batch))

    def _stored(self, label: str, job: Job) -> None:
        self._pool.unpin(job.keys, label)
        self._take_back(label, job)

    def _loaded(self, label: str, writer: str, job: Job) -> None:
        self._pool.commit([key for key, good in zip(job.keys, job.ok, strict=True) if good], writer)
        self._pool.abort([key for key, good in zip(job.keys, job.ok, strict=True) if not good], writer)
        with self._changed:
            for key in job.keys:
                self._coming.pop(key, None)
        self._take_back(label, job)

    def _hand_out(self, label: str) -> None:
        with self._changed:
            self._outstanding[label] += 1

    def _take_back(self, label: str, job: Job) -> None:
        with self._changed:
            self._outstanding[label] -= 1
            self.settled += 1
            if job.outcome is Outcome.FAILED:
                self.troubles[f"{label}: a {job.kind} failed: {job.error}"] += 1
            self._changed.notify_all()

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("the hierarchy has been stopped")
