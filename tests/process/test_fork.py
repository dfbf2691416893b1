"""fork in all its forms: what the parent started, the parent stops, once; the child's copy is inert."""

from __future__ import annotations

import pytest

from tests.process.conftest import Begin

VERBS = {
    "start": "graph.start()",
    "teardown": "graph.teardown()",
    "add": "graph.add(object(), stop=None)",
    "create": "graph.create(kind('new'))",
    "enter": "graph.enter(contextlib.nullcontext())",
    "depend": "graph.depend('top', 'base')",
    "override": "graph.override('top', kind('new'))",
    "with": "graph.__enter__()",
    "run": "graph.run(lambda graph: None)",
    "request_teardown": "graph.request_teardown()",
    "getitem": "graph['base']",
    "astart": "asyncio.run(graph.astart())",
    "ateardown": "asyncio.run(graph.ateardown())",
    "aadd": "asyncio.run(graph.aadd(object(), stop=None))",
    "async with": "asyncio.run(graph.__aenter__())",
    "lease": "graph.lease('base')",
    "remove": "graph.remove('top')",
    "child": "graph.child('x')",
    "attest": "graph.attest('base', 'x')",
    "resume": "graph.resume()",
}

FORKING = (
    """
import contextlib
warnings.simplefilter("ignore", DeprecationWarning)  # fork in a process with threads: what this is about
def forked(action, *, leave=os._exit):
    '''Run it in a fork; its exit code here.'''
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 99
    try:
        action()
        code = 0
    except SystemExit as why: code = why.code
    except BaseException as why:
        say(f"child raised {type(why).__name__}: {why}")
    finally: leave(code)
def verbs():
    signal.alarm(8)  # a verb that waits for a lock of a dead thread waits for ever
    wrong = 0
    for name, text in VERBS.items():
        if not hasattr(graph, name) and name not in ("getitem", "with", "async with"): continue
        try: eval(text)
        except GraphStateError: continue
        except BaseException as why: say(f"{name} raised {type(why).__name__}: {why}")
        else: say(f"{name} raised nothing")
"""
    f"VERBS = {VERBS!r}\n"
)

GRAPH = """
finalized = []
class Base:
    def __del__(self, say=say, os=os): say(f"del in {'child' if os.getpid() != parent else 'parent'}")
    def start(self): say("start base")
    def stop(self): say(f"stop base in {'child' if os.getpid() != parent else 'parent'}")
parent = os.getpid()
graph = Graph(resource(name="base")(Base), kind("top", "base"), name="mine")
"""


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("state", ["running", "closed with something held"])
def test_every_verb_in_the_child(begin_any: Begin, thread: bool, state: str) -> None:
    """Each raises GraphStateError; and the parent stops what it started, once."""
    top = 'kind("top", "base")' if state == "running" else 'kind("top", "base", stop=raises(OSError("x")))'
    talk = begin_any(
        FORKING
        + GRAPH.replace('kind("top", "base")', top)
        + f"""
graph.start()
if {state != "running"}: graph.teardown()
def work(): say(f"child {{forked(verbs)}}")
if {thread}:
    t = threading.Thread(target=work); t.start(); t.join()
else: work()
say(fates(graph.teardown()))
os._exit(0)
"""
    )
    talk.over(0)
    assert "child 0" in talk.lines
    assert [] == [line for line in talk.lines if " raised " in line]
    assert [] == [line for line in talk.lines if "in child" in line]
    assert (1 if state == "running" else 0) == talk.lines.count("stop base in parent")


