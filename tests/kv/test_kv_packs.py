"""Packs as bytes and as files: what is read is what was written, or it is refused."""

from __future__ import annotations

import fcntl
import os

import pytest

from examples.kv_offload.tiers.directory import Directory
from examples.kv_offload.tiers.pack_files import PackFiles
from examples.kv_offload.tiers.pack_format import (
    HEADER_BYTES,
    MAX_BLOCKS,
    BadPack,
    Entry,
    ForeignPack,
    Header,
    decode,
    encode,
)

from .conftest import BLOCK


def header(count=2):
    """A header of some blocks."""
    return Header(BLOCK, tuple(Entry(bytes([number]) * 32, BLOCK, number) for number in range(count)))


@pytest.mark.parametrize("count", [1, 2, MAX_BLOCKS])
def test_a_header_is_read_as_it_was_written(count):
    """One page for any number of blocks."""
    page = encode(header(count))
    assert HEADER_BYTES == len(page)
    assert header(count) == decode(page)


@pytest.mark.parametrize("count", [0, MAX_BLOCKS + 1])
def test_a_pack_has_its_bounds(count):
    """None, and more than fit a page, are refused."""
    with pytest.raises(ValueError, match="a pack holds"):
        encode(header(count))


def test_every_damaged_byte_of_a_header_is_noticed():
    """Whatever is read is what was written."""
    page = encode(header())
    for position in range(20 + 2 * 40):
        damaged = bytearray(page)
        damaged[position] ^= 0x55
        with pytest.raises((BadPack, ForeignPack)):
            decode(bytes(damaged))


def test_a_header_with_a_key_twice_is_refused():
    """Two places for one block are no place."""
    twice = Header(BLOCK, (Entry(bytes(32), BLOCK, 1), Entry(bytes(32), BLOCK, 2)))
    with pytest.raises(BadPack, match="twice"):
        decode(encode(twice))


@pytest.mark.parametrize("damage", [lambda page: page[:-1], lambda page: b"", lambda page: b"X" + page[1:]])
def test_what_is_not_a_header_is_refused(damage):
    """Short pages and other files are no packs."""
    with pytest.raises(BadPack):
        decode(damage(encode(header())))


def test_a_temporary_directory_is_removed_and_another_one_stays(tmp_path):
    """Only what the tier made itself."""
    temporary, mine = Directory(), Directory(tmp_path)
    (temporary.path / "file").touch()
    temporary.stop()
    temporary.stop()
    mine.stop()
    assert (False, True) == (temporary.path.exists(), tmp_path.exists())


def test_a_writer_whose_new_file_is_swept_at_once_makes_another(tmp_path, monkeypatch):
    """The sweep may come between the creation and the lock."""
    files = PackFiles(tmp_path, BLOCK)
    files.open()
    swept: list[bool] = []
    flock = fcntl.flock

    def sweep_first(descriptor, operation):
        if not swept:
            swept.append(True)
            for path in tmp_path.glob(".*.tmp"):
                path.unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", sweep_first)
    path, descriptor = files._create()
    os.close(descriptor)
    assert path.exists()
