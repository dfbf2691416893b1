"""Which NUMA nodes there are, and binding memory to one of them (Linux)."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

_ONLINE = Path("/sys/devices/system/node/online")
_MPOL_BIND = 2
_MBIND = {"x86_64": 237, "aarch64": 235}
"""the number of the system call, which libc does not wrap"""

_libc = ctypes.CDLL(None, use_errno=True)


def nodes() -> list[int]:
    """The nodes that are online; none where the kernel knows of no such thing."""
    try:
        text = _ONLINE.read_text().strip()
    except OSError:
        return []
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def bind(address: int, length: int, node: int) -> None:
    """Let these pages come from this node only; before they are touched. Raises OSError."""
    number = _MBIND.get(platform.machine())
    if number is None:
        raise OSError(38, f"mbind is not known on {platform.machine()}")
    words = node // 64 + 1
    mask = (ctypes.c_ulong * words)()
    mask[node // 64] = 1 << node % 64
    call = (ctypes.c_long(number), ctypes.c_void_p(address), ctypes.c_ulong(length), ctypes.c_int(_MPOL_BIND))
    if _libc.syscall(*call, mask, ctypes.c_ulong(64 * words + 1), ctypes.c_uint(0)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mbind to node {node}: {os.strerror(code)}")
