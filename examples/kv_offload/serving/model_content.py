"""Blocks that are the keys and values of a model, checked by what the model makes of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import torch
from torch import Tensor

from .content import WrongBytes
from .transformer import Shape, Transformer, as_cache


class ModelContent:
    """Prefills what is missing of a prompt, on top of what was loaded; the logits must equal those recomputed.

    The tokens of a block follow from its key. The recomputation is done in memory of its own, from the tokens alone.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.compared = 0
        """blocks of logits found equal, bit by bit, some of whose past was loaded"""
        self._model = Transformer(shape)
        self._expected: dict[bytes, tuple[Tensor, Tensor]] = {}

    def is_right(self, key: bytes, block: memoryview) -> bool:
        """A block by itself says nothing; `write` looks at what follows from it."""
        return True

    def write(self, prompt: Sequence[tuple[bytes, memoryview]], missing: AbstractSet[bytes]) -> None:
        caches: list[Tensor] = []
        try:
            self._prefill(prompt, missing, caches)
        finally:
            caches.clear()  # an error that is kept keeps its frames, and those would keep the region mapped

    def _prefill(
        self, prompt: Sequence[tuple[bytes, memoryview]], missing: AbstractSet[bytes], caches: list[Tensor]
    ) -> None:
        keys = [key for key, _ in prompt]
        for position, (key, block) in enumerate(prompt):
            caches.append(as_cache(block, self.shape))
            if key in missing:
                logits = self._model.extend(self._tokens(key), caches[:-1], caches[-1])
                self._compare(keys[: position + 1], logits, loaded=position > 0 and keys[position - 1] not in missing)
        if keys[-1] not in missing:  # all of it came from somewhere: let the model speak once more
            scratch = torch.empty(self.shape.cache_shape)
            self._compare(keys, self._model.extend(self._tokens(keys[-1]), caches[:-1], scratch), loaded=True)

    def checked(self) -> str:
        return f"and {self.compared} blocks of logits on top of loaded ones equal those recomputed"

    def _compare(self, keys: Sequence[bytes], logits: Tensor, *, loaded: bool) -> None:
        if not torch.equal(self._recomputed(keys), logits):
            raise WrongBytes(f"the logits after {len(keys)} blocks are not those that are recomputed")
        self.compared += loaded

    def _recomputed(self, keys: Sequence[bytes]) -> Tensor:
        """The logits of the last block, from the tokens alone; what was computed on the way is remembered by its key."""
        caches: list[Tensor] = []
        for key in keys:
            if key not in self._expected:
                cache = torch.empty(self.shape.cache_shape)
                self._expected[key] = (cache, self._model.extend(self._tokens(key), caches, cache))
            caches.append(self._expected[key][0])
        return self._expected[keys[-1]][1]

    def _tokens(self, key: bytes) -> list[int]:
        digest = hashlib.shake_128(key).digest(2 * self.shape.block_tokens)
        pairs = zip(digest[::2], digest[1::2], strict=True)
        return [(high << 8 | low) % self.shape.vocabulary for high, low in pairs]
