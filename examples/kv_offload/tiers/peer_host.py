"""The peer's process, as something with a life."""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from lifegraph import resource

from .peer_wire import SECRET_BYTES

_ROOT = Path(__file__).resolve().parents[3]


@resource
class PeerHost:
    """Starts the peer process, and ends it by asking: its stdin is closed, then it is waited for and reaped.

    `address` and `secret` are what a tier needs to talk to it. A Ctrl-C at the terminal does not reach it: it is in a
    process group of its own, since its dependents still need it then.
    """

    def __init__(self, cap: int, *, limit: float = 10.0) -> None:
        self._cap = cap
        self._limit = limit
        self._process: subprocess.Popen[bytes] | None = None
        self.secret = secrets.token_bytes(SECRET_BYTES)
        self.address = ("127.0.0.1", 0)

    def start(self) -> None:
        """Spawn it and wait until it listens. Raises RuntimeError where it does not within the limit (seconds)."""
        command = [sys.executable, "-m", f"{__package__}.peer_process", "--cap", str(self._cap)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT, process_group=0
        )
        assert self._process.stdin is not None
        self._process.stdin.write(self.secret.hex().encode() + b"\n")
        self._process.stdin.flush()
        self.address = ("127.0.0.1", self._read_port(self._process))

    def stop(self) -> None:
        """Ask it to leave, wait, reap. Raises subprocess.TimeoutExpired where it does not leave within the limit."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):  # it has gone already
            process.stdin.close()
        process.wait(self._limit)
        process.stdout.close()

    def kill(self) -> None:
        """SIGKILL, and reap: proof that it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """Its process id, or 0 before start."""
        return 0 if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        """True while the process has not been seen to end."""
        return self._process is not None and self._process.poll() is None

    def _read_port(self, process: subprocess.Popen[bytes]) -> int:
        assert process.stdout is not None
        deadline = time.monotonic() + self._limit
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(process.stdout.fileno(), 64) if ready else b""
            if not chunk:
                raise RuntimeError(f"the peer process did not say its port within {self._limit} s, or ended")
            line += chunk
        return int(line)
