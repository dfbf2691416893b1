"""The language between a peer tier and its peer, over any stream socket.

First both prove that they know a shared secret, which never travels. Then frames: a head, a list of entries, payloads.
Every length is checked against a bound before anything is allocated or read for it. Integers are big-endian.

    head: magic 4 | op u8 | zero u8 | count u16
    entry: key 32 | status u8 | zeros 3 | length u32 | crc32c u32        (count times)
    payloads: `length` bytes for each entry that carries some, in order
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from .tier import KEY_BYTES

MAGIC = b"KVP1"
MAX_ENTRIES = 1024
MAX_BLOCK_BYTES = 64 << 20
SECRET_BYTES = 32
IOV_LIMIT = 512

_HEAD = struct.Struct("!4sBxH")
_ENTRY = struct.Struct(f"!{KEY_BYTES}sB3xII")
_NONCE_BYTES = 32
_PROOF_BYTES = 32


class WireError(ConnectionError):
    """The other side broke the protocol, failed to authenticate, or hung up."""


class Op(IntEnum):
    """What a frame asks or answers."""

    STORE = 1
    """entries with payloads"""
    STORED = 2
    """the same keys; status says which are kept"""
    LOAD = 3
    """keys only"""
    LOADED = 4
    """the same keys; those found carry a payload"""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a frame."""

    key: bytes
    good: bool = True
    length: int = 0
    crc: int = 0


def authenticate(sock: socket.socket, secret: bytes, *, asking: bool) -> None:
    """Prove the secret to each other. The asking side proves first. Raises WireError, and says no more than that."""
    mine = secrets.token_bytes(_NONCE_BYTES)
    send_all(sock, [memoryview(mine)])
    theirs = receive(sock, _NONCE_BYTES)
    nonces = mine + theirs if asking else theirs + mine
    ask, answer = (hmac.digest(secret, role + nonces, "sha256") for role in (b"ask", b"answer"))
    if asking:
        send_all(sock, [memoryview(ask)])
    if not hmac.compare_digest(receive(sock, _PROOF_BYTES), answer if asking else ask):
        raise WireError("authentication failed")
    if not asking:
        send_all(sock, [memoryview(answer)])


def send_frame(sock: socket.socket, op: Op, items: Sequence[Item], payloads: Sequence[memoryview] = ()) -> None:
    """Send one frame straight from the payloads' memory. Raises ValueError, and sends nothing, past the bounds."""
    if not 0 < len(items) <= MAX_ENTRIES or any(item.length > MAX_BLOCK_BYTES for item in items):
        raise ValueError(f"a frame has 1 to {MAX_ENTRIES} entries of at most {MAX_BLOCK_BYTES} bytes")
    head = _HEAD.pack(MAGIC, op, len(items))
    body = b"".join(_ENTRY.pack(item.key, item.good, item.length, item.crc) for item in items)
    send_all(sock, [memoryview(head + body), *payloads])


def receive_frame(sock: socket.socket, expected: Sequence[Op]) -> tuple[Op, list[Item]]:
    """A head and its entries; the payloads are still to be read. Raises WireError for anything out of bounds."""
    magic, number, count = _HEAD.unpack(receive(sock, _HEAD.size))
    if magic != MAGIC or number not in tuple(expected):
        raise WireError(f"unexpected frame: {magic!r}, op {number}")
    if not 0 < count <= MAX_ENTRIES:
        raise WireError(f"a frame of {count} entries; 1 to {MAX_ENTRIES} are allowed")
    body = receive(sock, count * _ENTRY.size)
    items = [Item(key, bool(good), length, crc) for key, good, length, crc in _ENTRY.iter_unpack(body)]
    longest = max(item.length for item in items)
    if longest > MAX_BLOCK_BYTES:
        raise WireError(f"a block of {longest} bytes; at most {MAX_BLOCK_BYTES} are allowed")
    return Op(number), items


def receive(sock: socket.socket, count: int) -> bytes:
    """Exactly `count` bytes."""
    buffer = bytearray(count)
    receive_into(sock, memoryview(buffer))
    return bytes(buffer)


def receive_into(sock: socket.socket, buffer: memoryview) -> None:
    """Fill the buffer. Raises WireError where the other side hangs up before that."""
    filled = 0
    while filled < len(buffer):
        with buffer[filled:] as rest:
            count = sock.recv_into(rest)
        if count == 0:
            raise WireError(f"the connection ended {len(buffer) - filled} bytes too early")
        filled += count


def send_all(sock: socket.socket, buffers: Sequence[memoryview]) -> None:
    """Send all buffers, in order, without joining them."""
    waiting = [buffer for buffer in buffers if len(buffer)]
    first = 0
    while first < len(waiting):
        sent = sock.sendmsg(waiting[first : first + IOV_LIMIT])
        while first < len(waiting) and sent >= len(waiting[first]):
            sent -= len(waiting[first])
            first += 1
        if sent:
            waiting[first] = waiting[first][sent:]
