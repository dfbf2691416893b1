"""Processes that ignore SIGTERM, with children of their own: their proof is the end of the whole group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lifegraph import resource
from tests.evidence.stage import Stage
from tests.graph.world import PATIENCE, fates, until

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"%d\\n" % os.getpid())
while True: time.sleep(60)  # it never ends by itself
"""


def alive(pid: int) -> bool:
    """Whether it runs, zombies aside."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


class Worker:
    """A process group of two that does not listen."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", STUBBORN], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        self.pids = [int(self.process.stdout.readline()) for _ in range(2)]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE * 2)

    def is_stopped(self) -> bool:
        return self.process.poll() is not None and not any(map(alive, self.pids))

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        until(lambda: not any(map(alive, self.pids)))

    def close(self) -> None:
        with_group = alive(self.process.pid) or any(map(alive, self.pids))
        if with_group:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    """All that were made; none outlives the test."""
    made: list[Worker] = []
    yield made
    for each in made:
        each.close()


def test_a_process_that_ignores_sigterm_is_killed_with_its_group(stage: Stage, workers: list[Worker]) -> None:
    """Its stop hangs, is_stopped says no, kill reaps it and its child, and what it used is released then."""
    kind: Any = resource(name="worker", depends_on=["memory"], stop="stop", stop_timeout=0.3, is_stopped_timeout=10)(
        Worker
    )
    graph = stage.up(stage.kind("memory", stop=lambda: seen.append([alive(pid) for pid in workers[0].pids])), kind)
    seen: list[list[bool]] = []
    workers.append(graph["worker"])
    assert [True, True] == [alive(pid) for pid in workers[0].pids]
    report = stage.way.teardown(graph)
    assert {"memory": "released", "worker": "released"} == fates(report)
    assert ("worker",) == report.forced
    assert [[False, False]] == seen


def test_a_grandchild_that_lives_on_is_no_proof(stage: Stage, workers: list[Worker]) -> None:
    """A kill that forgets the group returns, and is_stopped does not say yes: what it uses stays."""

    class Careless(Worker):
        def kill(self) -> None:
            self.process.kill()
            self.process.wait(PATIENCE)

    kind: Any = resource(name="worker", depends_on=["memory"], stop="stop", stop_timeout=0.3, is_stopped_timeout=10)(
        Careless
    )
    graph = stage.up(stage.kind("memory"), kind)
    workers.append(graph["worker"])
    report = stage.way.teardown(graph)
    assert {"memory": "poisoned", "worker": "timed_out"} == fates(report)
    assert () == report.forced
