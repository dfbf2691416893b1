"""The peer tier: blocks kept in the memory of another process, sent from and received into the view itself."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import crc32c

from lifegraph import named, resource

from ..memory.view import View
from .peer_host import PeerHost
from .peer_wire import Item, Op, WireError, authenticate, receive_frame, receive_into, send_frame
from .remote import RemoteTier
from .tier import Job

CONNECT_SECONDS = 10.0


@resource
class PeerTier(RemoteTier):
    """Stores to and loads from a peer over one authenticated connection, with one thread. Thread-safe."""

    def __init__(self, view: Annotated[View, named("view(peer)")], host: PeerHost, *, queue_limit: int = 1024) -> None:
        super().__init__("peer", view, queue_limit)
        self._host = host
        self._socket: socket.socket | None = None

    def connect(self) -> None:
        """Connect and authenticate. Raises OSError (WireError among them)."""
        self._socket = socket.create_connection(self._host.address, timeout=CONNECT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        authenticate(self._socket, self._host.secret, asking=True)
        self._socket.settimeout(None)

    def break_off(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # the peer may have hung up first
                self._socket.shutdown(socket.SHUT_RDWR)

    def hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def store(self, job: Job) -> list[bool]:
        sock = self._line()
        ok, new = self.new_ones(job)
        if not new:
            return ok
        blocks = [self._view.block(job.slots[index]) for index in new]
        keys = [job.keys[index] for index in new]
        items = [Item(key, True, len(block), crc32c.crc32c(block)) for key, block in zip(keys, blocks, strict=True)]
        send_frame(sock, Op.STORE, items, blocks)
        answers = _answers(sock, Op.STORED, keys)
        for index, answer in zip(new, answers, strict=True):
            ok[index] = answer.good
        self.learn(answer.key for answer in answers if answer.good)
        job.nbytes = sum(len(block) for block, answer in zip(blocks, answers, strict=True) if answer.good)
        return ok

    def load(self, job: Job) -> list[bool]:
        sock = self._line()
        send_frame(sock, Op.LOAD, [Item(key) for key in job.keys])
        ok = []
        for slot, answer in zip(job.slots, _answers(sock, Op.LOADED, job.keys), strict=True):
            block = self._view.block(slot)
            if answer.length not in (0, len(block)):
                raise WireError(f"a block of {answer.length} bytes for a slot of {len(block)}")
            whole = answer.good and answer.length == len(block)
            if whole:
                receive_into(sock, block)
                whole = crc32c.crc32c(block) == answer.crc
                self._transfers.count(corrupt=not whole)
            ok.append(whole)
        self.unlearn(job, ok)
        job.nbytes = sum(ok) * self._view.block_size
        return ok

    def _line(self) -> socket.socket:
        if self._socket is None:
            raise WireError("no connection: not started")
        return self._socket


def _answers(sock: socket.socket, op: Op, keys: Sequence[bytes]) -> list[Item]:
    _, answers = receive_frame(sock, (op,))
    if [answer.key for answer in answers] != list(keys):
        raise WireError("the answer speaks of other keys")
    return answers
