"""The peer's process."""

from __future__ import annotations

import secrets

from lifegraph import resource

from .child_process import ChildProcess
from .peer_wire import SECRET_BYTES


@resource
class PeerHost(ChildProcess):
    """Starts the peer process; `address` and `secret` are what a tier needs to talk to it."""

    def __init__(self, cap: int, *, limit: float = 10.0) -> None:
        super().__init__(limit=limit)
        self._cap = cap
        self.secret = secrets.token_bytes(SECRET_BYTES)
        self.address = ("127.0.0.1", 0)

    def start(self) -> None:
        """Spawn it and wait until it listens. Raises RuntimeError where it does not within the limit (seconds)."""
        line = self.spawn(f"{__package__}.peer_process", ["--cap", str(self._cap)], self.secret.hex().encode(), {})
        self.address = ("127.0.0.1", int(line))
