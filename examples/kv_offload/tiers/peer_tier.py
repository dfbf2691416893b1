"""The peer tier: blocks kept in the memory of another process, sent from and received into the view itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import crc32c

from lifegraph import named, resource

from ..memory.view import View
from .peer_host import PeerHost
from .peer_wire import Item, Op, WireError, authenticate, receive_frame, receive_into, send_frame
from .tier import Job, Lookup, TierStats
from .transfers import Transfers

CONNECT_SECONDS = 10.0


@resource
class PeerTier:
    """Stores to and loads from a peer over one authenticated connection, with one thread. Thread-safe.

    Once the peer hangs up or breaks the protocol the tier is broken for good: the running job fails, so do all later
    ones, and nothing is claimed any longer. What had been received by then is never served.
    """

    def __init__(self, view: Annotated[View, named("view(peer)")], host: PeerHost, *, queue_limit: int = 1024) -> None:
        self._view = view
        self._host = host
        self._socket: socket.socket | None = None
        self._transfers = Transfers("peer", 1, self.execute, queue_limit)
        self._lock = threading.Lock()
        self._kept: set[bytes] = set()
        self._broken = ""

    def start(self) -> None:
        """Connect and authenticate. Raises OSError (WireError among them)."""
        self._socket = socket.create_connection(self._host.address, timeout=CONNECT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        authenticate(self._socket, self._host.secret, asking=True)
        self._socket.settimeout(None)
        self._transfers.start()

    def label(self) -> str:
        return "peer"

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
        self._transfers.stop()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def kill(self) -> None:
        """Hang up under the running transfer, which then fails, and join the thread: nothing is in use after that."""
        if self._socket is not None:
            with suppress(OSError):  # the peer may have hung up first
                self._socket.shutdown(socket.SHUT_RDWR)
        self.stop()

    def stats(self) -> TierStats:
        return self._transfers.stats

    @property
    def broken(self) -> str:
        """Why the tier is of no more use, or the empty string."""
        return self._broken

    def execute(self, job: Job) -> list[bool]:
        """Carry one job out, on the tier's own thread."""
        if self._broken or self._socket is None:
            raise WireError(f"no connection: {self._broken or 'not started'}")
        try:
            return self._store(self._socket, job) if job.kind == "store" else self._load(self._socket, job)
        except OSError as error:
            with self._lock:
                self._broken = f"{type(error).__name__}: {error}"
                self._kept.clear()
            raise

    def _store(self, sock: socket.socket, job: Job) -> list[bool]:
        with self._lock:
            ok = [key in self._kept for key in job.keys]
        new = [index for index, known in enumerate(ok) if not known]
        if not new:
            return ok
        blocks = [self._view.block(job.slots[index]) for index in new]
        keys = [job.keys[index] for index in new]
        items = [Item(key, True, len(block), crc32c.crc32c(block)) for key, block in zip(keys, blocks, strict=True)]
        send_frame(sock, Op.STORE, items, blocks)
        answers = self._answers(sock, Op.STORED, keys)
        for index, answer in zip(new, answers, strict=True):
            ok[index] = answer.good
        with self._lock:
            self._kept.update(answer.key for answer in answers if answer.good)
        job.nbytes = sum(len(block) for block, answer in zip(blocks, answers, strict=True) if answer.good)
        return ok

    def _load(self, sock: socket.socket, job: Job) -> list[bool]:
        send_frame(sock, Op.LOAD, [Item(key) for key in job.keys])
        ok = []
        for slot, answer in zip(job.slots, self._answers(sock, Op.LOADED, job.keys), strict=True):
            block = self._view.block(slot)
            if answer.length not in (0, len(block)):
                raise WireError(f"a block of {answer.length} bytes for a slot of {len(block)}")
            whole = answer.good and answer.length == len(block)
            if whole:
                receive_into(sock, block)
                whole = crc32c.crc32c(block) == answer.crc
                self._transfers.count(corrupt=not whole)
            ok.append(whole)
        with self._lock:
            self._kept.difference_update(key for key, good in zip(job.keys, ok, strict=True) if not good)
        job.nbytes = sum(ok) * self._view.block_size
        return ok

    def _answers(self, sock: socket.socket, op: Op, keys: Sequence[bytes]) -> list[Item]:
        _, answers = receive_frame(sock, (op,))
        if [answer.key for answer in answers] != list(keys):
            raise WireError("the answer speaks of other keys")
        return answers
