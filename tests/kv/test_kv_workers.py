"""Worker processes that compute into a region which all of them map."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.kv_offload.assembly import Settings, assemble
from examples.kv_offload.matrix.table import processes_of
from examples.kv_offload.serving.prompts import Workload, prompts
from lifegraph import Report

from .killing import gone

ROOT = Path(__file__).resolve().parents[2]
WORK = Workload(12, prefixes=3, prefix_blocks=8, suffix_blocks=2)


def names():
    """What is in /dev/shm."""
    return {path.name for path in Path("/dev/shm").iterdir() if "-test-" not in path.name}


def test_blocks_are_computed_by_workers(tmp_path):
    """Every one is right, all processes are released, and the name was gone as soon as all had mapped the region."""
    before = names()
    with assemble(Settings(4 << 20, tmp_path, tiers=("disk",), workers=2)) as graph:
        assert before >= names()
        graph["engine"].serve(prompts(WORK))
        assert graph["engine"].served["computed"] > 0
        assert "computed by 2 worker processes" in graph["engine"].checked
        pids = [graph[f"worker {rank}"].pid for rank in (1, 2)]
        graph["manager"].flush(20)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert before >= names()


def test_a_worker_that_dies_ends_the_traffic_and_no_more(tmp_path):
    """Its prompt fails with its name; the pins are given back; everything is released."""
    with assemble(Settings(4 << 20, tmp_path, tiers=("disk",), workers=2)) as graph:
        graph["engine"].serve(prompts(WORK))
        graph["manager"].flush(20)
        graph["pool"].reset()
        os.kill(graph["worker 1"].pid, signal.SIGKILL)
        with pytest.raises(ConnectionError):
            graph["engine"].serve(prompts(Workload(3, prefixes=1, prefix_blocks=4, suffix_blocks=1, seed=9)))
        assert {} == graph["pool"].owners()


def demo(path, *arguments):
    """The program, in a session of its own."""
    command = [sys.executable, "-u", "-m", "examples.kv_offload", "--size", "4M", "--workers", "2", *arguments]
    return subprocess.Popen(
        [*command, "--report", str(path / "report.json")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_a_killed_program_leaves_no_worker_and_no_name(tmp_path):
    """SIGKILL in the middle of the traffic."""
    before = names()
    run = demo(tmp_path)
    while not run.stdout.readline().startswith("prompts"):
        assert run.poll() is None
    assert len(processes_of(run.pid)) >= 4
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert [] == gone(run.pid)
    assert before >= names()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--torch"], "leave --workers out"), (["--workers", "-1"], "0 to 1023"), (["--workers", "5000"], "0 to 1023")],
)
def test_wrong_use(tmp_path, arguments, says):
    """Exit 2, before anything is started."""
    said, _ = (run := demo(tmp_path, *arguments)).communicate(timeout=60)
    assert 2 == run.returncode
    assert says in said


def test_a_whole_run_with_workers(tmp_path):
    """Exit 0; the report has the workers, the crew, the name and the file, all released."""
    run = demo(tmp_path)
    said, _ = run.communicate(timeout=120)
    assert 0 == run.returncode, said
    report = Report.from_json((tmp_path / "report.json").read_text())
    assert {"worker 1", "worker 2", "crew", "name", "file", "mapping"} <= set(report.released)
