"""The demo, as its users run it: a program with an exit code, a report, and memory that is held or gone."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from examples.kv_offload.assembly import HANG_LIMIT
from lifegraph import Fate, Report

ROOT = Path(__file__).resolve().parents[2]
MEMORY = {"pool", "registration", "mapping"}
EVERYTHING = MEMORY | {
    "engine",
    "manager",
    "disk",
    "directory",
    "peer",
    "peer process",
    "view(engine)",
    "view(disk)",
    "view(peer)",
    "link(disk)",
    "link(peer)",
}


class Run:
    """A finished run of the demo."""

    def __init__(self, path, arguments, **options):
        self.report_path = path / "report.json"
        command = [sys.executable, "-m", "examples.kv_offload", *arguments, "--report", str(self.report_path)]
        began = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, **options)
        self.seconds = time.monotonic() - began
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def report(self):
        return Report.from_json(self.report_path.read_text())

    def fates(self):
        """Names by fate."""
        by_fate: dict[Fate, set[str]] = {}
        for name, fate in self.report.fates.items():
            by_fate.setdefault(fate, set()).add(name)
        return by_fate

    def count(self, source):
        """Blocks served from there."""
        found = re.search(rf"^  {source} +(\d+)", self.out, re.MULTILINE)
        assert found, self.out
        return int(found[1])


@pytest.fixture
def demo(tmp_path):
    """Runs the demo on a small region with its files in the test's directory."""

    def run(*arguments, **options):
        return Run(tmp_path, [*arguments, "--size", "16M", "--dir", str(tmp_path / "kv")], **options)

    return run


def test_all_is_released(demo):
    """Exit 0, every resource released, the region unmapped; a second run finds the blocks on the disk."""
    first = demo()
    assert (0, "") == (first.code, first.err)
    assert {Fate.RELEASED: EVERYTHING} == first.fates()
    assert "unmapped" in first.out
    assert "wrong 0, failed 0, cancelled 0, refused 0" in first.out
    assert first.count("peer") > 0
    assert first.count("disk") > 0
    second = demo()
    assert 0 == second.code
    assert second.count("computed") < first.count("computed") / 2


