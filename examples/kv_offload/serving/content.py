"""What a prompt's blocks hold: bytes that follow from the key, or the keys and values of a model."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol, runtime_checkable

from .prompts import write_content


class WrongBytes(RuntimeError):
    """Something was served that is not what was stored."""


@runtime_checkable
class Content(Protocol):
    """Fills blocks, and knows whether one is right. Used by one thread."""

    def is_right(self, key: bytes, block: memoryview) -> bool:
        """What can be said of a block by itself."""

    def write(self, prompt: Sequence[tuple[bytes, memoryview]], missing: AbstractSet[bytes]) -> None:
        """Fill those blocks of a prompt that are missing; the others are right, or WrongBytes is raised.

        Keeps no hold of the blocks.
        """

    def checked(self) -> str:
        """How what was served has been checked, in words."""


class SyntheticContent:
    """Bytes that follow from the key alone, so that each block is checked byte for byte."""

    def __init__(self) -> None:
        self._expected = bytearray()

    def is_right(self, key: bytes, block: memoryview) -> bool:
        if len(self._expected) != len(block):
            self._expected = bytearray(len(block))
        write_content(key, self._expected)
        return self._expected == block  # a bytearray on the left compares without a copy

    def write(self, prompt: Sequence[tuple[bytes, memoryview]], missing: AbstractSet[bytes]) -> None:
        for key, block in prompt:
            if key in missing:
                write_content(key, block)

    def checked(self) -> str:
        return "every one checked byte for byte"
