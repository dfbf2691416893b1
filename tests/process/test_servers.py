"""Servers that own the process: gunicorn's prefork workers with a graph each, and uvicorn's lifespan."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

PATIENCE = 30.0

PROGRAM = """
import os, threading
from lifegraph import Graph, GraphStateError, resource

def say(text):
    with open(os.environ["SAID"], "a") as file: file.write(f"{text}\\n")

class Base:
    def start(self): say(f"start base {os.getpid()}")
    def stop(self): say(f"stop base {os.getpid()}")
class Top:
    def start(self): say(f"start top {os.getpid()}")
    def stop(self): say(f"stop top {os.getpid()}")
Base, Top = resource(name="base")(Base), resource(name="top", depends_on=["base"])(Top)
graph = Graph(Top, Base, name="worker")
"""

APP = (
    PROGRAM
    + """
class Master:
    def start(self): say(f"start master {os.getpid()}")
    def stop(self): say(f"stop master {os.getpid()}")
master = Graph(resource(name="master")(Master), name="master")
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {graph.state}".encode()]
"""
)

CONF = """
import os, app
from lifegraph import GraphStateError
bind, workers, worker_class, threads = "127.0.0.1:0", 2, os.environ["WORKER"], 2
loglevel, preload_app, graceful_timeout, control_socket_disable = "warning", os.environ["PRELOAD"] == "1", 10, True
master = app.master  # this file is read anew with each HUP, that module is not
def when_ready(server):
    app.say(f"ready {server.LISTENERS[0].getsockname()[1]} {os.getpid()}")
def on_starting(server):
    if preload_app: master.start()
def post_fork(server, worker):
    if preload_app:
        try: master.teardown()
        except GraphStateError: app.say(f"inert {os.getpid()}")
def post_worker_init(worker):
    import app
    app.graph.start()
    app.say(f"up {os.getpid()}")
def worker_exit(server, worker):
    import app
    app.say(f"report {app.graph.teardown().ok}")
def on_exit(server):
    if preload_app: app.say(f"master's {master.teardown().ok}")
"""

LIFESPAN = (
    PROGRAM
    + """
from contextlib import asynccontextmanager
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        try:
            assert (await receive())["type"] == "lifespan.startup"
            async with graph:
                await send({"type": "lifespan.startup.complete"})
                assert (await receive())["type"] == "lifespan.shutdown"
            say(f"report {graph.report.ok}")
            await send({"type": "lifespan.shutdown.complete"})
        except BaseException as why:
            say(f"raised {why!r}")
            raise
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": f"{os.getpid()} {graph.state}".encode()})
"""
)

INSIDE_RUN = (
    LIFESPAN.replace("async with graph:", "if True:").replace('say(f"report {graph.report.ok}")', "")
    + """
import sys, uvicorn
async def main(graph):
    config = uvicorn.Config(app, port=int(sys.argv[1]), log_level="warning")
    await uvicorn.Server(config).serve()
    say("served")
if __name__ == "__main__":
    sys.exit(graph.run(main))
"""
)


class Server:
    """A server in a process of its own, and what it and its workers wrote into one file."""

    def __init__(self, folder: Path, *command: str, **env: str) -> None:
        self.said = folder / "said"
        self.said.write_text("")
        self._log = (folder / "log").open("w+")
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
        environ |= {"SAID": str(self.said), "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"} | env
        self.process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=environ,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def lines(self, word: str) -> list[str]:
        """The lines that begin with it, without it."""
        return [
            line.removeprefix(word).strip()
            for line in self.said.read_text().splitlines()
            if line.startswith(f"{word} ")
        ]

    def until(self, count: int, word: str) -> list[str]:
        """Wait for so many lines that begin with it; other processes write them, and nothing tells of it."""
        end = time.monotonic() + PATIENCE
        while len(found := self.lines(word)) < count:
            if time.monotonic() > end or self.process.poll() is not None:
                pytest.fail(f"only {found} of {count} {word!r}\n{self.account()}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
        return found

    def over(self) -> int:
        """Its exit code."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"never ended\n{self.account()}")

    def account(self) -> str:
        """All that is known of it."""
        self._log.seek(0)
        return f"--- said\n{self.said.read_text()}\n--- log\n{self._log.read()}"

    def close(self) -> None:
        """Kill what is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self._log.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    """Begins a server; it is killed after the test."""
    servers: list[Server] = []

    def begin(*command: str, **env: str) -> Server:
        servers.append(Server(tmp_path, *command, **env))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


def ask(port: int) -> str:
    """What the server answers."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                text = answer.read().decode()
                assert isinstance(text, str)
                return text
        except OSError:  # it does not listen yet
            assert time.monotonic() < end, "never answered"


def free_port() -> int:
    """One that nobody listens to now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    assert isinstance(number, int)
    return number


@pytest.mark.parametrize("preload", [False, True], ids=["", "preload"])
@pytest.mark.parametrize("worker", ["sync", "gthread"])
def test_gunicorn(serve: Any, tmp_path: Path, worker: str, preload: bool) -> None:
    """Each worker starts its own graph; HUP replaces workers, TERM ends all: each graph is stopped once, where it was started."""
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "conf.py").write_text(CONF)
    server = serve("-m", "gunicorn", "-c", "conf.py", "app:app", WORKER=worker, PRELOAD=str(int(preload)))
    port = int(server.until(1, "ready")[0].split()[0])
    first = server.until(2, "up")
    pid, state = ask(port).split()
    assert (True, "running") == (pid in first, state)
    server.process.send_signal(signal.SIGHUP)
    second = server.until(4, "up")[2:]
    server.until(2, "report")
    assert set(first) == set(server.lines("stop top"))
    pid, state = ask(port).split()
    assert (True, "running") == (pid in second, state)
    server.process.send_signal(signal.SIGTERM)
    assert 0 == server.over(), server.account()
    assert sorted(first + second) == sorted(server.lines("stop top")) == sorted(server.lines("stop base")), (
        server.account()
    )
    assert ["True"] * 4 == server.lines("report")
    if preload:
        master = str(server.process.pid)
        assert [master] == server.lines("start master") == server.lines("stop master"), server.account()
        assert 4 == len(server.lines("inert"))
        assert ["True"] == server.lines("master's")
    assert "never torn down" not in server.account()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_uvicorn_lifespan(serve: Any, tmp_path: Path, number: signal.Signals) -> None:
    """A graph around uvicorn's lifespan is up while requests are served, and down, in order, when it ends."""
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    (tmp_path / "app.py").write_text(LIFESPAN)
    port = free_port()
    server = serve("-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "warning")
    server.until(1, "start top")
    assert "running" == ask(port).split()[1]
    server.process.send_signal(number)
    server.over()
    assert ["True"] == server.lines("report"), server.account()
    assert 1 == len(server.lines("stop base")) == len(server.lines("stop top"))
    assert "never torn down" not in server.account()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_uvicorn_inside_run(serve: Any, tmp_path: Path, number: signal.Signals) -> None:
    """uvicorn served from an async main: whoever of the two takes the signal, the server and then the graph end."""
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    (tmp_path / "app.py").write_text(INSIDE_RUN)
    port = free_port()
    server = serve("app.py", str(port))
    assert "running" == ask(port).split()[1]
    server.process.send_signal(number)
    code = server.over()
    assert 1 == len(server.lines("stop base")) == len(server.lines("stop top")), server.account()
    assert 0 == code, server.account()
    assert "never torn down" not in server.account()