def test_a_temporary_directory_is_removed(tmp_path):
    """Without --dir nothing is left behind."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    run = Run(tmp_path, ["--size", "8M"], env={**os.environ, "TMPDIR": str(scratch)})
    assert 0 == run.code
    assert [] == list(scratch.iterdir())


@pytest.mark.parametrize(
    ("arguments", "fate"), [(["--fail", "disk:stop"], Fate.FAILED), (["--hang", "disk"], Fate.TIMED_OUT)]
)
def test_a_disk_tier_that_does_not_stop_holds_the_memory_and_its_directory(demo, arguments, fate):
    """Exit 3, promptly; the peer is released; the region stays mapped and locked with its bytes intact."""
    run = demo(*arguments)
    assert 3 == run.code
    held = MEMORY | {"view(disk)", "directory"}
    assert {fate: {"disk"}, Fate.POISONED: held, Fate.RELEASED: EVERYTHING - held - {"disk"}} == run.fates()
    assert "held, 16.0 MiB still mapped rw-p, 16.0 MiB locked, bytes intact" in run.out
    assert "Traceback" not in run.err
    assert run.seconds < 20


@pytest.mark.parametrize(
    ("arguments", "fate"), [(["--fail", "peer:stop"], Fate.FAILED), (["--hang", "peer"], Fate.TIMED_OUT)]
)
def test_a_peer_tier_that_does_not_stop_holds_the_memory_and_its_process(demo, arguments, fate):
    """Exit 3; the disk is released with its directory; the peer process is not asked to leave, and leaves with ours."""
    run = demo(*arguments)
    assert 3 == run.code
    held = MEMORY | {"view(peer)", "peer process"}
    assert {fate: {"peer"}, Fate.POISONED: held, Fate.RELEASED: EVERYTHING - held - {"peer"}} == run.fates()
    assert "bytes intact" in run.out


@pytest.mark.parametrize("tier", ["disk", "peer"])
def test_a_tier_that_does_not_start_leaves_nothing_behind(demo, tier):
    """Exit 2; what was up is released, the rest was never begun; the error is in the report."""
    run = demo("--fail", f"{tier}:start")
    assert 2 == run.code
    assert {Fate.RELEASED, Fate.SKIPPED} == set(run.fates())
    assert f"link({tier})" in run.fates()[Fate.SKIPPED]
    assert "injected" in run.report.outcomes[tier].start_error
    assert "injected" in run.err


def test_both_faults_at_once_are_both_named(demo):
    """Each holds what it uses, and the memory has two causes."""
    run = demo("--fail", "disk:stop", "--hang", "peer")
    assert 3 == run.code
    assert {"disk", "peer"} == set(run.report.outcomes["mapping"].causes)


def test_a_tier_that_lies_is_found_out(demo):
    """Its stop says ok while a thread of it reads into the region: exit 3, the region is held, the peer is released."""
    run = demo("--lie", "disk")
    assert 3 == run.code
    assert {"registration", "mapping"} <= set(run.report.poisoned)
    assert "peer" in run.report.released
    assert "still mapped rw-p" in run.out
    assert "bytes intact" in run.out


def test_the_death_of_a_peer_costs_blocks_and_no_more(demo):
    """SIGKILL half-way: exit 0, every block served is right, and everything is released."""
    run = demo("--kill", "peer")
    assert 0 == run.code, run.err
    assert "injected  SIGKILL to peer process" in run.out
    assert {Fate.RELEASED: EVERYTHING} == run.fates()
    assert "every one checked byte for byte" in run.out


class Going:
    """A run of the demo that goes on meanwhile. Temporary directories are made in `scratch`."""

    def __init__(self, path, *arguments):
        self.report_path = path / "report.json"
        self.scratch = path / "scratch"
        self.scratch.mkdir()
        command = [sys.executable, "-u", "-m", "examples.kv_offload", *arguments, "--report", str(self.report_path)]
        environ = {**os.environ, "TMPDIR": str(self.scratch)}
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, process_group=0
        )
        assert self.process.stdout is not None
        self.stdout = self.process.stdout
        os.set_blocking(self.stdout.fileno(), False)
        self.out = b""

    def hears(self, beginning):
        """Wait until it says a line with that beginning."""
        end = time.monotonic() + 60
        while not re.search(rf"^{beginning}.*\n", self.out.decode(), re.MULTILINE):
            ready, _, _ = select.select([self.stdout], [], [], max(0, end - time.monotonic()))
            more = os.read(self.stdout.fileno(), 1 << 16) if ready else b""
            assert more, f"never said {beginning!r}: {self.out.decode()}"
            self.out += more

    def over(self):
        """Wait for its end: the exit code, and what it said on stderr."""
        os.set_blocking(self.stdout.fileno(), True)
        out, err = self.process.communicate(timeout=60)
        self.out += out
        return self.process.returncode, err.decode()

    @property
    def report(self):
        return Report.from_json(self.report_path.read_text())


@pytest.fixture
def going(tmp_path):
    """Begins a run of the demo, which is killed after the test."""
    runs = []

    def begin(*arguments):
        runs.append(Going(tmp_path, *arguments))
        return runs[-1]

    yield begin
    for run in runs:
        run.process.kill()
        run.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_traffic_releases_everything(going, number):
    """The serving ends, the teardown is the ordinary one, and no temporary directory is left: exit 0."""
    run = going()
    run.hears("prompts 50/200")
    run.process.send_signal(number)
    code, err = run.over()
    assert 0 == code, err
    assert "Traceback" not in err
    assert EVERYTHING == set(run.report.released)
    assert b"prompts 200/200" not in run.out
    assert b"unmapped" in run.out
    assert [] == list(run.scratch.iterdir())


def test_a_second_signal_does_not_wait_for_a_tier_that_hangs(going, tmp_path):
    """The second SIGTERM gives the hung stop up at once: exit 3, with all that it may still use held."""
    run = going("--hang", "disk", "--size", "16M", "--dir", str(tmp_path / "kv"))
    run.hears("region")
    run.process.send_signal(signal.SIGTERM)
    run.hears("injected")
    threading.Event().wait(0.1)  # at once it would be taken for the same signal again
    run.process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    code, err = run.over()
    assert 3 == code
    assert time.monotonic() - began < HANG_LIMIT
    assert "disk" in run.report.timed_out
    assert MEMORY | {"view(disk)", "directory"} <= set(run.report.poisoned)
    assert "given up" in run.report.outcomes["disk"].error
    assert re.search(r"was hurried; not released: .*disk", err)
    assert b"still mapped rw-p" in run.out


def test_a_failed_start_is_not_told_as_a_good_end(demo):
    """The first line of the tree says that the start failed, and that nothing is held."""
    run = demo("--fail", "disk:start")
    assert "kv_offload: start failed; all that was up is released after" in run.err


def low_limit():
    """In the child: 8 MiB of locked memory, and no right to pass by the limit."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (8 << 20, 8 << 20))
    drop, ipc_lock = 24, 14  # PR_CAPBSET_DROP, CAP_IPC_LOCK; refused, and not needed, where we are not root
    ctypes.CDLL(None).prctl(drop, ipc_lock, 0, 0, 0)


