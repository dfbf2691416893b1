"""The loop ends while something is up or held: nothing is finalized, nothing hangs, and one warning tells of it."""

from __future__ import annotations

import pytest

from tests.aio.conftest import run_child
from tests.conftest import Child

# Each kind of thing says "finalized" when it is, by any path.
KINDS = {
    "generator": """
@resource(name="thing")
async def thing():
    try:
        yield 1
        said("left")
    except BaseException as why:
        said(type(why).__name__)
        raise
    finally: said("finalized")
def bring(graph): graph.add(thing)
""",
    "nested": """
@contextlib.asynccontextmanager
async def inner():
    await asyncio.sleep(0)
    try: yield 1
    finally: said("finalized")
@resource(name="thing")
async def thing():
    async with inner() as made, contextlib.AsyncExitStack() as stack:
        await asyncio.sleep(0)
        await stack.enter_async_context(inner())
        yield made
def bring(graph): graph.add(thing)
""",
    "entered": """
@contextlib.asynccontextmanager
async def manager():
    await asyncio.sleep(0)
    try: yield 1
    finally: said("finalized")
def bring(graph): return graph.aenter(manager(), name="thing")
""",
    "hooks": """
@resource(name="thing")
class Thing:
    def __del__(self, said=said): said("finalized")
    async def start(self): await asyncio.sleep(0)
    async def stop(self): said("left")
def bring(graph): graph.add(Thing)
""",
    "task group": """
async def child():
    await asyncio.get_running_loop().create_future()
@resource(name="thing")
async def thing():
    async with asyncio.TaskGroup() as group:
        group.create_task(child())
        try: yield 1
        except BaseException as why: said(type(why).__name__); raise
        finally: said("finalized")
def bring(graph): graph.add(thing)
""",
    "anyio task group": """
async def child():
    import anyio
    await anyio.sleep_forever()
@resource(name="thing")
async def thing():
    import anyio
    async with anyio.create_task_group() as group:
        group.start_soon(child)
        try: yield 1
        except BaseException as why: said(type(why).__name__); raise
        finally: said("finalized")
def bring(graph): graph.add(thing)
""",
    "sync generator": """
@resource(name="thing")
def thing():
    try: yield 1
    finally: said("finalized")
def bring(graph): graph.add(thing)
""",
}

PROGRAM = """
import asyncio, contextlib, gc, os, sys
import lifegraph
from lifegraph import Graph, resource
kind, mode = sys.argv[1:3]
def said(text, write=os.write): write(1, (text + "\\n").encode())
{thing}

class User:
    async def start(self):
        if mode == "hung start": await asyncio.get_running_loop().create_future()
    async def stop(self):
        if mode == "failed": raise OSError("no")
        if mode == "cancelled": raise asyncio.CancelledError
        if mode == "hung": await asyncio.get_running_loop().create_future()

async def main():
    graph = Graph(name="ending")
    brought = bring(graph)
    if brought is not None: await brought
    graph.add(resource(User), name="user", depends_on=["thing"], stop_timeout=0.1, start_timeout=0.1)
    try: await graph.astart()
    except lifegraph.StartError: pass
    if mode != "up" and mode != "hung start":
        report = await graph.ateardown()
        assert "poisoned" == str(report.fates["thing"]), report.to_text()
    await asyncio.sleep(0)

if kind == "uvloop":
    import uvloop
    uvloop.run(main())
elif kind == "anyio":
    import anyio
    anyio.run(main)
elif kind == "by hand":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    del loop
else:
    asyncio.run(main())
gc.collect()
said("before exit")
"""

LOOPS = ("asyncio", "uvloop", "anyio", "by hand")
NOISE = ("Traceback", "Task was destroyed", "never awaited", "never retrieved", "Exception ignored")


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("thing", KINDS)
def test_the_loop_ends_while_the_graph_is_up(loop_child: Child, thing: str, kind: str) -> None:
    """Never torn down: nothing is finalized, neither by the loop's end nor the interpreter's; one warning, no hang."""
    if thing == "anyio task group" and not (loop_child.full / "anyio").exists():
        pytest.skip("anyio is not installed")
    done = run_child(loop_child, PROGRAM.format(thing=KINDS[thing]), kind, "up", timeout=30)
    assert "before exit\n" == done.stdout
    assert 1 == done.stderr.count("never torn down"), done.stderr
    assert "thing" in done.stderr
    assert [] == [noise for noise in NOISE if noise in done.stderr], done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("mode", ["failed", "hung", "cancelled", "hung start"])
