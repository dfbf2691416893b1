"""What is not released is not finalized either: not by del, not by the collector, not at the end of the process.

Each program is run thrice: with a cause to hold (then nothing may be heard of a finalizer), with everything
released (then it must be heard), and without a graph (which proves that it would be heard at exit).
"""

from __future__ import annotations

import pytest

from tests.conftest import Child

# Each kind of thing says "finalized" when it is. `said` is bound early: modules are gone late in the exit.
KINDS = {
    "__del__": """
class Thing:
    def __del__(self, said=said): said("finalized")
    def close(self): pass
make = Thing
""",
    "__del__ in a cycle": """
class Thing:
    def __init__(self): self.me = self
    def __del__(self, said=said): said("finalized")
    def close(self): self.me = None
make = Thing
""",
    "slots": """
class Thing:
    __slots__ = ("inner",)
    def __init__(self): self.inner = Inner()
    def close(self): pass
class Inner:
    def __del__(self, said=said): said("finalized")
make = Thing
""",
    "weakref.finalize": """
class Thing:
    def __init__(self): weakref.finalize(self, said, "finalized")
    def close(self): pass
make = Thing
""",
    "weakref.finalize of an attribute": """
class Inner: pass
class Thing:
    def __init__(self):
        self.inner = Inner()
        weakref.finalize(self.inner, said, "finalized")
    def close(self): pass
make = Thing
""",
    "weakref.finalize of a slot": """
class Inner: pass
class Thing:
    __slots__ = ("inner",)
    def __init__(self):
        self.inner = Inner()
        weakref.finalize(self.inner, said, "finalized")
    def close(self): pass
make = Thing
""",
    "weakref.finalize made late": """
class Thing:
    def close(self): pass
make = Thing
def late(thing): weakref.finalize(thing, said, "finalized")
""",
    "generator": """
def make():
    try: yield "thing"
    finally: said("finalized")
""",
    "generator's value": """
class Value:
    def __del__(self, said=said): said("finalized")
def make():
    yield Value()
""",
    "context manager": """
@contextlib.contextmanager
def manager():
    try: yield "thing"
    finally: said("finalized")
""",
}

PROGRAM = """
import contextlib, gc, os, sys, threading, weakref
import lifegraph
from lifegraph import Graph, resource

def said(text, write=os.write): write(1, (text + "\\n").encode())
late = None
{kind}

mode = "{mode}"
gate = threading.Event()

class User:
    def start(self):
        if mode == "start hangs": gate.wait()
    def stop(self):
        if mode in ("failed", "twice"): raise OSError("x")
        if mode == "interrupted": raise KeyboardInterrupt
        if mode == "hung": gate.wait()

def build():
    graph = Graph(name="held")
    if "manager" in globals():
        graph.enter(manager(), name="thing")
    else:
        graph.add(resource(make), name="thing")
    graph.add(resource(User), depends_on=["thing"], name="user", stop_timeout=0.1, start_timeout=0.1)
    try:
        graph.start()
    except lifegraph.StartError:
        pass
    return graph

if mode == "plain":
    kept = manager() if "manager" in globals() else make()
    if hasattr(kept, "__enter__"): kept.__enter__()
    if hasattr(kept, "__next__"): value = next(kept)
    if late: late(kept)
else:
    graph = build()
    if late: late(graph["thing"])
    if mode != "never torn down":
        report = graph.teardown()
        fate = str(report.fates["thing"])
        if mode == "twice": assert graph.teardown() is report
        del report
        assert fate == ("released" if mode == "released" else "poisoned"), fate
    if mode != "released":
        assert bool(lifegraph.quarantine()) == (mode != "never torn down")
    del graph
    for _ in range(3): gc.collect()
said("before exit")
{exit}
"""

HELD = {  # why it is held -> the kinds tried; all where the way to there differs for them
    "failed": tuple(KINDS),
    "never torn down": tuple(KINDS),
    **dict.fromkeys(("interrupted", "hung", "start hangs", "twice"), ("__del__", "generator", "weakref.finalize")),
}
EXITS = {"end": ("", 0), "sys.exit": ("sys.exit(5)", 5), "error": ("raise ValueError('the end')", 1)}


@pytest.mark.parametrize(("mode", "kind"), [(mode, kind) for mode, kinds in HELD.items() for kind in kinds])
def test_nothing_held_is_finalized(any_child: Child, kind: str, mode: str) -> None:
    """Whatever the reason to hold it, nothing is heard of a finalizer; the process ends as it should."""
    done = any_child.run(PROGRAM.format(kind=KINDS[kind], mode=mode, exit=""), timeout=30)
    assert "before exit\n" == done.stdout


