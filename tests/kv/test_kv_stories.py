"""The two told stories go as they are told."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from examples.kv_offload.stories import unmapping

from .remote_tiers import needs_nixl

ROOT = Path(__file__).resolve().parents[2]


def told(name):
    """What the script says, and its exit code."""
    command = [sys.executable, "-m", f"examples.kv_offload.stories.{name}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout, done.returncode


def test_unmapping_under_a_transfer_kills_and_holding_does_not():
    """The one child dies of SIGSEGV; the other holds the region, in which the late copy ends, and exits with 3."""
    assert -signal.SIGSEGV == unmapping.happen("unmap").returncode
    held = unmapping.happen("hold")
    assert (3, "tier: failed; region: poisoned, the late copy ended in it: True\n") == (held.returncode, held.stdout)
    assert 0 == told("unmapping")[1]


@needs_nixl
def test_deregistering_is_no_proof_and_destroying_the_agent_is():
    """New pages are written over although both calls said yes; with the fence none is."""
    said, code = told("late_write")
    assert 0 == code, said
    bare, fenced = said.splitlines()
    assert "said yes" in bare
    assert " 0 of " not in bare
    assert " 0 of " in fenced
