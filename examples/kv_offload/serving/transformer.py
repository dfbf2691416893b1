"""A small transformer with random weights, which can go on from keys and values that were computed before.

Plain attention, rotary positions, one head size; float32 on the CPU, so that the same computation gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the model; `block_tokens` tokens make one block of its cache."""

    layers: int = 4
    heads: int = 4
    head_size: int = 32
    vocabulary: int = 512
    block_tokens: int = 16
    seed: int = 0

    @property
    def width(self) -> int:
        """Of one token's vector."""
        return self.heads * self.head_size

    @property
    def cache_shape(self) -> tuple[int, ...]:
        """Of one block of the cache: layers, keys and values, tokens, heads, head size."""
        return (self.layers, 2, self.block_tokens, self.heads, self.head_size)

    @property
    def block_bytes(self) -> int:
        """Of one block of the cache, in float32."""
        return 4 * self.layers * 2 * self.block_tokens * self.width


class Transformer:
    """Computes block by block: a block of tokens, given the cache of all blocks before it. Not thread-safe."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        chance = torch.Generator().manual_seed(shape.seed)

        def weights(*sizes: int) -> Tensor:
            drawn: Tensor = torch.randn(*sizes, generator=chance) / sizes[0] ** 0.5
            return drawn

        width = shape.width
        self._embedding = weights(shape.vocabulary, width)
        self._layers = [
            {"qkv": weights(width, 3 * width), "out": weights(width, width), "up": weights(width, 4 * width),
             "down": weights(4 * width, width)}
            for _ in range(shape.layers)
        ]  # fmt: skip
        half = torch.arange(shape.head_size // 2, dtype=torch.float32)
        self._frequencies = 10_000.0 ** (-2 * half / shape.head_size)

    def extend(self, tokens: Sequence[int], before: Sequence[Tensor], into: Tensor) -> Tensor:
        """Compute one block: its cache is written `into`, its logits are returned; `before` is the cache so far."""
        with torch.inference_mode():
            return self._extend(tokens, before, into)

    def _extend(self, tokens: Sequence[int], before: Sequence[Tensor], into: Tensor) -> Tensor:
        shape = self.shape
        position = len(before) * shape.block_tokens
        hidden = self._embedding[torch.tensor(tokens)]
        for number, layer in enumerate(self._layers):
            query, key, value = self._project(hidden, layer, position)
            into[number, 0], into[number, 1] = key, value
            keys = torch.cat([*(block[number, 0] for block in before), into[number, 0]])
            values = torch.cat([*(block[number, 1] for block in before), into[number, 1]])
            hidden = hidden + self._attend(query, keys, values, position) @ layer["out"]
            hidden = hidden + functional.gelu(_normed(hidden) @ layer["up"]) @ layer["down"]
        logits: Tensor = _normed(hidden) @ self._embedding.T
        return logits

    def _project(self, hidden: Tensor, layer: dict[str, Tensor], position: int) -> tuple[Tensor, Tensor, Tensor]:
        shape = self.shape
        parts = (_normed(hidden) @ layer["qkv"]).view(len(hidden), 3, shape.heads, shape.head_size)
        query, key, value = parts.unbind(1)
        return self._rotate(query, position), self._rotate(key, position), value

    def _rotate(self, vectors: Tensor, position: int) -> Tensor:
        angles = torch.outer(torch.arange(position, position + len(vectors), dtype=torch.float32), self._frequencies)
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        even, odd = vectors[..., 0::2], vectors[..., 1::2]
        return torch.cat([even * cos - odd * sin, even * sin + odd * cos], dim=-1)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, position: int) -> Tensor:
        scores = torch.einsum("qhd,khd->hqk", query, keys) / self.shape.head_size**0.5
        rows = torch.arange(position, position + len(query))
        hidden = torch.arange(len(keys))[None] > rows[:, None]
        mixed = torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, float("-inf")).softmax(-1), values)
        return mixed.reshape(len(query), self.shape.width)


def as_cache(block: memoryview, shape: Shape) -> Tensor:
    """The block's bytes as a tensor, without a copy; they stay in use for as long as the tensor exists.

    torch takes no buffer export. It keeps the object that it is given; so it gets a slice of its own, which nobody else
    can release, and which keeps the region mapped. Of the mapping itself it would keep nothing that forbids the unmapping.
    """
    tensor: Any = torch.frombuffer(block[:], dtype=torch.float32, count=shape.block_bytes // 4)
    cache: Tensor = tensor.view(shape.cache_shape)
    return cache


def _normed(hidden: Tensor) -> Tensor:
    normed: Tensor = functional.rms_norm(hidden, (hidden.shape[-1],))
    return normed
