"""The redis tier: blocks in a store that several hosts share.

One hash for each block, `kv:` and its key in hex, with the payload and its crc32c.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Annotated, Any

import crc32c

from lifegraph import named, resource

from ..memory.libc import copy
from ..memory.view import View
from .redis_server import RedisServer
from .remote import RemoteTier
from .tier import KEY_BYTES, Job, Lookup

PREFIX = b"kv:"
REFRESH_SECONDS = 2.0
_SCAN_COUNT = 1000


@resource
class RedisTier(RemoteTier):
    """Stores to and loads from a redis-server over one connection, with one thread. Thread-safe.

    What others stored there is found at the next refresh, at most `refresh` seconds after it is asked for: a look-up
    never waits for the network.
    """

    def __init__(
        self,
        view: Annotated[View, named("view(redis)")],
        server: RedisServer,
        *,
        queue_limit: int = 1024,
        refresh: float = REFRESH_SECONDS,
    ) -> None:
        super().__init__("redis", view, queue_limit)
        self._server = server
        self._refresh = refresh
        self._refreshed = 0.0
        self._client: Any = None

    def connect(self) -> None:
        """Connect, and learn which blocks are there. Raises OSError."""
        self._client = self._server.client()
        try:
            self._client.ping()
        except self._errors() as error:
            raise ConnectionError(f"the redis-server does not answer: {error}") from error
        self._learn_keys()

    def lookup(self, key: bytes) -> Lookup:
        found = super().lookup(key)
        if found is Lookup.MISS and not self._broken and time.monotonic() - self._refreshed > self._refresh:
            self._refreshed = time.monotonic()
            self._transfers.submit(Job("load", (), (), lambda _: None))  # a load of nothing is a refresh
        return found

    def break_off(self) -> None:
        if self._client is not None:
            self._client.connection_pool.disconnect(inuse_connections=True)

    def hang_up(self) -> None:
        if self._client is not None:
            with suppress(OSError, *self._errors()):  # the server may have hung up first
                self._client.close()
            self._client = None

    def store(self, job: Job) -> list[bool]:
        ok, new = self.new_ones(job)
        if not new:
            return ok
        pipeline = self._client.pipeline(transaction=False)
        for position in new:
            block = self._view.block(job.slots[position])
            crc = crc32c.crc32c(block).to_bytes(4, "big")
            pipeline.hset(_name(job.keys[position]), mapping={b"crc": crc, b"block": block})
        for position, answer in zip(new, self._answers(pipeline), strict=True):
            ok[position] = not isinstance(answer, Exception)
        self.learn(job.keys[position] for position in new if ok[position])
        job.nbytes = sum(ok[position] for position in new) * self._view.block_size
        return ok

    def load(self, job: Job) -> list[bool]:
        if not job.keys:
            self._learn_keys()
            return []
        pipeline = self._client.pipeline(transaction=False)
        for key in job.keys:
            pipeline.hmget(_name(key), (b"crc", b"block"))
        answers = self._answers(pipeline)
        ok = [self._fill(slot, answer) for slot, answer in zip(job.slots, answers, strict=True)]
        self.unlearn(job, ok)
        job.nbytes = sum(ok) * self._view.block_size
        return ok

    def _fill(self, slot: int, answer: Any) -> bool:
        if isinstance(answer, Exception) or None in answer:
            return False
        crc, payload = answer
        block = self._view.block(slot)
        right = len(payload) == len(block) and crc32c.crc32c(payload).to_bytes(4, "big") == crc
        if right:
            copy(block, payload)
        self._transfers.count(corrupt=not right)
        return right

    def _answers(self, pipeline: Any) -> list[Any]:
        """One for each command: what it said, or the error that the server answered for this one."""
        try:
            return list(pipeline.execute(raise_on_error=False))
        except self._errors() as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from error

    def _learn_keys(self) -> None:
        try:
            names = list(self._client.scan_iter(match=PREFIX + b"*", count=_SCAN_COUNT))
        except self._errors() as error:
            raise ConnectionError(f"{type(error).__name__}: {error}") from error
        self.learn(_key(name) for name in names if len(name) == len(PREFIX) + 2 * KEY_BYTES)
        self._refreshed = time.monotonic()

    def _errors(self) -> tuple[type[Exception], ...]:
        from redis.exceptions import RedisError  # noqa: PLC0415 - loaded by the client already

        return (RedisError,)


def _name(key: bytes) -> bytes:
    return PREFIX + key.hex().encode()


def _key(name: bytes) -> bytes:
    return bytes.fromhex(name.removeprefix(PREFIX).decode())
