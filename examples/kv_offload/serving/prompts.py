"""Synthetic prompts that share prefixes, and blocks whose bytes follow from their key."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass

from ..tiers.tier import KEY_BYTES

_UNIT = 4093
"""a prime: so no two pages of a block are alike, and a page in the wrong place is noticed"""


@dataclass(frozen=True, slots=True)
class Workload:
    """How many prompts, and how they share. Lengths are in blocks."""

    prompts: int
    prefixes: int
    prefix_blocks: int
    suffix_blocks: int
    seed: int = 0


def prompts(workload: Workload) -> Iterator[tuple[bytes, ...]]:
    """The keys of each prompt's blocks: a shared prefix and a suffix, which one in three takes from an earlier prompt."""
    chance = random.Random(workload.seed)
    suffixes: list[list[int]] = [[] for _ in range(workload.prefixes)]
    for number in range(workload.prompts):
        prefix = chance.randrange(workload.prefixes)
        suffix = chance.choice(suffixes[prefix]) if suffixes[prefix] and chance.random() < 1 / 3 else number
        suffixes[prefix].append(suffix)
        chain = [f"prefix {prefix} block {block}" for block in range(workload.prefix_blocks)]
        chain += [f"suffix {suffix} block {block}" for block in range(workload.suffix_blocks)]
        yield keys_of(chain)


def keys_of(chain: list[str]) -> tuple[bytes, ...]:
    """Each key speaks of its block and of all before it."""
    keys: list[bytes] = []
    for block in chain:
        before = keys[-1] if keys else b""
        keys.append(hashlib.blake2b(before + block.encode(), digest_size=KEY_BYTES).digest())
    return tuple(keys)


def write_content(key: bytes, block: bytearray | memoryview) -> None:
    """Write the bytes of a key's block, without allocating more than a page."""
    length = len(block)
    done = min(_UNIT, length)
    block[:done] = hashlib.shake_128(key).digest(done)
    with memoryview(block) as whole:
        while done < length:
            more = min(done, length - done)
            whole[done : done + more] = whole[:more]
            done += more


def content(key: bytes, length: int) -> bytes:
    """The bytes of a key's block."""
    block = bytearray(length)
    write_content(key, block)
    return bytes(block)