@pytest.mark.parametrize("kind", HELD["hung"])
@pytest.mark.parametrize("exits", [name for name in EXITS if name != "end"])
def test_nothing_held_is_finalized_whatever_the_exit(any_child: Child, kind: str, exits: str) -> None:
    """Also when the process ends by SystemExit, or by an error; its exit code is its own."""
    text, code = EXITS[exits]
    done = any_child.run(PROGRAM.format(kind=KINDS[kind], mode="failed", exit=text), check=False, timeout=30)
    assert ("before exit\n", code) == (done.stdout, done.returncode), done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_control_what_is_released_is_finalized(any_child: Child, kind: str) -> None:
    """The same program, with all released: the finalizer is heard, once, and before the end."""
    done = any_child.run(PROGRAM.format(kind=KINDS[kind], mode="released", exit=""))
    assert "finalized\nbefore exit\n" == done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_control_without_a_graph_it_is_finalized_at_exit(any_child: Child, kind: str) -> None:
    """The same things, kept by the module alone: a reference does not hold them."""
    done = any_child.run(PROGRAM.format(kind=KINDS[kind], mode="plain", exit=""))
    assert "before exit\nfinalized\n" == done.stdout


MAPPING = """
import ctypes, gc, mmap, sys, threading
import lifegraph
from lifegraph import Graph, resource
library = ctypes.CDLL(sys.argv[1])
mode, gate = sys.argv[2], threading.Event()

class Region:
    def __init__(self):
        self.map = mmap.mmap(-1, 1 << 20)
        self.map[0:1] = b"Z"
        view = ctypes.c_char.from_buffer(self.map)
        library.watch(ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_ubyte(ord("Z")))
        del view
        self.nbytes = len(self.map)
    def close(self): self.map.close()

class Writer:
    def __init__(self, region): self.region = region
    def stop(self):
        if mode == "failed": raise OSError("x")
        if mode == "hung": gate.wait()

if mode == "plain":
    region = Region()
else:
    graph = Graph(name="mapping")
    region = graph.create(resource(Region))
    writer = graph.create(resource(Writer), region, stop_timeout=0.1)
    graph.start()
    if mode != "never torn down":
        report = graph.teardown()
        assert report.ok == (mode == "released")
        del report
        if mode != "released":
            assert {held.resource: held.bytes for held in lifegraph.quarantine()} == {"Region": 1 << 20, "Writer": None}
    del graph, region, writer
    gc.collect()
print("before exit", flush=True)
"""


@pytest.mark.parametrize(
    ("mode", "at_exit"),
    [
        ("failed", "mapped"),
        ("hung", "mapped"),
        ("never torn down", "mapped"),
        ("released", "unmapped"),
        ("plain", "unmapped"),
    ],
)
def test_a_mapping_outlives_python(any_child: Child, watcher: object, mode: str, at_exit: str) -> None:
    """What may still be written to stays mapped, with its bytes, until libc's own exit; otherwise it is gone by then."""
    done = any_child.run(MAPPING, str(watcher), mode, timeout=30)
    assert f"before exit\nexit: {at_exit}\n" == done.stdout


STARTING = """
import gc, os, threading, weakref
import lifegraph
from lifegraph import Graph, resource
def said(text, write=os.write): write(1, (text + "\\n").encode())
gate, back = threading.Event(), threading.Event()
def seen(event):
    if isinstance(event, lifegraph.AnswerLate): back.set()

class Late:
    def __init__(self):
        gate.wait()
        weakref.finalize(self, said, "finalize")
    def __del__(self, said=said): said("del")
    def close(self): said("closed")

class Base:
    def __del__(self, said=said): said("base")
    def close(self): said("base closed")

graph = Graph(resource(Base), name="late", observers=[seen])
graph.add(resource(Late), depends_on=[Base], start_timeout=0.1)
try: graph.start()
except lifegraph.StartError as error: assert error.report.fates["Late"] == "timed_out", error.report
gate.set()
assert back.wait(20)
del graph, error
gc.collect()
said("before exit")
"""


def test_what_a_constructor_returns_late_is_held(any_child: Child) -> None:
    """An object that came after its start was given up goes into quarantine, and nothing of it is released."""
    source = STARTING.replace(
        "except lifegraph.StartError as error:", "except lifegraph.StartError as caught: error = caught;"
    )
    assert "before exit\n" == any_child.run(source, timeout=30).stdout


