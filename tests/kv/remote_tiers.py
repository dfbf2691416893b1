"""The remote tiers, each with its other side, so that one test can be about all of them."""

from __future__ import annotations

import os
import shutil
import signal
from importlib.util import find_spec
from typing import Any

import pytest

from examples.kv_offload.serving.prompts import content
from examples.kv_offload.tiers.directory import Directory
from examples.kv_offload.tiers.nixl_far import NixlHost, NixlSpool
from examples.kv_offload.tiers.nixl_tier import NixlTier
from examples.kv_offload.tiers.peer_host import PeerHost
from examples.kv_offload.tiers.peer_tier import PeerTier
from examples.kv_offload.tiers.redis_server import RedisServer
from examples.kv_offload.tiers.redis_tier import RedisTier

from .conftest import BLOCK, BLOCKS, Batch

needs_redis = pytest.mark.skipif(
    find_spec("redis") is None or shutil.which("redis-server") is None,
    reason="needs the redis extra, and a redis-server",
)
needs_nixl = pytest.mark.skipif(find_spec("nixl_cu12") is None, reason="needs the nixl extra")
CAP = 64 * BLOCK


class Rig:
    """One tier over one memory, and its other side."""

    def __init__(self, memory, name, directory):
        self.memory, self.directory = memory, directory
        choices: dict[str, Any] = {
            "peer": lambda: (PeerHost(CAP), PeerTier),
            "redis": lambda: (RedisServer(CAP), RedisTier),
            "nixl": lambda: (NixlHost(CAP // BLOCK, BLOCK), NixlTier),
            "nixl-posix": lambda: (NixlSpool(Directory(directory), CAP // BLOCK, BLOCK), NixlTier),
        }
        self.far, kind = choices[name]()
        self.far.start()
        self.view = memory.view()
        self.tier = kind(self.view, self.far)
        self.tier.start()

    def fill(self, keys):
        """Slots that hold these keys' blocks."""
        slots = list(range(len(keys)))
        for each, slot in zip(keys, slots, strict=True):
            self.view.block(slot)[:] = content(each, BLOCK)
        return slots

    def clean(self):
        """Nothing in any slot."""
        for slot in range(BLOCKS):
            self.view.block(slot)[:] = bytes(BLOCK)

    def begin(self, kind, keys, slots):
        """One job, handed in."""
        done = Batch()
        (self.tier.submit_store if kind == "store" else self.tier.submit_load)(done.job(kind, keys, slots))
        return done

    def ask(self, kind, keys, slots):
        """One job, waited for."""
        return self.begin(kind, keys, slots).wait()[0]

    def signal(self, number):
        """To every process of the other side."""
        os.killpg(self.far.pid, number)

    def over(self):
        """Everything ends."""
        self.tier.kill()
        if isinstance(self.far, NixlSpool):
            self.far.stop()
        elif self.far.running:
            self.signal(signal.SIGCONT)
            self.far.stop()


ALL = [
    "peer",
    pytest.param("redis", marks=needs_redis),
    pytest.param("nixl", marks=needs_nixl),
    pytest.param("nixl-posix", marks=needs_nixl),
]
WITH_A_PROCESS = ALL[:3]
