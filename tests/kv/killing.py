"""Runs the demo and kills it at a random moment, many times, over one directory."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

from examples.kv_offload.matrix.table import processes_of
from examples.kv_offload.scrub import scrub

ROOT = Path(__file__).resolve().parents[2]
SHM = Path("/dev/shm")
LONGEST = 1.6
"""seconds from the start of the program to its latest death; it takes about half of that to begin"""


def start(directory, report):
    """A run on a small region that keeps its blocks in `directory`; in a session of its own."""
    command = [sys.executable, "-m", "examples.kv_offload", "--size", "4M", "--dir", str(directory)]
    return subprocess.Popen(
        [*command, "--report", str(report)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def sweep(directory, times, seed):
    """Kill as often, then let one run to its end. Says how many were killed while they ran."""
    chance = random.Random(seed)
    names = ours()
    killed = 0
    for number in range(times):
        run = start(directory, directory.parent / "report.json")
        try:
            said, _ = run.communicate(timeout=chance.uniform(0.05, LONGEST))
            assert 0 == run.returncode, said
        except subprocess.TimeoutExpired:
            os.kill(run.pid, signal.SIGKILL)
            said, _ = run.communicate()
            killed += run.returncode == -signal.SIGKILL
        assert "does not hold the bytes" not in said, f"run {number} served wrong bytes"
        assert [] == gone(run.pid), f"run {number} left processes"
        assert names >= ours(), f"run {number} left a name"
        found = scrub(directory) if directory.exists() else None
        assert found is None or [] == found.wrong, f"run {number} left wrong packs under a good name"
    last = start(directory, directory.parent / "report.json")
    said, _ = last.communicate(timeout=120)
    assert 0 == last.returncode, said
    assert "wrong 0" in said
    assert 0 == scrub(directory).leftover
    return killed


def ours():
    """Names in shared memory that are of this program, and not of another test."""
    return {path for path in SHM.iterdir() if "kv_offload" in path.name and "-test-" not in path.name}


def gone(session):
    """The processes of a session that are still there after a generous while."""
    pause = threading.Event()
    for _ in range(300):
        if not (left := processes_of(session)):
            return []
        pause.wait(0.05)
    return left
