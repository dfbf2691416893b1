"""A child process to talk with: it says lines, is sent signals, and has to end in time."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import IO, Self

import pytest

from lifegraph import DeclarationError, Graph, resource
from tests.conftest import Child

PATIENCE = 15.0
"""Seconds after which a child that says nothing, or does not end, fails its test."""

APART = 0.3
"""Seconds between two signals of one kind to one child."""

PRELUDE = """
import asyncio, atexit, contextvars, gc, logging, os, signal, subprocess, sys, threading, time, traceback, warnings
import lifegraph
from lifegraph import Graph, GraphStateError, resource

def say(text, write=os.write):
    write(1, (str(text) + "\\n").encode())

gate = threading.Event()  # whatever hangs, hangs here for ever
go = threading.Event()

def listen():
    '''The next line from the test; `gate` hangs where there is none.'''
    return sys.stdin.readline().strip()

def kind(name, *depends_on, start=None, stop=None, drain=None, **options):
    '''A resource that says when its hooks begin and end.'''
    def hook(word, action):
        def run(self):
            say(f"{word} {name}")
            if action is not None:
                action()
            say(f"{word} {name} done")
        return run
    body = {"start": hook("start", start), "stop": hook("stop", stop)}
    if drain is not None:
        body["drain"] = hook("drain", drain)
    return resource(name=name, depends_on=list(depends_on), **options)(type(name.title(), (), body))

def fates(report):
    return " ".join(f"{name}={fate}" for name, fate in sorted(report.fates.items()))

def raises(error):
    def hook(*_):
        raise error
    return hook
"""
"""What the programs have in common."""


def needs_inner_graphs() -> None:
    """Skip the test where a graph cannot be a resource of another."""
    try:
        Graph().add(Graph(name="inner"))
    except DeclarationError:
        pytest.skip("a graph is no resource here")


def needs_drain() -> None:
    """Skip the test where no drain hooks are called."""
    told: list[int] = []

    class Drains:
        def drain(self) -> None:
            told.append(1)

        def stop(self) -> None: ...

    with Graph(resource(Drains)):
        pass
    if not told:
        pytest.skip("drain hooks are not called here")


def pace(pid: int) -> None:
    """Wait until no signal is pending for the process: two of one kind, at once, become one."""
    end = time.monotonic() + PATIENCE
    mask = sum(1 << (number - 1) for number in (signal.SIGTERM, signal.SIGINT))
    while time.monotonic() < end:
        status = Path(f"/proc/{pid}/status").read_text()
        pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
        if not any(each & mask for each in pending):
            return


class Talk:
    """A running child. Whatever goes wrong, it and all its children are killed at the end."""

    def __init__(
        self,
        child: Child,
        program: str,
        *args: str,
        env: Mapping[str, str] | None = None,
        prelude: str = PRELUDE,
        options: tuple[str, ...] = (),
        cwd: Path | None = None,
    ) -> None:
        self.lines: list[str] = []
        self._sent: dict[int, float] = {}
        self._rest = b""
        self._ended = False
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the talk
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
        environ |= {
            "PYTHONPATH": str(child.full),
            "PYTHONNOUSERSITE": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONFAULTHANDLER": "1",  # a child that is killed for being late says where it was
        }
        self.process = subprocess.Popen(
            [child.python.path, "-S", *options, "-c", prelude + program, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=environ | dict(env or {}),
            start_new_session=True,
            cwd=cwd,
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.process.stdout, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self._selector.close()
        for stream in (self.process.stdin, self.process.stdout, self._said):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    @property
    def pid(self) -> int:
        """The child's."""
        return self.process.pid

    @property
    def stderr(self) -> str:
        """What it has written there so far."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")

    def hears(self, *lines: str) -> None:
        """Wait until the child has said all these ``lines``, in any order, since the last time."""
        end = time.monotonic() + PATIENCE
        wanted = set(lines)
        while wanted:
            while b"\n" in self._rest and wanted:
                first, self._rest = self._rest.split(b"\n", 1)
                self.lines.append(first.decode())
                wanted.discard(self.lines[-1])
            if wanted and (self._ended or not self._more(end)):
                self.fail(f"never said {sorted(wanted)}")

    def writes(self, text: str) -> None:
        """Wait until ``text`` is on its stderr."""
        end = time.monotonic() + PATIENCE
        while text not in self.stderr:
            if time.monotonic() > end or self.process.poll() is not None:
                self.fail(f"never wrote {text!r} on stderr")
            self._selector.select(0.005)  # or it says something

    def tell(self, line: str = "") -> None:
        """Say a line to the child."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def signal(self, *numbers: Signals) -> None:
        """Send it these, at the pace of people: the same twice at once is one, as `timeout` sends it."""
        for number in numbers:
            rest = self._sent.get(number, 0.0) + APART - time.monotonic()
            if rest > 0:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(rest)
            self._sent[number] = time.monotonic()
            os.kill(self.pid, number)

    def signal_group(self, number: Signals) -> None:
        """Send it, and all its children, this."""
        os.killpg(self.pid, number)

    def over(self, code: int | None = None, within: float = PATIENCE) -> int:
        """Wait for its end; the exit code (minus the signal that killed it), which has to be ``code``."""
        end = time.monotonic() + within
        try:
            found = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.fail(f"did not end within {within} s")
        while not self._ended and self._more(min(end, time.monotonic())):
            pass
        self.lines += self._rest.decode(errors="replace").splitlines()
        self._rest = b""
        if code is not None and found != code:
            pytest.fail(f"exit code {found}, not {code}\n{self.account()}")
        return found

    def account(self) -> str:
        """What it said, for people."""
        said = "\n".join(self.lines)
        return f"--- it said\n{said}\n--- stderr\n{self.stderr}"

    def fail(self, why: str) -> None:
        """Fail the test; the child says where its threads are."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGABRT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        pytest.fail(f"{why}; exit code {self.process.returncode}\n{self.account()}")

    def _more(self, end: float) -> bool:
        """Read on; False when nothing came in time."""
        assert self.process.stdout is not None
        if not self._selector.select(max(end - time.monotonic(), 0)):
            return False
        got = os.read(self.process.stdout.fileno(), 1 << 16)
        self._ended = not got
        self._rest += got
        return True
