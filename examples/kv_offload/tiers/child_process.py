"""A process of ours, as something with a life: started, asked to leave, and killed with its group where it does not."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]


class ChildProcess:
    """A Python module run in a process group of its own: a Ctrl-C at the terminal does not reach it.

    It is asked to leave by the end of its stdin; so it never outlives this process, however that one ends.
    """

    def __init__(self, *, limit: float = 10.0) -> None:
        self._limit = limit
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self, module: str, arguments: Sequence[str], greeting: bytes, environ: Mapping[str, str]) -> bytes:
        """Start it, write `greeting` to it, and return the first line it says.

        Raises RuntimeError where it does not say any within the limit (seconds).
        """
        command = [sys.executable, "-m", module, *arguments]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            process_group=0,
            env={**os.environ, **environ},
        )
        assert self._process.stdin is not None
        self._process.stdin.write(greeting + b"\n")
        self._process.stdin.flush()
        return self._first_line(self._process)

    def say(self, line: bytes) -> None:
        """Write a line to it. Raises BrokenPipeError where it is gone."""
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def hear(self) -> bytes:
        """The next line that it says; nothing where it is gone. Waits as long as that takes."""
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout.readline()

    def stop(self) -> None:
        """Ask it to leave, wait, reap. Raises subprocess.TimeoutExpired where it does not leave within the limit."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):  # it has gone already
            process.stdin.close()
        process.wait(self._limit)
        process.stdout.close()

    def kill(self) -> None:
        """SIGKILL to its group, and reap: proof that it has ended."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            with suppress(ProcessLookupError):  # it ended at this moment
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # it has gone already
                    pipe.close()

    def is_stopped(self) -> bool:
        """True once the process has been seen to end, or if there never was one."""
        return self._process is None or self._process.poll() is not None

    @property
    def pid(self) -> int:
        """Its process id, or 0 before start."""
        return 0 if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        """True while the process has not been seen to end."""
        return not self.is_stopped()

    def _first_line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + self._limit
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
            if not chunk:
                raise RuntimeError(f"{process.args!r} did not say that it is ready within {self._limit} s, or ended")
            line += chunk
        return line
