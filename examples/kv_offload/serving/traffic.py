"""The engine of the demo: serves prompts, and checks every block it is served, byte for byte."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from lifegraph import named, resource

from ..memory.view import View
from ..tiers.tier import Lookup
from .content import Content, SyntheticContent, WrongBytes
from .hierarchy import Hierarchy

__all__ = ["COMPUTED", "REGION", "Traffic", "WrongBytes"]

COMPUTED = "computed"
REGION = "region"


_GLANCE = 0.1
"""seconds between two looks at whether it is time to leave, while nothing else happens"""


class _Leaving(Exception):
    """The engine is stopped while a prompt waits."""


@dataclass(slots=True, eq=False)
class _Order:
    prompts: Iterable[Sequence[bytes]]
    told: Callable[[int], None] | None
    done: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None


@resource
class Traffic:
    """Serves one prompt after the other; `served` counts blocks by where they came from.

    It has a thread of its own, so that an interrupt of the caller never falls between a block and its pin. Thread-safe.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        view: Annotated[View, named("view(engine)")],
        *,
        content: Content | None = None,
        patience: float = 30.0,
    ) -> None:
        self._hierarchy = hierarchy
        self._view = view
        self._patience = patience
        self._content = SyntheticContent() if content is None else content
        self._leave = threading.Event()
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self.served: Counter[str] = Counter()

    def start(self) -> None:
        """Begin to take prompts."""
        self._thread.start()

    def serve(self, prompts: Iterable[Sequence[bytes]], told: Callable[[int], None] | None = None) -> None:
        """Serve them all, or until `stop`; returns then. `told` gets the number served so far, on the engine's thread.

        Raises WrongBytes, and TimeoutError where one prompt takes longer than `patience` seconds.
        """
        order = _Order(prompts, told)
        self._orders.put(order)
        order.done.wait()
        if order.error is not None:
            raise order.error

    @property
    def checked(self) -> str:
        """How what was served has been checked."""
        return self._content.checked()

    def stop(self) -> None:
        """Begin no more prompts, and wait for the one that runs."""
        self._leave.set()
        self._orders.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def drain(self) -> None:
        """Begin no more prompts."""
        self._leave.set()

    def is_stopped(self) -> bool:
        """Its thread does not run, so it touches no block."""
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                self._carry_out(order)
            except Exception as error:  # noqa: BLE001 - it is raised again where the order came from
                order.error = error
            finally:
                order.done.set()

    def _carry_out(self, order: _Order) -> None:
        for number, keys in enumerate(order.prompts, 1):
            if self._leave.is_set():
                return
            try:
                self._serve_one(keys, f"prompt {number}")
            except _Leaving:
                return
            self._hierarchy.poll()
            if order.told is not None:
                order.told(number)

    def _serve_one(self, keys: Sequence[bytes], owner: str) -> None:
        deadline = time.monotonic() + self._patience
        pinned: list[bytes] = []
        try:
            missing, placed = self._fetch(keys, owner, pinned, deadline)
            if missing:
                self._compute(keys, missing, placed, owner, deadline)
            else:
                self._write(keys, placed, missing)
        finally:
            self._hierarchy.release(pinned, owner)

    def _fetch(
        self, keys: Sequence[bytes], owner: str, pinned: list[bytes], deadline: float
    ) -> tuple[list[bytes], dict[bytes, int]]:
        """Look up until every key is either nowhere, or here, pinned and checked; says which and where."""
        waiting, missing, placed = list(keys), [], {}
        sources: dict[bytes, str] = {}
        while waiting:
            since = self._hierarchy.settled
            answers = self._hierarchy.lookup(waiting, owner)
            pinned += [key for key, answer in zip(waiting, answers, strict=True) if answer.state is Lookup.HIT]
            again = []
            for key, answer in zip(waiting, answers, strict=True):
                if answer.state is Lookup.HIT:
                    self._check(key, answer.slot)
                    placed[key] = answer.slot
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
        return missing, placed

    def _compute(
        self, keys: Sequence[bytes], missing: Sequence[bytes], placed: dict[bytes, int], owner: str, deadline: float
    ) -> None:
        while True:
            since = self._hierarchy.settled
            slots = self._hierarchy.reserve(missing, owner)
            if slots is not None:
                break
            self._wait(since, deadline, f"room for {len(missing)} blocks")
        try:
            self._write(keys, placed | dict(zip(missing, slots, strict=True)), missing)
        except BaseException:  # what was reserved is given back whatever ended the writing, and the error goes on
            self._hierarchy.abort(missing, owner)
            raise
        self._hierarchy.commit(missing, owner)
        self.served[COMPUTED] += len(missing)

    def _write(self, keys: Sequence[bytes], placed: dict[bytes, int], missing: Sequence[bytes]) -> None:
        self._content.write([(key, self._view.block(placed[key])) for key in keys], frozenset(missing))

    def _check(self, key: bytes, slot: int) -> None:
        if not self._content.is_right(key, self._view.block(slot)):
            raise WrongBytes(f"slot {slot} does not hold the bytes of {key.hex()[:16]}...")

    def _wait(self, since: int, deadline: float, what: str) -> None:
        while not self._hierarchy.wait(since, min(_GLANCE, self._patience)):
            if self._leave.is_set():
                raise _Leaving
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {self._patience} s for {what}; {self._hierarchy.outstanding()} outstanding")