@pytest.mark.parametrize("state", ["new, constructed", "starting", "closing"])
def test_forked_at_another_stage(begin: Begin, state: str) -> None:
    """Also when the parent was just starting, or tearing down, or had only created something."""
    talk = begin(
        FORKING
        + GRAPH.replace(
            'kind("top", "base")', 'kind("top", "base", start=lambda: wait("starting"), stop=lambda: wait("closing"))'
        )
        + f"""
state = {state!r}
reached = threading.Event()
def wait(which):
    if state == which:
        reached.set()
        go.wait()
if state == "new, constructed":
    class Made:
        def stop(self): say("stop made")
    made = graph.create(resource(Made))
    thread = None
else:
    act = graph.start if state == "starting" else lambda: (graph.start(), graph.teardown())
    thread = threading.Thread(target=act)
    thread.start()
    reached.wait()
say(f"child {{forked(verbs)}}")
go.set()
if thread: thread.join()
say(fates(graph.teardown()))
"""
    )
    talk.over(0)
    assert "child 0" in talk.lines
    assert [] == [line for line in talk.lines if " raised " in line]
    assert "base=" in talk.lines[-2] or "base=" in talk.lines[-1]


def test_while_other_threads_hold_the_locks(begin_any: Begin) -> None:
    """Forks in the midst of verbs on other threads: whatever lock was held then, the child's verbs raise at once."""
    talk = begin_any(
        FORKING
        + """
logging.disable(logging.CRITICAL)
class Quiet:
    def stop(self): pass
class Other(Quiet): ...
class Top(Quiet): ...
graph = Graph(resource(name="base")(Quiet), resource(name="top", depends_on=["base"])(Top))
graph.start()
over = threading.Event()
def busy():
    while not over.is_set():
        len(graph); graph.state; graph["base"]; graph.add(Quiet(), stop="stop"); graph.plan()
        with Graph(Other): pass
threads = [threading.Thread(target=busy, daemon=True) for _ in range(4)]
for thread in threads: thread.start()
bad = 0
for _ in range(25):
    code = forked(verbs)
    if code: say(f"child {code}"); bad += 1
    if bad > 2: break
over.set()
for thread in threads: thread.join()
say(graph.teardown().ok)
"""
    )
    talk.over(0)
    assert ["True"] == talk.lines, talk.account()


def test_while_the_graphs_own_lock_is_held(begin: Begin) -> None:
    """The graph's mutex held by another thread at the fork: no verb of the child takes it."""
    talk = begin(
        FORKING
        + GRAPH
        + """
graph.start()
held, over = threading.Event(), threading.Event()
def hold():
    with graph._life.mutex:
        held.set()
        over.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
say(f"child {forked(verbs)}")
over.set()
thread.join()
say(fates(graph.teardown()))
"""
    )
    talk.over(0)
    assert "child 0" in talk.lines, talk.account()
    assert [] == [line for line in talk.lines if " raised " in line]


@pytest.mark.parametrize("leave", ["os._exit", "sys.exit"])
@pytest.mark.parametrize("state", ["running", "held"])
def test_the_end_of_the_child(begin_any: Begin, leave: str, state: str) -> None:
    """The child ends, with finalization: nothing of the parent's is stopped, finalized or spoken of there."""
    talk = begin_any(
        FORKING
        + GRAPH
        + f"""
import weakref
if {state!r} == "held": graph.override("top", resource(name="top", depends_on=["base"])(type("Top", (), {{"stop": raises(OSError("x"))}})))
@resource(name="gen")
def gen():
    try: yield 1
    finally: say("gen left" + (" in child" if os.getpid() != parent else ""))
graph.add(gen)
graph.start()
weakref.finalize(graph["base"], lambda: say("finalize" + (" in child" if os.getpid() != parent else "")))
if {state!r} == "held": graph.teardown()
pid = os.fork()
if not pid:
    gc.collect()
    del graph
    gc.collect()
    {leave}(6)
say(f"child {{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}}")
say(fates(graph.teardown()))
""",
        options=("-W", "always::ResourceWarning", "-W", "ignore::DeprecationWarning"),
    )
    talk.over(0)
    assert "child 6" in talk.lines
    assert [] == [line for line in talk.lines if "in child" in line]
    assert "never torn down" not in talk.stderr
    if state == "running":
        assert 1 == talk.lines.count("stop base in parent")
        assert 1 == talk.lines.count("gen left")


