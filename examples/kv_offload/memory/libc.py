"""The memory-locking calls of libc that Python does not wrap. Each raises OSError with the errno of the call."""

from __future__ import annotations

import ctypes
import os

MLOCK_ONFAULT = 1
MADV_POPULATE_WRITE = 23

_libc = ctypes.CDLL(None, use_errno=True)
_ADDRESS_AND_LENGTH = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mlock.argtypes = _ADDRESS_AND_LENGTH
_libc.munlock.argtypes = _ADDRESS_AND_LENGTH


def mlock(address: int, length: int) -> None:
    """Fault in and lock `length` bytes from `address`."""
    _check(_libc.mlock(address, length), "mlock")


def mlock_on_fault(address: int, length: int) -> None:
    """Lock `length` bytes as they are touched: the limit is checked now, no page is used yet."""
    mlock2 = _libc.mlock2
    mlock2.argtypes = (*_ADDRESS_AND_LENGTH, ctypes.c_int)
    _check(mlock2(address, length, MLOCK_ONFAULT), "mlock2")


def munlock(address: int, length: int) -> None:
    """Undo `mlock` for the range."""
    _check(_libc.munlock(address, length), "munlock")


def address_of(buffer: memoryview | bytearray) -> int:
    """The address of a writable buffer. It is only good for as long as the caller keeps the buffer exported."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def copy(target: memoryview, source: memoryview | bytes) -> None:
    """Copy all of `source` to the beginning of `target`, as a slice assignment does, but without holding the GIL."""
    if len(source) > len(target):
        raise ValueError(f"{len(source)} bytes do not fit into {len(target)}")
    view = (ctypes.c_char * len(source)).from_buffer(source) if isinstance(source, memoryview) else source
    ctypes.memmove(address_of(target), view, len(source))


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