def test_a_low_limit_shrinks_the_region_with_a_notice(tmp_path):
    """The region is smaller, and still pinned."""
    run = Run(tmp_path, ["--dir", str(tmp_path / "kv")], preexec_fn=low_limit)
    assert (0, "") == (run.code, run.err)
    assert "the region is 8.0 MiB, not 256.0 MiB: RLIMIT_MEMLOCK" in run.out
    assert "8.0 MiB, mlock, 8.0 MiB locked" in run.out


def test_explain_tells_what_is_held_and_why(demo):
    """From the report alone."""
    run = demo("--fail", "disk:stop")
    command = [sys.executable, "-m", "examples.kv_offload", "explain", "--report", str(run.report_path)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "cannot release mapping" in told.stdout
    assert "injected: the stop fails" in told.stdout
    one = subprocess.run([*command, "pool"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "cannot release pool" in one.stdout
    assert "cannot release mapping" not in one.stdout


def test_plan_shows_everything_and_starts_nothing():
    """Every resource is named."""
    command = [sys.executable, "-m", "examples.kv_offload", "plan"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert all(name in told.stdout for name in EVERYTHING)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "many"], "not a size"),
        (["--size", "1M"], "4.0 MiB to"),
        (["--size", "-1"], "not a size"),
        (["--size", "1024G"], "are available"),
        (["--fail", "disk"], "TIER:stop or TIER:start"),
        (["--fail", "tape:stop"], "tiers are peer, nixl, redis, disk"),
        (["--hang", "tape"], "invalid choice"),
        (["--hang", "disk", "--fail", "disk:stop"], "one fault at a time"),
        (["--dir", "pyproject.toml"], "not a directory"),
        (["--report", "/nowhere/report.json"], "no file can be written"),
        (["run", "disk"], "takes no name"),
        (["--lie", "nixl"], "no tier nixl in --tiers peer,disk"),
        (["--kill", "disk"], "invalid choice"),
        (["--tiers", "disk,tape"], "write some of"),
        (["--tiers", "disk,disk"], "write some of"),
        (["--policy", "fifo"], "invalid"),
        (["fly"], "invalid choice"),
        (["explain", "--report", "/nowhere/report.json"], "no report to explain"),
    ],
)
def test_wrong_use_is_one_clear_error(arguments, message):
    """Exit 2, no traceback, nothing started."""
    command = [sys.executable, "-m", "examples.kv_offload", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (2, "") == (done.returncode, done.stdout)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_report_that_is_none_is_said_to_be_none(tmp_path):
    """Any other JSON is refused."""
    (tmp_path / "report.json").write_text(json.dumps([1, 2]))
    command = [sys.executable, "-m", "examples.kv_offload", "explain", "--report", str(tmp_path / "report.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert 2 == done.returncode
    assert "no report to explain" in done.stderr
