"""Sizes and rates as people write them."""

from __future__ import annotations

_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text: str) -> int:
    """Bytes from `268435456`, `256M`, `256MiB` or `1G`. Raises ValueError for anything else."""
    word = text.strip().upper().removesuffix("IB").removesuffix("B")
    suffix = word[-1:] if word[-1:] in ("K", "M", "G") else ""
    digits = word.removesuffix(suffix)
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"not a size: {text!r} (write it like 256M or 1G)")
    return int(digits) * _SUFFIXES[suffix]


def show_size(nbytes: int) -> str:
    """`256.0 MiB` and the like."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale:
            return f"{nbytes / scale:.1f} {unit}"
    return f"{nbytes} B"


def show_rate(nbytes: int, seconds: float) -> str:
    """Decimal gigabytes in a second, or a dash where nothing was moved."""
    return f"{nbytes / seconds / 1e9:.2f} GB/s" if nbytes and seconds > 0 else "-"
