"""What is told: metrics, who holds what, and what a scrub finds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.kv_offload import metrics
from examples.kv_offload.scrub import scrub
from examples.kv_offload.serving.prompts import content
from examples.kv_offload.tiers.directory import Directory
from examples.kv_offload.tiers.disk_tier import DiskTier
from examples.kv_offload.tiers.pack_files import PackFiles
from examples.kv_offload.tiers.pack_format import HEADER_BYTES, seal

from .conftest import BLOCK, Batch

ROOT = Path(__file__).resolve().parents[2]


def demo(*arguments):
    """The command line, run."""
    command = [sys.executable, "-m", "examples.kv_offload", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def samples(text):
    """Values by name and labels."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r'[a-z_]+(\{([a-z]+="[^"]*",?)*\})? [-+.e\d]+', line) for line in lines), text
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_metrics_say_who_holds_what_for_how_long(memory, tmp_path, key):
    """Region, blocks by state, holders with bytes and age, and the tier's counts, in Prometheus' format."""
    tier = DiskTier(memory.view(), Directory(tmp_path), 64 << 20)
    tier.start()
    keys = [key(1), key(2)]
    slots = memory.pool.reserve(keys, "engine")
    memory.pool.commit(keys, "engine", pin_for=['a "quoted" holder'])
    batch = Batch()
    tier.submit_store(batch.job("store", keys, slots))
    batch.wait()
    text = metrics.prometheus(memory.mapping, memory.registration, memory.pool, [tier])
    told = samples(text.replace(r"\"", "'"))
    assert memory.size == told["kv_offload_region_bytes"] == told["kv_offload_pinned_bytes"]
    assert 2 == told['kv_offload_blocks{state="pinned"}']
    assert 2 * BLOCK == told["kv_offload_holder_bytes{holder=\"a 'quoted' holder\"}"]
    assert told["kv_offload_holder_age_seconds{holder=\"a 'quoted' holder\"}"] >= 0
    assert 2 == told['kv_offload_tier_stored_total{tier="disk"}']
    assert len(set(metrics.names(text))) == len(metrics.names(text))
    memory.pool.unpin(keys, 'a "quoted" holder')
    tier.stop()


def test_a_tier_that_did_not_stop_is_told_with_what_it_holds(tmp_path):
    """On a line of the demo, and as metrics of what is in quarantine."""
    path = tmp_path / "metrics"
    run = demo("--fail", "disk:stop", "--size", "8M", "--report", str(tmp_path / "r.json"), "--metrics", str(path))
    assert 3 == run.returncode
    assert re.search(r"^held      tier 1 \(disk, DiskTierWithStop\) failed: holds .*mapping", run.stdout, re.MULTILINE)
    told = samples(path.read_text())
    assert 8 << 20 == told['kv_offload_held_bytes{resource="mapping"}']
    assert told['kv_offload_held_age_seconds{resource="disk"}'] >= 0


@pytest.fixture
def packs(tmp_path, memory, key):
    """Three packs of two blocks each, by path."""
    files = PackFiles(tmp_path, BLOCK)
    files.open()
    view = memory.view()
    paths = []
    for number in range(3):
        keys = [key(2 * number), key(2 * number + 1)]
        blocks = [view.block(slot) for slot in range(2)]
        for each, block in zip(keys, blocks, strict=True):
            block[:] = content(each, BLOCK)
        paths.append(files.write(seal(keys, blocks), blocks))
    return paths


def change(path, offset, data):
    """Write over a part of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def test_a_scrub_of_what_is_right(packs, tmp_path):
    """Every block is counted; exit 0."""
    found = scrub(tmp_path)
    assert (3, 6, 6 * BLOCK, []) == (found.packs, found.blocks, found.nbytes, found.wrong)
    done = demo("scrub", "--dir", str(tmp_path))
    assert (0, "3 packs, 6 blocks (384.0 KiB) are right, 0 wrong\n") == (done.returncode, done.stdout)


def test_a_scrub_names_what_is_wrong_and_touches_nothing(packs, tmp_path):
    """A changed block, a pack cut short, a header that is none, one of a later version, a leftover: each is said."""
    change(packs[0], HEADER_BYTES + 10, b"\0\0\0\0")
    packs[1].write_bytes(packs[1].read_bytes()[: HEADER_BYTES + BLOCK + 100])
    change(packs[2], 8, b"\x63\0")
    (tmp_path / "none.kvpack").write_bytes(b"x" * HEADER_BYTES)
    (tmp_path / ".left.tmp").write_bytes(b"")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    found = scrub(tmp_path)
    assert (2, 2, 3, 1, 1) == (found.packs, found.blocks, len(found.wrong), len(found.foreign), found.leftover)
    assert any("its checksum is wrong" in line for line in found.wrong)
    assert any("has 100 of 65536 bytes" in line for line in found.wrong)
    assert any("wrong magic" in line for line in found.wrong)
    assert "version 99" in found.foreign[0]
    done = demo("scrub", "--dir", str(tmp_path))
    assert 1 == done.returncode
    assert "left alone" in done.stdout
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_a_scrub_of_nothing_is_wrong_use(tmp_path):
    """Without a directory there is nothing to verify."""
    done = demo("scrub", "--dir", str(tmp_path / "nowhere"))
    assert 2 == done.returncode
    assert "scrub needs the directory" in done.stderr
