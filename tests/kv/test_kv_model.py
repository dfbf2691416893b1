"""The model: it goes on from loaded keys and values as from those it has just computed, bit by bit."""

from __future__ import annotations

import pytest

from examples.kv_offload.memory.region import Mapping
from examples.kv_offload.serving.hierarchy import Hierarchy
from examples.kv_offload.serving.prompts import Workload, prompts
from examples.kv_offload.serving.traffic import COMPUTED, Traffic, WrongBytes
from examples.kv_offload.tiers.directory import Directory
from examples.kv_offload.tiers.disk_tier import DiskTier

from .conftest import BLOCK, BLOCKS

torch = pytest.importorskip("torch", reason="needs the torch extra")
from examples.kv_offload.serving.model_content import ModelContent  # noqa: E402 - only with torch
from examples.kv_offload.serving.transformer import Shape, Transformer, as_cache  # noqa: E402 - only with torch

SHAPE = Shape(layers=2, heads=2, head_size=16, vocabulary=64, block_tokens=8)


def test_a_block_at_a_time_is_the_same_as_all_at_once():
    """Two blocks one after the other give the logits of one block of twice the tokens, up to rounding."""
    tokens = list(range(16))
    double = Shape(layers=2, heads=2, head_size=16, vocabulary=64, block_tokens=16)
    first, second, whole = (torch.empty(shape.cache_shape) for shape in (SHAPE, SHAPE, double))
    model = Transformer(SHAPE)
    logits = [model.extend(tokens[:8], [], first), model.extend(tokens[8:], [first], second)]
    assert torch.allclose(torch.cat(logits), Transformer(double).extend(tokens, [], whole), atol=1e-5)
    assert torch.allclose(torch.cat([first, second], dim=2), whole, atol=1e-5)


def test_the_past_matters():
    """With one number of the cache changed, the logits change: equal logits say something."""
    model = Transformer(SHAPE)
    past, here = torch.empty(SHAPE.cache_shape), torch.empty(SHAPE.cache_shape)
    model.extend(range(8), [], past)
    right = model.extend(range(8), [past], here)
    assert torch.equal(right, model.extend(range(8), [past], here))
    past[0, 0, 3, 0, 5] += 1
    assert not torch.equal(right, model.extend(range(8), [past], here))


def test_a_tensor_over_a_block_keeps_the_region_mapped():
    """It takes a buffer export, so the region refuses to be unmapped under it."""
    region = Mapping(BLOCK)
    region.start()
    block = region.cut(0, BLOCK)
    tensor = as_cache(block, SHAPE)
    tensor[0] = 1.5
    block.release()
    with pytest.raises(BufferError):
        region.stop()
    assert 1.5 == tensor[0, 0, 0, 0, 0]
    del tensor
    region.stop()


def test_logits_with_loaded_blocks_equal_those_recomputed(memory, tmp_path):
    """Over a region that is too small for the work, with all the rest coming from the disk; a wrong byte is noticed."""
    content = ModelContent(SHAPE)
    tier = DiskTier(memory.view(), Directory(tmp_path), 64 << 20)
    tier.start()
    hierarchy = Hierarchy(memory.pool)
    hierarchy.attach(tier, 0)
    traffic = Traffic(hierarchy, memory.view(), content=content, patience=20)
    traffic.start()
    work = list(prompts(Workload(24, prefixes=4, prefix_blocks=6, suffix_blocks=2)))
    traffic.serve(work)
    assert traffic.served["disk"] > 0
    assert content.compared > 0
    assert traffic.served[COMPUTED] < sum(map(len, work))
    assert hierarchy.flush(20)
    memory.pool.evict(BLOCKS)
    [slot] = memory.pool.reserve(work[-1][:1], "test")
    memory.views[1].block(slot)[:4] = b"\1\2\3\4"
    memory.pool.commit(work[-1][:1], "test")
    with pytest.raises(WrongBytes, match="not those that are recomputed"):
        traffic.serve(work[-1:])
    traffic.stop()
    assert hierarchy.flush(20)
    tier.stop()