def test_a_new_graph_is_started_in_the_child(begin_any: Begin) -> None:
    """A graph with nothing up, built before the fork (preload), has its whole life in each of two children, and in the parent."""
    talk = begin_any(
        FORKING
        + """
graph = Graph(kind("base"), kind("top", "base"))
graph.plan()
other = Graph(kind("o"))
other.start()  # threads of ours exist, and are parked, at the fork
def whole():
    with graph: say(f"body {graph.state}")
    say(fates(graph.report))
say(f"child {forked(whole)}")
say(f"child {forked(lambda: sys.exit(graph.run(lambda graph: None)))}")
whole()
other.teardown()
"""
    )
    talk.over(0)
    assert 2 == talk.lines.count("child 0"), talk.account()
    assert 2 == talk.lines.count("body running")
    assert 3 == talk.lines.count("stop base done")
    assert 2 == talk.lines.count("base=released top=released")


def test_a_torn_down_graph_in_the_child(begin: Begin) -> None:
    """What ended well in the parent has nothing up: its report can be read in the child."""
    talk = begin(
        FORKING
        + GRAPH
        + """
graph.start()
graph.teardown()
say(f"child {forked(lambda: say(graph.report.ok))}")
"""
    )
    talk.over(0)
    assert {"True", "child 0"} <= set(talk.lines)


def test_a_graph_of_the_childs_own(begin_any: Begin) -> None:
    """Beside an inert copy, a child has graphs of its own: async ones, lanes, limits, all work."""
    talk = begin_any(
        FORKING
        + GRAPH
        + """
graph.start()
@resource(name="coro", stop_timeout=0.2)
async def coro():
    yield 1
    await asyncio.sleep(0)
    say("coro left")
def own():
    mine = Graph(coro, kind("pinned", lane="dedicated"), kind("hung", stop=gate.wait, stop_timeout=0.1))
    mine.start()
    say(fates(mine.teardown()))
say(f"child {forked(own)}")
say(fates(graph.teardown()))
"""
    )
    talk.over(0)
    assert "coro=released hung=timed_out pinned=released" in talk.lines, talk.account()
    assert "child 0" in talk.lines
    assert 1 == talk.lines.count("stop base in parent")


@pytest.mark.parametrize("what", ["main", "with"])
def test_a_fork_inside_a_body_that_listens(begin_any: Begin, what: str) -> None:
    """The child has the handlers from before; a signal to it is not the parent's; when it falls out of the body it says so."""
    call = "graph.run(main, hard_exit=False)" if what == "main" else "with_body()"
    talk = begin_any(
        FORKING
        + GRAPH
        + f"""
before = signal.getsignal(2), signal.getsignal(15)
graph = Graph(resource(name="base")(Base), kind("top", "base"), name="mine", signals={what == "with"})
def main(graph):
    pid = os.fork()
    if not pid:
        say(f"handlers {{(signal.getsignal(2), signal.getsignal(15)) == before}}")
        say(f"wake-up fd {{signal.set_wakeup_fd(-1)}}")
        os.kill(os.getpid(), signal.SIGTERM)
        gate.wait()
    say(f"child {{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}}")
    say(f"asked {{graph.state}}")
    pid = os.fork()
    if not pid: return  # out of the body, in the child
    say(f"second child {{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}}")
def with_body():
    with graph: main(graph)
try: {call}
except GraphStateError:
    if os.getpid() == parent: raise
    os._exit(33)
if os.getpid() != parent:
    say("fell out quietly")
    os._exit(34)
say(fates(graph.report))
"""
    )
    talk.over(0)
    assert ["handlers True", "wake-up fd -1", "child -15", "asked running"] == talk.lines[
        talk.lines.index("handlers True") :
    ][:4], talk.account()
    assert "second child 33" in talk.lines, talk.account()
    assert 1 == talk.lines.count("stop base in parent")
    assert [] == [line for line in talk.lines if "in child" in line]
    assert "base=released top=released" in talk.lines


