"""The bench runs, says what is missing, and what it measures is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.kv_offload.bench import costs, page

ROOT = Path(__file__).resolve().parents[2]


def bench(directory, *arguments):
    """The verb, small and once."""
    command = [sys.executable, "-m", "examples.kv_offload", "bench", "--quick", "--dir", str(directory), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_it_runs_and_says_that_vllm_is_absent(tmp_path):
    """Every table, on the terminal and as a page; a peer that is not there is said to be, with the cure; no file stays."""
    told = tmp_path / "page.md"
    done = bench(tmp_path, "--vllm", str(tmp_path / "nowhere"), "--markdown", str(told))
    assert 0 == done.returncode, done.stderr
    assert "vLLM is not beside it" in done.stdout
    assert "pip install --no-deps vllm==" in done.stdout
    assert 7 == told.read_text().count("\n## ")
    assert ["page.md"] == [path.name for path in tmp_path.iterdir()]


VLLM = Path(os.environ.get("KV_VLLM_PYTHON", ROOT / page.VLLM))


@pytest.mark.slow
@pytest.mark.skipif(not VLLM.exists(), reason=f"needs an environment with vLLM: {VLLM}, or KV_VLLM_PYTHON")
def test_beside_vllm(tmp_path):
    """Its tier takes part, with all of its blocks stored and loaded."""
    done = bench(tmp_path, "--vllm", str(VLLM))
    assert 0 == done.returncode, done.stderr
    assert 2 == done.stdout.count("vLLM's file tier")


def test_nothing_goes_unreported_in_a_teardown_with_a_full_queue():
    """Every block that was handed in is stored, failed, cancelled or refused, and every job is settled."""
    told = costs.busy_teardown(8 << 20)
    assert "0" == told["unreported"]
    assert "0" == told["failed"]
    assert int(told["cancelled"]) > 0
    assert "400 of 400" == told["jobs settled"]
