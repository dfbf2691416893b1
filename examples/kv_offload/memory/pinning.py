"""Two ways to pin pages: mlock, and cudaHostRegister where there is a GPU. Each keeps what it could not undo."""

from __future__ import annotations

import errno
import resource as rlimits
from typing import Any, Protocol

from ..units import show_size
from . import libc, smaps

CUDA_SUCCESS = 0
CUDA_PIECE = 1 << 30


class PinError(RuntimeError):
    """Pages could not be pinned, or not be unpinned. The message names the limit and the cure where there is one."""


class Pinner(Protocol):
    """Pins one range and later unpins it."""

    def pin(self, address: int, length: int) -> str:
        """Pin all of it or nothing; says how. Raises PinError."""

    def unpin(self) -> None:
        """Undo it. Raises PinError and remembers what is still pinned, so that it can be called again."""

    def pinned(self) -> int:
        """Bytes still pinned."""


class LockedPages:
    """Pins with mlock, and believes it only when the kernel shows every page as locked."""

    def __init__(self) -> None:
        self._range: tuple[int, int] | None = None

    def pin(self, address: int, length: int) -> str:
        try:
            libc.mlock(address, length)
        except OSError as error:
            raise PinError(_refusal(length, error)) from error
        self._range = (address, length)
        extent = smaps.extent(address, length)
        if extent.covered != length or not extent.fully_locked:
            self.unpin()
            raise PinError(f"mlock said yes to {show_size(length)}, but only {extent.locked} bytes are locked")
        return f"mlock, {show_size(extent.locked)} locked"

    def unpin(self) -> None:
        if self._range is None:
            return
        try:
            libc.munlock(*self._range)
        except OSError as error:
            raise PinError(f"munlock of {show_size(self._range[1])} failed: {error}") from error
        self._range = None

    def pinned(self) -> int:
        return self._range[1] if self._range else 0


class CudaPages:
    """Pins with cudaHostRegister, piece by piece; a refused piece rolls the earlier ones back.

    `runtime` is `cuda.bindings.runtime`, or anything with its calling convention: every call returns a tuple whose
    first item is the error code and never raises.
    """

    def __init__(self, runtime: Any, piece: int = CUDA_PIECE) -> None:
        self._runtime = runtime
        self._piece = piece
        self._pieces: list[tuple[int, int]] = []

    def pin(self, address: int, length: int) -> str:
        for offset in range(0, length, self._piece):
            piece = (address + offset, min(self._piece, length - offset))
            code = self._runtime.cudaHostRegister(*piece, 0)[0]
            if code != CUDA_SUCCESS:
                self.unpin()
                raise PinError(f"cudaHostRegister of {show_size(piece[1])} at offset {offset} returned {code!r}")
            self._pieces.append(piece)
        return f"cudaHostRegister, {len(self._pieces)} piece(s)"

    def unpin(self) -> None:
        refused = {}
        for piece in reversed(self._pieces[:]):
            code = self._runtime.cudaHostUnregister(piece[0])[0]
            if code == CUDA_SUCCESS:
                self._pieces.remove(piece)
            else:
                refused[piece] = code
        if refused:
            codes = ", ".join(f"{code!r} for {show_size(piece[1])}" for piece, code in refused.items())
            raise PinError(f"cudaHostUnregister returned {codes}: the device may still reach these pages")

    def pinned(self) -> int:
        return sum(length for _, length in self._pieces)


def choose_pinner() -> Pinner:
    """CUDA where a device answers, else mlock."""
    runtime = cuda_runtime()
    return LockedPages() if runtime is None else CudaPages(runtime)


def cuda_runtime() -> Any | None:
    """`cuda.bindings.runtime` where it imports and at least one device answers, else None."""
    try:
        from cuda.bindings import runtime  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return None
    code, *count = runtime.cudaGetDeviceCount()
    return runtime if code == CUDA_SUCCESS and count[0] > 0 else None


def memlock_limit() -> int | None:
    """RLIMIT_MEMLOCK in bytes, or None where there is none. The kernel ignores it for CAP_IPC_LOCK (so for root)."""
    soft, _ = rlimits.getrlimit(rlimits.RLIMIT_MEMLOCK)
    return None if soft == rlimits.RLIM_INFINITY else soft


def _refusal(length: int, error: OSError) -> str:
    limit = memlock_limit()
    text = f"cannot pin {show_size(length)}: {error}"
    if error.errno not in (errno.ENOMEM, errno.EPERM, errno.EAGAIN) or limit is None:
        return text
    kib = -(-length // 1024)
    return (
        f"{text}; the limit RLIMIT_MEMLOCK is {show_size(limit)}, {show_size(smaps.locked_bytes())} of it in use. "
        f"Cure: raise it (`ulimit -l {kib}`, LimitMEMLOCK= of a systemd unit, --ulimit memlock= of a container), "
        f"or ask for a smaller region (--size)"
    )
