"""A pack: the file that one batch of blocks becomes.

One page of header, then the payloads, each in a slot of `block_size` bytes, so that with page-sized blocks everything
is aligned for O_DIRECT. Integers are little-endian.

    magic 8 | version u16 | count u16 | block_size u32 | crc32c of all that before and of the entries u32
    entry: key 32 | length u32 | crc32c of the payload u32        (count times)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import crc32c

from .tier import KEY_BYTES

MAGIC = b"KVPACK\r\n"
VERSION = 1
HEADER_BYTES = 4096

_HEAD = struct.Struct("<8sHHI")
_CRC = struct.Struct("<I")
_ENTRY = struct.Struct(f"<{KEY_BYTES}sII")

_ENTRIES = _HEAD.size + _CRC.size

MAX_BLOCKS = (HEADER_BYTES - _ENTRIES) // _ENTRY.size


class BadPack(ValueError):
    """The file is not a whole, readable pack."""


class ForeignPack(ValueError):
    """The file may well be good, but not for this program or these settings."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One block of a pack: its key, the bytes that count, and their crc32c."""

    key: bytes
    length: int
    crc: int


@dataclass(frozen=True, slots=True)
class Header:
    """What a pack holds, in order."""

    block_size: int
    entries: tuple[Entry, ...]

    @property
    def file_bytes(self) -> int:
        """The size of the whole file."""
        return HEADER_BYTES + self.block_size * len(self.entries)

    def offset(self, position: int) -> int:
        """Where the payload of an entry begins."""
        return HEADER_BYTES + self.block_size * position


def seal(keys: Sequence[bytes], blocks: Sequence[memoryview]) -> Header:
    """The header for these blocks, all of one size. Reads every byte."""
    entries = (Entry(key, len(block), crc32c.crc32c(block)) for key, block in zip(keys, blocks, strict=True))
    return Header(len(blocks[0]), tuple(entries))


def encode(header: Header) -> bytes:
    """One page. Raises ValueError for more than MAX_BLOCKS entries or a key of the wrong length."""
    if not 0 < len(header.entries) <= MAX_BLOCKS:
        raise ValueError(f"a pack holds 1 to {MAX_BLOCKS} blocks, not {len(header.entries)}")
    for entry in header.entries:
        if len(entry.key) != KEY_BYTES:
            raise ValueError(f"a key is {KEY_BYTES} bytes, not {len(entry.key)}")
    body = b"".join(_ENTRY.pack(entry.key, entry.length, entry.crc) for entry in header.entries)
    head = _HEAD.pack(MAGIC, VERSION, len(header.entries), header.block_size)
    return (head + _CRC.pack(crc32c.crc32c(head + body)) + body).ljust(HEADER_BYTES, b"\0")


def decode(page: bytes | memoryview) -> Header:
    """The header in a page. Raises BadPack or ForeignPack that says what is wrong."""
    if len(page) < HEADER_BYTES:
        raise BadPack(f"the header has {len(page)} of {HEADER_BYTES} bytes")
    magic, version, count, block_size = _HEAD.unpack_from(page)
    if magic != MAGIC:
        raise BadPack("not a pack: wrong magic")
    if version != VERSION:
        raise ForeignPack(f"version {version}, this program reads {VERSION}")
    if not 0 < count <= MAX_BLOCKS:
        raise BadPack(f"the header claims {count} blocks")
    body = bytes(page[_ENTRIES : _ENTRIES + count * _ENTRY.size])
    if _CRC.pack(crc32c.crc32c(bytes(page[: _HEAD.size]) + body)) != page[_HEAD.size : _ENTRIES]:
        raise BadPack("the header's checksum is wrong")
    entries = tuple(Entry(*fields) for fields in _ENTRY.iter_unpack(body))
    if any(entry.length > block_size for entry in entries):
        raise BadPack("an entry is longer than a block")
    if len({entry.key for entry in entries}) != count:
        raise BadPack("a key comes twice")
    return Header(block_size, entries)
