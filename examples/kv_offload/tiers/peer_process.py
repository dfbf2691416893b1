"""The other host, as a process of its own: keeps blocks in its memory and serves them over a loopback socket.

    python -m examples.kv_offload.tiers.peer_process --cap BYTES

The shared secret comes in as the first line of stdin, in hex; the port goes out as the first line of stdout. When stdin
ends, the process ends: so it never outlives the one that started it.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence

import crc32c

from .peer_wire import Item, Op, WireError, authenticate, receive_frame, receive_into, send_frame

HANDSHAKE_SECONDS = 5.0


class Shelf:
    """The blocks, up to `cap` bytes, least recently used out first. Thread-safe."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._lock = threading.Lock()
        self._blocks: OrderedDict[bytes, tuple[bytearray, int]] = OrderedDict()
        self._bytes = 0

    def put(self, key: bytes, block: bytearray, crc: int) -> bool:
        """Keep a block; False where it can never fit."""
        if len(block) > self._cap:
            return False
        with self._lock:
            self._bytes -= len(self._blocks.pop(key, (b"", 0))[0])
            while self._bytes + len(block) > self._cap:
                _, (oldest, _) = self._blocks.popitem(last=False)
                self._bytes -= len(oldest)
            self._blocks[key] = (block, crc)
            self._bytes += len(block)
        return True

    def get(self, key: bytes) -> tuple[bytearray, int] | None:
        """A block and its crc32c. Counts as a use."""
        with self._lock:
            found = self._blocks.get(key)
            if found is not None:
                self._blocks.move_to_end(key)
            return found


def converse(sock: socket.socket, secret: bytes, shelf: Shelf) -> None:
    """Serve one connection until it ends. A stranger, or a broken frame, ends it at once."""
    with sock:
        try:
            sock.settimeout(HANDSHAKE_SECONDS)
            authenticate(sock, secret, asking=False)
            sock.settimeout(None)
            while True:
                op, items = receive_frame(sock, (Op.STORE, Op.LOAD))
                if op is Op.STORE:
                    _store(sock, items, shelf)
                else:
                    _load(sock, items, shelf)
        except (WireError, OSError):
            return


def _store(sock: socket.socket, items: Sequence[Item], shelf: Shelf) -> None:
    answers = []
    for item in items:
        block = bytearray(item.length)
        receive_into(sock, memoryview(block))
        kept = crc32c.crc32c(block) == item.crc and shelf.put(item.key, block, item.crc)
        answers.append(Item(item.key, kept))
    send_frame(sock, Op.STORED, answers)


def _load(sock: socket.socket, items: Sequence[Item], shelf: Shelf) -> None:
    answers, payloads = [], []
    for item in items:
        found = shelf.get(item.key)
        if found is None:
            answers.append(Item(item.key, good=False))
        else:
            answers.append(Item(item.key, length=len(found[0]), crc=found[1]))
            payloads.append(memoryview(found[0]))
    send_frame(sock, Op.LOADED, answers, payloads)


def _leave_with_stdin() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stdin ends."""
    parser = argparse.ArgumentParser(description="keeps KV blocks for another process")
    parser.add_argument("--cap", type=int, required=True, metavar="BYTES")
    options = parser.parse_args(arguments)
    secret = bytes.fromhex(sys.stdin.buffer.readline().decode().strip())
    shelf = Shelf(options.cap)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=_leave_with_stdin, daemon=True).start()
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=converse, args=(sock, secret, shelf), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
