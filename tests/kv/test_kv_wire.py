"""The language between tier and peer: nobody unknown is served, and nothing out of bounds is read."""

from __future__ import annotations

import socket
import threading

import pytest

from examples.kv_offload.tiers import peer_wire
from examples.kv_offload.tiers.peer_process import Shelf, converse
from examples.kv_offload.tiers.peer_wire import (
    MAX_BLOCK_BYTES,
    MAX_ENTRIES,
    Item,
    Op,
    WireError,
    authenticate,
    receive,
    receive_frame,
    send_frame,
)

SECRET = b"s" * 32


@pytest.fixture
def served():
    """A socket whose other end is served by the peer's own code, on a thread."""
    mine, theirs = socket.socketpair()
    thread = threading.Thread(target=converse, args=(theirs, SECRET, Shelf(1 << 20)))
    thread.start()
    mine.settimeout(20)
    yield mine
    mine.close()
    thread.join(20)
    assert not thread.is_alive()


def ended(sock):
    """True when the other side has hung up."""
    while True:
        try:
            if not sock.recv(4096):
                return True
        except ConnectionResetError:
            return True


def test_a_peer_that_does_not_know_the_secret_is_refused(served):
    """The tier asks for a proof as well."""
    with pytest.raises(WireError):
        authenticate(served, b"other" * 8, asking=True)


def test_both_sides_refuse_a_wrong_proof():
    """Nobody answers a stranger, and nobody asks one."""
    mine, theirs = socket.socketpair()

    def impostor():
        receive(theirs, 32)
        theirs.sendall(bytes(32))
        receive(theirs, 32)
        theirs.sendall(bytes(32))

    thread = threading.Thread(target=impostor)
    thread.start()
    with mine, theirs:
        with pytest.raises(WireError, match="authentication"):
            authenticate(mine, SECRET, asking=True)
        thread.join(20)


def test_no_frame_is_read_before_the_proof(served):
    """A frame in place of a proof ends the connection."""
    receive(served, 32)
    served.sendall(bytes(32))
    send_frame(served, Op.LOAD, [Item(bytes(32))])
    assert ended(served)


@pytest.mark.parametrize(
    "frame",
    [
        peer_wire._HEAD.pack(b"HTTP", Op.LOAD, 1),
        peer_wire._HEAD.pack(peer_wire.MAGIC, 99, 1),
        peer_wire._HEAD.pack(peer_wire.MAGIC, Op.STORED, 1),
        peer_wire._HEAD.pack(peer_wire.MAGIC, Op.LOAD, 0),
        peer_wire._HEAD.pack(peer_wire.MAGIC, Op.STORE, MAX_ENTRIES + 1),
        peer_wire._HEAD.pack(peer_wire.MAGIC, Op.STORE, 1)
        + peer_wire._ENTRY.pack(bytes(32), True, MAX_BLOCK_BYTES + 1, 0),
        peer_wire._HEAD.pack(peer_wire.MAGIC, Op.STORE, 1) + peer_wire._ENTRY.pack(bytes(32), True, 0xFFFFFFFF, 0),
    ],
)
def test_a_frame_out_of_bounds_ends_the_connection(served, frame):
    """Nothing is allocated for it."""
    authenticate(served, SECRET, asking=True)
    served.sendall(frame)
    assert ended(served)


@pytest.mark.parametrize("items", [[], [Item(bytes(32))] * (MAX_ENTRIES + 1), [Item(bytes(32), length=1 << 30)]])
def test_a_frame_out_of_bounds_is_not_sent(items):
    """The sender keeps to the bounds as well."""
    mine, theirs = socket.socketpair()
    with mine, theirs, pytest.raises(ValueError, match="a frame has"):
        send_frame(mine, Op.STORE, items)


def test_the_shelf_keeps_to_its_cap():
    """The least recently used go first; what can never fit is refused."""
    shelf = Shelf(3)
    for name in (b"a", b"b", b"c"):
        assert shelf.put(name, bytearray(1), 0)
    shelf.get(b"a")
    assert shelf.put(b"d", bytearray(1), 0)
    assert [True, False, True, True] == [shelf.get(name) is not None for name in (b"a", b"b", b"c", b"d")]
    assert not shelf.put(b"e", bytearray(4), 0)


def test_a_damaged_store_is_not_kept(served):
    """The peer checks what it receives."""
    authenticate(served, SECRET, asking=True)
    send_frame(served, Op.STORE, [Item(bytes(32), True, 3, 0)], [memoryview(b"abc")])
    _, answers = receive_frame(served, (Op.STORED,))
    assert [False] == [answer.good for answer in answers]