MULTI = """
import multiprocessing, os, sys
from lifegraph import Graph, GraphStateError, resource
def say(text): os.write(1, (str(text) + "\\n").encode())
class Base:
    def start(self): say(f"start {os.getpid() == parent}")
    def stop(self): say(f"stop {os.getpid() == parent}")
parent = int(os.environ.setdefault("PARENT", str(os.getpid())))
graph = Graph(resource(name="base")(Base), name="mine")
def work(method):
    if method == "fork":
        try: graph.teardown()
        except GraphStateError: say("inert")
        return
    say(graph.state)
    with graph: pass
def main():
    method = sys.argv[1]
    context = multiprocessing.get_context(method)
    graph.start()
    workers = [context.Process(target=work, args=(method,)) for _ in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    with context.Pool(2) as pool: say(f"pool {sum(pool.map(abs, [1, -2, 3]))}")
    say(f"codes {[worker.exitcode for worker in workers]}")
    graph.teardown()
if __name__ == "__main__": main()
"""


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(begin_any: Begin, method: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Workers of any kind neither stop the parent's resources nor are held up by them; the parent stops them, once."""
    folder = tmp_path_factory.mktemp("multi")
    (folder / "program.py").write_text(MULTI)
    talk = begin_any(
        "import sys, runpy; sys.argv = ['program.py', sys.argv[1]]; sys.path.insert(0, '.')\n"
        "import program; sys.modules['__main__'].__file__ = 'program.py'; program.main()",
        method,
        cwd=folder,
        prelude="",
        options=("-W", "ignore::DeprecationWarning"),
    )
    talk.over(0)
    assert "pool 6" in talk.lines, talk.account()
    assert "codes [0, 0]" in talk.lines, talk.account()
    assert 1 == talk.lines.count("start True")
    assert "stop True" == talk.lines[-1]
    assert 1 == talk.lines.count("stop True")
    assert 2 == talk.lines.count("inert" if method == "fork" else "stop False"), talk.account()


def test_subprocess_with_preexec_fn(begin_any: Begin) -> None:
    """A child that only forks to exec, also with a preexec_fn, touches nothing; closed descriptors included."""
    talk = begin_any(
        FORKING
        + GRAPH
        + """
graph = Graph(resource(name="base")(Base), name="mine", signals=True)
with graph:
    for options in ({}, {"preexec_fn": lambda: None}, {"close_fds": False}):
        done = subprocess.run([sys.executable, "-S", "-c", "import os; print(len(os.listdir('/proc/self/fd')))"], stdout=subprocess.PIPE, **options)
        say(f"ran {done.returncode} {int(done.stdout) < 8}")
say(fates(graph.report))
"""
    )
    talk.over(0)
    assert 3 == talk.lines.count("ran 0 True"), talk.account()
    assert "base=released" in talk.lines


def test_frk_01(begin_any: Begin) -> None:
    """A helper process of the parent's: two forked children end normally, and the parent stops the helper, once."""
    talk = begin_any(
        FORKING
        + """
class Helper:
    def start(self): self.process = subprocess.Popen(["sleep", "1000"])
    def stop(self):
        say(f"alive {self.process.poll() is None}")
        self.process.terminate()
        say(f"ended {self.process.wait()}")
    def __del__(self): self.process.kill()
graph = Graph(resource(name="helper")(Helper))
def main(graph):
    for _ in range(2):
        pid = os.fork()
        if not pid: sys.exit(0)  # SystemExit, out of main, in the child
        say(f"child {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")
graph.run(main)
"""
    )
    talk.over(0)
    assert ["alive True", "ended -15"] == talk.lines[-2:], talk.account()
    assert 1 == talk.lines.count("alive True")


def test_a_child_of_a_child(begin: Begin) -> None:
    """What a child starts is the child's; its own child has an inert copy of it."""
    talk = begin(
        FORKING
        + """
graph = Graph(kind("base"))
def first():
    graph.start()
    say(f"grandchild {forked(verbs)}")
    say(fates(graph.teardown()))
say(f"child {forked(first)}")
say(graph.state)
"""
    )
    talk.over(0)
    assert ["grandchild 0", "stop base", "stop base done", "base=released", "child 0", "new"] == talk.lines[2:], (
        talk.account()
    )
