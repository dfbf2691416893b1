"""`request_teardown`: from any thread, task or hook; it asks, returns at once, and ends the body."""

from __future__ import annotations

import pytest

from tests.process.conftest import Begin
from tests.process.talking import needs_drain, needs_inner_graphs

SYNC, ASYNC = "def main(graph):", "async def main(graph):"
WAYS = {
    "from main": (SYNC, "graph.request_teardown()"),
    "from another thread": (SYNC, "threading.Thread(target=graph.request_teardown, daemon=True).start()"),
    "from a timer": (SYNC, "threading.Timer(0.01, graph.request_teardown).start()"),
    "from main, async": (ASYNC, "graph.request_teardown()"),
    "from another thread, async": (ASYNC, "threading.Thread(target=graph.request_teardown, daemon=True).start()"),
    "from a task": (ASYNC, "asyncio.get_running_loop().call_soon(graph.request_teardown)"),
    "from a signal handler": (
        SYNC,
        "signal.signal(signal.SIGUSR1, lambda *_: graph.request_teardown()); os.kill(os.getpid(), signal.SIGUSR1)",
    ),
    "from __del__": (SYNC, "Dies(graph)"),
    "twice": (SYNC, "graph.request_teardown(); graph.request_teardown()"),
    "from many threads": (
        SYNC,
        "[threading.Thread(target=graph.request_teardown, daemon=True).start() for _ in range(20)]",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_from_anywhere(begin_any: Begin, way: str) -> None:
    """Whoever asks, main is ended as by a signal, all is stopped once, and the exit code is signal_exit."""
    head, ask = WAYS[way]
    wait = "gate.wait()" if head == SYNC else "await asyncio.sleep(1000)"
    talk = begin_any(f"""
class Dies:
    def __init__(self, graph): self.graph = graph
    def __del__(self): self.graph.request_teardown()
{head}
    try:
        {ask}
        {wait}
    except BaseException as why:
        say(type(why).__name__)
        raise
sys.exit(Graph(kind("base"), kind("top", "base")).run(main, signal_exit=7))
""")
    talk.over(7)
    ended = "KeyboardInterrupt" if head == SYNC else "CancelledError"
    assert [ended, "stop top", "stop top done", "stop base", "stop base done"] == talk.lines[-5:], talk.account()
    assert "" == talk.stderr


@pytest.mark.parametrize("hook", ["start", "stop", "drain"])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_from_a_hook(begin: Begin, hook: str, kind: str) -> None:
    """A hook that asks is not waited for by its own teardown: it returns, and is stopped in its turn."""
    if hook == "drain":
        needs_drain()
    talk = begin(f"""
class Asks:
    {kind} {hook}(self):
        graph.request_teardown()
        say("asked")
    {"def stop(self): pass" if hook != "stop" else ""}
graph = Graph(kind("base"), resource(name="asks", depends_on=["base"])(Asks))
code = graph.run(lambda graph: say("body"), signal_exit=7)
say(fates(graph.report))
say(code)
""")
    talk.over(0)
    assert "asked" in talk.lines
    assert "base=released asks=released" in talk.lines[-2] or "asks=released base=released" in talk.lines[-2]
    assert ("body" in talk.lines) == (hook != "start")


def test_from_a_hook_of_an_inner_graph(begin: Begin) -> None:
    """A resource of an inner graph asks for the end of the outer one."""
    needs_inner_graphs()
    talk = begin("""
class Asks:
    def start(self): self.thread = threading.Timer(0.05, outer.request_teardown); self.thread.start()
    def stop(self): say("asks stopped")
inner = Graph(resource(Asks), name="inner")
outer = Graph(name="outer")
outer.add(inner)
say(outer.run(lambda graph: gate.wait(), signal_exit=7))
""")
    talk.over(0)
    assert ["asks stopped", "7"] == talk.lines


def test_with_an_error(begin_any: Begin) -> None:
    """A monitor that found something wrong: exit code 1, the error is told, and the first one counts."""
    talk = begin_any("""
def main(graph):
    graph.request_teardown(ValueError("first"))
    graph.request_teardown(ValueError("second"))
    gate.wait()
sys.exit(Graph(kind("only")).run(main, signal_exit=7))
""")
    talk.over(1)
    assert "first" in talk.stderr


def test_before_the_start(begin: Begin) -> None:
    """Asked before run began, run starts nothing and ends at once, as a request does."""
    talk = begin("""
graph = Graph(kind("only"))
graph.request_teardown()
code = graph.run(lambda graph: say("body"), signal_exit=7)
say(f"code {code}")
""")
    talk.over(0)
    assert "body" not in talk.lines or "stop only done" in talk.lines, talk.account()


def test_after_the_end(begin: Begin) -> None:
    """Asked when all is over, nothing happens."""
    talk = begin("""
graph = Graph(kind("only"))
graph.run(lambda graph: None)
report = graph.report
graph.request_teardown()
graph.request_teardown(ValueError("x"))
say(graph.report is report and graph.state)
""")
    talk.over(0)
    assert "closed" == talk.lines[-1]
    assert 1 == talk.lines.count("stop only")


@pytest.mark.parametrize("signals", [False, True])
def test_in_a_with(begin_any: Begin, signals: bool) -> None:
    """In a body that listens the request interrupts it; in one that does not the teardown begins beside it."""
    talk = begin_any(f"""
graph = Graph(kind("only"), signals={signals})
def ask():
    go.wait()
    graph.request_teardown()
    graph.request_teardown()
threading.Thread(target=ask, daemon=True).start()
try:
    with graph:
        go.set()
        if {signals}: gate.wait()
        while graph.state != "closed": gate.wait(0.001)
        say("beside")
except KeyboardInterrupt: say("interrupted")
""")
    talk.over(0)
    assert (
        ["interrupted"] == [line for line in talk.lines if line == "interrupted"] if signals else "beside" in talk.lines
    )
    assert 1 == talk.lines.count("stop only done")


def test_it_waits_for_no_lock(begin: Begin) -> None:
    """A handler that asks in the middle of any verb on the same thread, at every 5th line of it, neither hangs nor raises."""
    talk = begin("""
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
OURS = os.path.dirname(lifegraph.__file__)
logging.disable(logging.CRITICAL)
def one(countdown):
    left = [countdown]
    graph = Graph(resource(name="a")(type("A", (), {"start": lambda self: None, "stop": lambda self: stops.append("a")})),
                  resource(name="b", depends_on=["a"])(type("B", (), {"stop": lambda self: stops.append("b")})))
    stops = []
    def local(frame, event, arg):
        left[0] -= 1
        if left[0] == 0:
            sys.settrace(None)
            graph.request_teardown()
        return local
    sys.settrace(lambda frame, event, arg: local if frame.f_code.co_filename.startswith(OURS) else None)
    try:
        try: graph.start()
        except lifegraph.GraphClosingError: pass
        report = graph.teardown()
    finally: sys.settrace(None)
    if stops.count("a") > 1 or stops.count("b") > 1 or not report.ok: say(f"{countdown}: {stops} {report.fates}")
    return left[0] <= 0
number = 2
while one(number): number += 5
say("swept")
os._exit(0)
""")
    talk.over(0, within=90)
    assert ["swept"] == talk.lines, talk.account()


def test_it_is_quick(begin: Begin) -> None:
    """It returns at once, whatever hangs in the teardown that it brings about."""
    talk = begin("""
stuck = kind("stuck", stop=gate.wait, stop_timeout=2)
graph = Graph(stuck)
graph.start()
began = time.monotonic()
graph.request_teardown()
say(f"quick {time.monotonic() - began < 1}")
report = graph.teardown()
say(fates(report))
os._exit(0)
""")
    talk.over(0)
    assert {"quick True", "stuck=timed_out"} <= set(talk.lines)