@pytest.mark.parametrize("thing", ["generator", "nested", "entered", "hooks"])
def test_the_loop_ends_with_something_poisoned(loop_child: Child, thing: str, mode: str, kind: str) -> None:
    """What is poisoned survives the end of its loop, of all names for it, and of the interpreter."""
    done = run_child(loop_child, PROGRAM.format(thing=KINDS[thing]), kind, mode, timeout=30)
    assert "before exit\n" == done.stdout
    assert "never torn down" not in done.stderr
    assert [] == [noise for noise in NOISE if noise in done.stderr], done.stderr


SYNC = """
import asyncio, contextlib, gc, os, sys
import lifegraph
from lifegraph import Graph, resource
mode = sys.argv[1]
def said(text, write=os.write): write(1, (text + "\\n").encode())
{thing}
class User:
    def stop(self): raise OSError("no")
def main():
    graph = Graph(name="ending")
    brought = bring(graph) if "manager" not in globals() else graph.enter(manager(), name="thing") and None
    graph.add(resource(User), name="user", depends_on=["thing"])
    graph.start()
    if mode != "up": assert "poisoned" == str(graph.teardown().fates["thing"])
main()
gc.collect()
said("before exit")
"""


@pytest.mark.parametrize("mode", ["up", "failed"])
@pytest.mark.parametrize("thing", KINDS)
def test_the_private_loop_at_the_end_of_the_process(loop_child: Child, thing: str, mode: str) -> None:
    """The same in sync code: what lives on a private loop is not finalized when the process ends."""
    if thing == "anyio task group" and not (loop_child.full / "anyio").exists():
        pytest.skip("anyio is not installed")
    done = run_child(loop_child, SYNC.format(thing=KINDS[thing]), mode, timeout=30)
    assert "before exit\n" == done.stdout
    assert (1 if mode == "up" else 0) == done.stderr.count("never torn down"), done.stderr
    assert [] == [noise for noise in NOISE if noise in done.stderr], done.stderr


CONTROL = """
import asyncio, contextlib, gc, os, sys
from lifegraph import Graph, resource
def said(text, write=os.write): write(1, (text + "\\n").encode())
{thing}
async def main():
    graph = Graph()
    brought = bring(graph)
    if brought is not None: await brought
    async with graph: pass
asyncio.run(main())
gc.collect()
said("before exit")
"""


@pytest.mark.parametrize("thing", ["generator", "nested", "entered", "hooks"])
def test_control_what_is_released_is_finalized(any_child: Child, thing: str) -> None:
    """The same things, torn down: the finalizer is heard before the loop's end, and nothing is said."""
    done = any_child.run(CONTROL.format(thing=KINDS[thing]), timeout=30)
    lines = done.stdout.splitlines()
    assert "before exit" == lines[-1]
    assert "finalized" in lines
    assert "" == done.stderr


PLAIN = """
import asyncio, os
def said(text, write=os.write): write(1, (text + "\\n").encode())
async def thing():
    try: yield 1
    finally: said("finalized")
async def main():
    global kept
    kept = thing()
    await kept.__anext__()
asyncio.run(main())
said("loop ended")
"""


def test_control_without_a_graph_the_loops_end_finalizes(any_child: Child) -> None:
    """The same without a graph: a reference alone does not keep an async generator from the end of its loop."""
    assert "finalized\nloop ended\n" == any_child.run(PLAIN).stdout


AFTERWARDS = """
import asyncio, os
from lifegraph import Graph, resource
log = []
@resource
async def thing():
    yield 1
    log.append("left")
graph = Graph(thing)
async def main():
    await graph.astart()
asyncio.run(main())
report = graph.teardown()
print(*(f"{n}={f}" for n, f in report.fates.items()), log, "closed" in str(report.outcomes["thing"].error))
"""


def test_a_teardown_after_the_loops_end(any_child: Child) -> None:
    """Torn down too late, it failed and says why; then there is no warning at the end of the process."""
    done = any_child.run(AFTERWARDS, timeout=30)
    assert "thing=failed [] True\n" == done.stdout
    assert "never torn down" not in done.stderr
    assert [] == [noise for noise in NOISE if noise in done.stderr], done.stderr