ROLLBACK = """
import gc, os
import lifegraph
from lifegraph import Graph, resource
def said(text, write=os.write): write(1, (text + "\\n").encode())
class Base:
    def __del__(self, said=said): said("base")
    def close(self): said("base closed")
class Half:
    def __init__(self, base): self.base = base
    def __del__(self, said=said): said("half")
    def start(self): raise OSError("start")
    def stop(self): raise OSError("stop")
def main():
    graph = Graph(resource(Base))
    graph.start()
    try: graph.create(resource(Half), graph[Base])
    except lifegraph.StartError: pass
    report = graph.teardown()
    assert not report.ok, report.fates
main()
gc.collect()
said("before exit")
"""


def test_what_could_not_be_rolled_back_is_held(any_child: Child) -> None:
    """A member of a running graph whose start and stop both failed, and what it uses, are held."""
    assert "before exit\n" == any_child.run(ROLLBACK).stdout


MANY = """
import gc, os, lifegraph
from lifegraph import Graph, resource
count = [0]
def said(text, write=os.write): write(1, (text + "\\n").encode())
class Thing:
    def __del__(self, said=said): said("finalized")
    def close(self): pass
class Bad:
    def close(self): raise OSError
for n in range(50):
    graph = Graph(resource(Thing), name=f"g{n}")
    graph.add(resource(Bad), depends_on=[Thing])
    graph.start()
    graph.teardown()
    del graph
gc.collect()
held = lifegraph.quarantine()
assert len(held) == 100, len(held)
assert [h.graph for h in held[::2]] == [f"g{n}" for n in range(50)]
assert all(h.since <= later.since for h, later in zip(held, held[1:]))
said("before exit")
"""


def test_many_graphs_are_held_side_by_side(any_child: Child) -> None:
    """What one graph holds does not depend on another; the listing tells all, oldest first."""
    assert "before exit\n" == any_child.run(MANY).stdout


UP = """
import gc, os, weakref
from lifegraph import Graph
def said(text, write=os.write): write(1, (text + "\\n").encode())
class Live:
    def __del__(self, said=said): said("finalized")
    def close(self): said("closed")
live = Live()
weakref.finalize(live, said, "finalize")
graph = Graph()
graph.add(live, stop="close")
if {stop}: graph.teardown()
del graph, live
gc.collect()
said("before exit")
"""


@pytest.mark.parametrize(
    ("stop", "expected"), [(False, "before exit\n"), (True, "closed\nfinalize\nfinalized\nbefore exit\n")]
)
def test_an_adopted_object_is_held_from_its_adoption(any_child: Child, stop: bool, expected: str) -> None:
    """A live object is up once added: a graph that is dropped without a teardown does not let it go."""
    done = any_child.run(UP.format(stop=stop))
    assert expected == done.stdout.replace("finalized\nfinalize\n", "finalize\nfinalized\n")


RELEASED_AT_EXIT = """
import os, weakref
from lifegraph import Graph, resource
def said(text, write=os.write): write(1, (text + "\\n").encode())
class Thing:
    def close(self): pass
graph = Graph(resource(Thing))
graph.start()
thing = graph[Thing]
finalizer = weakref.finalize(thing, said, "finalized")
graph.teardown()
assert finalizer.atexit
said("before exit")
"""


def test_a_released_object_has_its_finalizers_back(any_child: Child) -> None:
    """What was released but is still referred to is finalized at exit, as without a graph."""
    assert "before exit\nfinalized\n" == any_child.run(RELEASED_AT_EXIT).stdout


PROMPT = """
import sys, threading, time
from lifegraph import Graph, resource
class Hung:
    def stop(self): threading.Event().wait()
class Swallows:
    def stop(self):
        while True:
            try: time.sleep(3600)
            except BaseException: pass
graph = Graph(resource(Hung), resource(Swallows), stop_timeout=0.1)
graph.start()
print(sorted(graph.teardown().timed_out))
sys.exit(7)
"""


def test_a_hung_stop_keeps_no_process_from_ending(any_child: Child) -> None:
    """The process ends promptly, with its own exit code, though hooks still hang."""
    done = any_child.run(PROMPT, check=False, timeout=20)
    assert ("['Hung', 'Swallows']\n", 7) == (done.stdout, done.returncode)
