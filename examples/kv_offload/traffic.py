"""The engine of the demo: serves prompts, and checks every block it is served, byte for byte."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from .hierarchy import Hierarchy
from .prompts import content
from .tier import Lookup
from .view import View

COMPUTED = "computed"
REGION = "region"


class WrongBytes(RuntimeError):
    """A block was served whose bytes are not those of its key."""


class Traffic:
    """Serves one prompt after the other; `served` counts blocks by where they came from.

    `serve` runs on the caller's thread; `stop` may be called from any other one, and waits for it to return.
    """

    def __init__(self, hierarchy: Hierarchy, view: View, *, patience: float = 30.0) -> None:
        self._hierarchy = hierarchy
        self._view = view
        self._patience = patience
        self._leave = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self.served: Counter[str] = Counter()

    def serve(self, prompts: Iterable[Sequence[bytes]], told: Callable[[int], None] | None = None) -> None:
        """Serve them all, or until `stop`. Calls `told` with the number served so far.

        Raises WrongBytes, and TimeoutError where one prompt takes longer than `patience` seconds.
        """
        self._idle.clear()
        try:
            for number, keys in enumerate(prompts, 1):
                if self._leave.is_set():
                    return
                self._serve_one(keys, f"prompt {number}")
                if told is not None:
                    told(number)
        finally:
            self._idle.set()

    def stop(self) -> None:
        """Begin no more prompts, and wait for the one that runs."""
        self._leave.set()
        self._idle.wait()

    def _serve_one(self, keys: Sequence[bytes], owner: str) -> None:
        deadline = time.monotonic() + self._patience
        pinned: list[bytes] = []
        try:
            missing = self._fetch(keys, owner, pinned, deadline)
            if missing:
                self._compute(missing, owner, deadline)
        finally:
            self._hierarchy.release(pinned, owner)

    def _fetch(self, keys: Sequence[bytes], owner: str, pinned: list[bytes], deadline: float) -> list[bytes]:
        """Look up until every key is either here, pinned and checked, or nowhere; returns the latter."""
        waiting, missing = list(keys), []
        sources: dict[bytes, str] = {}
        while waiting:
            since = self._hierarchy.settled
            answers = self._hierarchy.lookup(waiting, owner)
            pinned += [key for key, answer in zip(waiting, answers, strict=True) if answer.state is Lookup.HIT]
            again = []
            for key, answer in zip(waiting, answers, strict=True):
                if answer.state is Lookup.HIT:
                    self._check(key, answer.slot)
                    self.served[sources.get(key, REGION)] += 1
                elif answer.state is Lookup.MISS:
                    missing.append(key)
                else:
                    again.append(key)
                    if answer.source:
                        sources[key] = answer.source
            waiting = again
            if waiting:
                self._wait(since, deadline, f"{len(waiting)} blocks on their way")
        return missing

    def _compute(self, keys: Sequence[bytes], owner: str, deadline: float) -> None:
        while True:
            since = self._hierarchy.settled
            slots = self._hierarchy.reserve(keys, owner)
            if slots is not None:
                break
            self._wait(since, deadline, f"room for {len(keys)} blocks")
        try:
            for key, slot in zip(keys, slots, strict=True):
                self._view.block(slot)[:] = content(key, self._view.block_size)
        except BaseException:  # what was reserved is given back whatever ended the writing, and the error goes on
            self._hierarchy.abort(keys, owner)
            raise
        self._hierarchy.commit(keys, owner)
        self.served[COMPUTED] += len(keys)

    def _check(self, key: bytes, slot: int) -> None:
        if bytes(self._view.block(slot)) != content(key, self._view.block_size):
            raise WrongBytes(f"slot {slot} does not hold the bytes of {key.hex()[:16]}...")

    def _wait(self, since: int, deadline: float, what: str) -> None:
        left = deadline - time.monotonic()
        if left <= 0 or not self._hierarchy.wait(since, left):
            raise TimeoutError(f"waited {self._patience} s for {what}; {self._hierarchy.outstanding()} outstanding")
