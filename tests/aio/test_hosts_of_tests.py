"""Graphs inside other people's loops: test plugins, notebooks, servers."""

from __future__ import annotations

import ast
import asyncio
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.aio.looping import turns, wanted
from tests.conftest import ROOT

SUITE = """
import asyncio, contextvars
from collections.abc import AsyncIterator
import pytest
from lifegraph import Graph, resource

variable = contextvars.ContextVar("variable")
log = []

@resource
async def database():
    token = variable.set("db")
    async with asyncio.timeout(50):
        yield asyncio.current_task()
        assert asyncio.current_task().get_name()
    variable.reset(token)
    log.append("left")

@resource(depends_on=[database])
class Api:
    def start(self): log.append("api up")
    async def aclose(self): log.append("api down")

{fixture}
async def graph():
    async with Graph(Api) as graph:
        yield graph

{mark}
async def test_with_the_fixture(graph):
    assert "running" == graph.state
    assert graph["database"] is not asyncio.current_task()

{mark}
async def test_within():
    log.clear()
    async with Graph(Api): pass
    assert ["api up", "api down", "left"] == log

{mark}
async def test_again(graph):
    graph.request = 1 if False else None
    assert "running" == graph.state

def test_sync_beside():
    log.clear()
    with Graph(Api): pass
    assert ["api up", "api down", "left"] == log
""".replace("    graph.request = 1 if False else None\n", "")

PLUGINS = {
    "pytest-asyncio": (
        "pytest_asyncio",
        "import pytest_asyncio\n@pytest_asyncio.fixture",
        "@pytest.mark.asyncio",
        ["-p", "pytest_asyncio.plugin", "-p", "no:anyio", "-o", "asyncio_default_fixture_loop_scope=function"],
    ),
    "pytest-asyncio, module loop": (
        "pytest_asyncio",
        "import pytest_asyncio\n@pytest_asyncio.fixture(scope='module', loop_scope='module')",
        "@pytest.mark.asyncio(loop_scope='module')",
        ["-p", "pytest_asyncio.plugin", "-p", "no:anyio", "-o", "asyncio_default_fixture_loop_scope=function"],
    ),
    "anyio": (
        "anyio",
        "@pytest.fixture\ndef anyio_backend(): return 'asyncio'\n@pytest.fixture",
        "@pytest.mark.anyio",
        ["-p", "anyio.pytest_plugin", "-p", "no:asyncio"],
    ),
    "anyio on uvloop": (
        "anyio",
        "@pytest.fixture\ndef anyio_backend(): return ('asyncio', {'use_uvloop': True})\n@pytest.fixture",
        "@pytest.mark.anyio",
        ["-p", "anyio.pytest_plugin", "-p", "no:asyncio"],
    ),
}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_under_a_plugin(tmp_path: Path, plugin: str) -> None:
    """Graphs work as fixtures and in tests under pytest-asyncio and under anyio's plugin, with warnings as errors."""
    package, fixture, mark, options = PLUGINS[plugin]
    wanted(package)
    if "uvloop" in plugin:
        wanted("uvloop")
    (tmp_path / "test_it.py").write_text(SUITE.format(fixture=fixture, mark=mark))
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_it.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={
            "PATH": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    assert "Task was destroyed" not in done.stdout + done.stderr


CELLS = [
    "import asyncio\nfrom lifegraph import Graph, GraphStateError, resource\nlog = []",
    "@resource\nasync def db():\n    log.append('up')\n    yield asyncio.current_task()\n    log.append('down')",
    "graph = Graph(db)\ntry:\n    graph.start()\nexcept GraphStateError as why:\n    said = str(why)",
    "await graph.astart()",
    "assert graph['db'] is not asyncio.current_task()\nassert 'astart' in said",
    "try:\n    graph.teardown()\nexcept GraphStateError as why:\n    said = str(why)",
    "report = await graph.ateardown()",
    "assert report.ok and 'ateardown' in said",
    "async with Graph(db) as second:\n    assert 'db' in second",
    "with Graph() as third:\n    third.create(resource(type('Sync', (), {'stop': lambda self: log.append('sync')})))",
]


async def cells(run_cell: Any) -> None:
    """Run them one after the other, with the loop turning in between."""
    for cell in CELLS:
        await run_cell(cell)
        await turns()


def test_in_a_notebook() -> None:
    """Cells with top-level await on a loop that runs all the time: each in a task of its own."""
    space: dict[str, Any] = {}

    async def run_cell(source: str) -> None:
        code = compile(source, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        made = eval(code, space)
        if inspect.isawaitable(made):
            await asyncio.ensure_future(made)

    asyncio.run(cells(run_cell))
    assert ["up", "down", "up", "down", "sync"] == space["log"]


def test_in_ipython() -> None:
    """The same in IPython's own shell, where it is installed."""
    shell = wanted("IPython.core.interactiveshell").InteractiveShell()

    async def run_cell(source: str) -> None:
        (await shell.run_cell_async(source)).raise_error()

    asyncio.run(cells(run_cell))
    assert ["up", "down", "up", "down", "sync"] == shell.user_ns["log"]


def test_in_a_nested_task_group() -> None:
    """A graph may be opened inside other people's task groups and scopes, and closed by another task of theirs."""

    async def main() -> None:
        from lifegraph import Graph, resource

        log: list[str] = []

        @resource
        async def member() -> Any:
            yield 1
            log.append("left")

        graph = Graph(member)
        async with asyncio.TaskGroup() as group:
            await group.create_task(graph.astart())
            await group.create_task(turns())
            report = await group.create_task(graph.ateardown())
        assert report.ok
        assert ["left"] == log

    asyncio.run(main())
