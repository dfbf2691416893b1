"""Runs a redis-server for as long as stdin stays open, on a Unix socket; says the socket's path once it answers.

    python -m examples.kv_offload.tiers.redis_process --socket PATH --cap BYTES

The server ends with this process, however that one ends.
"""

from __future__ import annotations

import argparse
import ctypes
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_READY_SECONDS = 10.0


def _end_with_parent() -> None:
    """In the child, before it becomes the server. Its parent, this process, has one thread at that moment."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _command(path: str, cap: int) -> list[str]:
    return [
        "redis-server",
        *("--port", "0", "--unixsocket", path, "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning"),
        *("--maxmemory", str(cap), "--maxmemory-policy", "allkeys-lru"),
    ]


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(path)
            sock.sendall(b"PING\r\n")
            return sock.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def main(arguments: Sequence[str] | None = None) -> int:
    """The server's exit code; 1 where it does not answer in time."""
    parser = argparse.ArgumentParser(description="a redis-server that ends with its parent")
    parser.add_argument("--socket", required=True)
    parser.add_argument("--cap", type=int, required=True, metavar="BYTES")
    options = parser.parse_args(arguments)
    server = subprocess.Popen(
        _command(options.socket, options.cap),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        preexec_fn=_end_with_parent,  # noqa: PLW1509 - this process has one thread
    )
    deadline = time.monotonic() + _READY_SECONDS
    while not _answers(options.socket):
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            return 1
        threading.Event().wait(0.01)
    print(options.socket, flush=True)
    while sys.stdin.buffer.read(4096):
        pass
    server.terminate()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
