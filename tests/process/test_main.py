"""The main of `run`: sync and async, its loop, its context, how it is ended; and the body of `with` likewise."""

from __future__ import annotations

from signal import SIGINT, SIGTERM, Signals

import pytest

from tests.process.conftest import Begin

BOTH = pytest.mark.parametrize("number", [SIGTERM, SIGINT], ids=["SIGTERM", "SIGINT"])


def test_main_gets_the_started_graph(begin: Begin) -> None:
    """A sync main runs on the main thread, with the graph, when all is up; what it returns does not matter."""
    talk = begin("""
graph = Graph(kind("only"))
def main(*args):
    say(args == (graph,) and threading.current_thread() is threading.main_thread() and graph.state)
    return 5
say(graph.run(main))
""")
    talk.over(0)
    assert ["running", "stop only", "stop only done", "0"] == talk.lines[-4:]


MAINS = {
    "an async function": "async def main(graph): await body(graph)",
    "a partial of one": "import functools\nasync def inner(x, graph): await body(graph)\nmain = functools.partial(inner, 1)",
    "a bound method": "class App:\n    async def main(self, graph): await body(graph)\nmain = App().main",
    "an object with async __call__": "class App:\n    async def __call__(self, graph): await body(graph)\nmain = App()",
    "a lambda that returns a coroutine": "main = lambda graph: body(graph)",
    "an object that returns one": "class App:\n    def __call__(self, graph): return body(graph)\nmain = App()",
    "a function that returns a future": "def main(graph): return Awaited(body(graph))",
}


@pytest.mark.parametrize("shape", MAINS)
def test_shapes_of_async_mains(begin: Begin, shape: str) -> None:
    """Whatever an async main looks like it is run to its end, on the loop of the async resources."""
    talk = begin(f"""
@resource(name="only")
async def only():
    yield asyncio.get_running_loop()
    say("left")
async def body(graph):
    await asyncio.sleep(0)
    say(f"body {{graph['only'] is asyncio.get_running_loop()}}")
class Awaited:
    def __init__(self, coroutine): self.coroutine = coroutine
    def __await__(self): return self.coroutine.__await__()
{MAINS[shape]}
say(Graph(only).run(main))
""")
    talk.over(0)
    assert ["body True", "left", "0"] == talk.lines, talk.account()
    assert "" == talk.stderr


HIDDEN = pytest.mark.parametrize("resources", ['kind("only")', "only"], ids=["sync resource", "async resource"])
ONLY = """
@resource(name="only")
async def only():
    yield
    say("stop only")
"""


@HIDDEN
@pytest.mark.parametrize(("ending", "code"), [("raise ValueError('broke')", 1), ("sys.exit(7)", 7), ("return 5", 0)])
def test_a_hidden_async_main_that_ends(begin: Begin, resources: str, ending: str, code: int) -> None:
    """A coroutine that main only returned ends like any main: what it raises is the exit code, and all is stopped."""
    talk = begin(f"""
{ONLY}
async def body(graph):
    await asyncio.sleep(0)
    {ending}
sys.exit(Graph({resources}).run(lambda graph: body(graph)))
""")
    talk.over(code)
    assert "stop only" in talk.lines
    assert ("broke" in talk.stderr) is (code == 1)
    assert "never awaited" not in talk.stderr


@HIDDEN
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGINT", "request"])
def test_a_hidden_async_main_that_is_ended(begin: Begin, resources: str, ending: str) -> None:
    """A signal, and a request, cancel it, wherever it waits; its own clean-up comes before the teardown."""
    talk = begin(f"""
{ONLY}
async def body(graph):
    try:
        say("waits")
        await asyncio.Event().wait()
    finally: say("cleaned up")
def main(graph):
    threading.Thread(target=lambda: (listen(), graph.request_teardown()), daemon=True).start()
    return body(graph)
sys.exit(Graph({resources}).run(main, signal_exit=7))
""")
    talk.hears("waits")
    if ending == "request":
        talk.tell()
    else:
        talk.signal(Signals[ending])
    talk.over(7)
    assert talk.lines.index("cleaned up") < talk.lines.index("stop only")
    assert "" == talk.stderr


def test_a_hidden_async_main_on_a_loop_of_its_makers(begin: Begin) -> None:
    """Its loop, and that of the async resources, is made by loop_factory, and closed at the end."""
    talk = begin(f"""
{ONLY}
made = []
def factory():
    made.append(asyncio.new_event_loop())
    return made[-1]
async def body(graph): say(asyncio.get_running_loop() is made[0])
say(Graph(only).run(lambda graph: body(graph), loop_factory=factory))
say(len(made))
end = time.monotonic() + 5  # the loop's own thread closes it
while not made[0].is_closed() and time.monotonic() < end: time.sleep(0.001)
say(made[0].is_closed())
""")
    talk.over(0)
    assert ["True", "stop only", "0", "1", "True"] == talk.lines


def test_the_loop_factory(begin_any: Begin) -> None:
    """The loop of an async main is made by loop_factory, and closed at the end."""
    talk = begin_any("""
made = []
class Loop(asyncio.SelectorEventLoop): ...
def factory():
    made.append(Loop())
    return made[-1]
@resource(name="only")
class Only:
    async def start(self): say(f"start {asyncio.get_running_loop() is made[0]}")
    async def stop(self): say(f"stop {asyncio.get_running_loop() is made[0]}")
async def main(graph): say(f"main {asyncio.get_running_loop() is made[0]}")
say(Graph(Only).run(main, loop_factory=factory))
say(f"{len(made)} {made[0].is_closed()}")
""")
    talk.over(0)
    assert ["start True", "main True", "stop True", "0", "1 True"] == talk.lines


def test_the_callers_context(begin: Begin) -> None:
    """main sees the context variables of run's caller, sync and async; hooks see them too."""
    talk = begin("""
variable = contextvars.ContextVar("variable", default="none")
variable.set("callers")
@resource(name="only")
class Only:
    def start(self): say(f"start {variable.get()}")
    async def stop(self): say(f"stop {variable.get()}")
async def amain(graph): say(f"async {variable.get()}")
def main(graph): say(f"sync {variable.get()}")
Graph(Only).run(main)
Graph(Only).run(amain)
""")
    talk.over(0)
    assert [
        "start callers",
        "sync callers",
        "stop callers",
        "start callers",
        "async callers",
        "stop callers",
    ] == talk.lines


def test_run_inside_a_running_loop(begin: Begin) -> None:
    """run would block the loop it is called on: it says so, before anything is started."""
    talk = begin("""
async def amain(graph): say("never")
async def outer():
    for main in (None, amain, lambda graph: say("never")):
        try: say(Graph(kind("only")).run(main))
        except GraphStateError as why: say("refused")
asyncio.run(outer())
""")
    talk.over(0)
    assert ["refused"] * 3 == talk.lines, talk.account()
    assert "Traceback" not in talk.stderr
    assert "never awaited" not in talk.stderr


@BOTH
def test_a_sync_main_that_swallows_the_interrupt(begin: Begin, number: Signals) -> None:
    """A main that turns the interrupt into its own ordinary end was ended by the signal all the same."""
    talk = begin("""
def main(graph):
    try:
        say("body")
        gate.wait()
    except KeyboardInterrupt: say("tidied")
sys.exit(Graph(kind("only")).run(main, signal_exit=7))
""")
    talk.hears("body")
    talk.signal(number)
    talk.over(7)
    assert ["tidied", "stop only", "stop only done"] == talk.lines[-3:]


@BOTH
def test_a_main_that_raises_on_its_way_out(begin: Begin, number: Signals) -> None:
    """What main raises while it is being ended is not lost: exit code 1, and told."""
    talk = begin("""
def main(graph):
    try:
        say("body")
        gate.wait()
    finally: raise ValueError("on the way out")
sys.exit(Graph(kind("only")).run(main, signal_exit=7))
""")
    talk.hears("body")
    talk.signal(number)
    talk.over(1)
    assert "on the way out" in talk.stderr


@BOTH
def test_the_interrupt_is_raised_once(begin: Begin, number: Signals) -> None:
    """main's own cleaning up is not interrupted by the second signal, which hurries the teardown."""
    talk = begin("""
only = kind("only", stop=gate.wait, stop_timeout=None)
def main(graph):
    try:
        say("body")
        gate.wait()
    finally:
        say("cleaning up")
        listen()
        say("clean")
sys.exit(Graph(only).run(main, hard_exit=True))
""")
    talk.hears("body")
    talk.signal(number)
    talk.hears("cleaning up")
    talk.signal(number)
    talk.tell()
    talk.over(3)
    assert "clean" in talk.lines, talk.account()


def test_an_async_main_that_cleans_up(begin_any: Begin) -> None:
    """An async main is cancelled once; it may await in its finally; the teardown comes after it."""
    talk = begin_any("""
async def main(graph):
    try:
        say("body")
        await asyncio.sleep(1000)
    finally:
        await asyncio.sleep(0.05)
        say("clean")
sys.exit(Graph(kind("only")).run(main, signal_exit=7))
""")
    talk.hears("body")
    talk.signal(SIGTERM)
    talk.over(7)
    assert ["clean", "stop only", "stop only done"] == talk.lines[-3:]


def test_an_async_main_that_raises(begin: Begin) -> None:
    """Its own CancelledError, or KeyboardInterrupt, that nobody asked for: the graph is torn down all the same."""
    for error in ("asyncio.CancelledError()", "KeyboardInterrupt()", "GeneratorExit()", "BaseException('x')"):
        for how in ("async ", ""):
            talk = begin(f"""
{how}def main(graph): raise {error}
sys.exit(Graph(kind("only")).run(main, signal_exit=7))
""")
            code = talk.over()
            assert code not in {0, 7}, (error, how, talk.account())
            assert ["stop only", "stop only done"] == talk.lines[-2:], (error, how, talk.account())
            assert "never torn down" not in talk.stderr


def test_tasks_that_main_left(begin: Begin) -> None:
    """Tasks left by main end with the loop, after the teardown, as asyncio.run ends them; they do not hold it up."""
    talk = begin("""
async def left():
    try: await asyncio.sleep(1000)
    finally: say("task ended")
@resource(name="only")
async def only():
    yield 1
    await asyncio.sleep(0)
    say("left")
kept = []
async def main(graph):
    kept.append(asyncio.create_task(left()))
    await asyncio.sleep(0)
sys.exit(Graph(only).run(main))
""")
    talk.over(0)
    assert {"task ended", "left"} == set(talk.lines)
    assert "" == talk.stderr


def test_a_blocked_loop_and_a_signal(begin: Begin) -> None:
    """An async main that blocks its loop cannot be cancelled; three signals end it all the same."""
    talk = begin("""
async def main(graph):
    say("body")
    while True:
        try: gate.wait()
        except KeyboardInterrupt: say("interrupted")
sys.exit(Graph(kind("only")).run(main))
""")
    talk.hears("body")
    from tests.process.talking import pace

    for number in (SIGTERM, SIGINT, SIGTERM):
        talk.signal(number)
        pace(talk.pid)
    talk.over(128 + SIGTERM)


WITH = """
graph = Graph(kind("base"), kind("top", "base"), signals=True)
def body():
    with graph:
        say("body")
        gate.wait()
async def abody():
    async with graph:
        say("body")
        await asyncio.sleep(1000)
try:
    {call}
except BaseException as why:
    say(f"raised {{type(why).__name__}}")
say(fates(graph.report))
say(f"{{signal.getsignal(signal.SIGINT) is signal.default_int_handler}} {{signal.getsignal(signal.SIGTERM)}}")
"""


@BOTH
@pytest.mark.parametrize("call", ["body()", "asyncio.run(abody())"])
def test_signals_in_a_with(begin_any: Begin, number: Signals, call: str) -> None:
    """signals=True: the body of a with statement is ended as a main is, all is stopped, and the handlers given back."""
    talk = begin_any(WITH.format(call=call))
    talk.hears("body")
    talk.signal(number)
    talk.over(0)
    raised = "KeyboardInterrupt" if call == "body()" else "CancelledError"
    assert f"raised {raised}" in talk.lines
    assert ["base=released top=released", "True 0"] == talk.lines[-2:]


def test_without_signals(begin: Begin) -> None:
    """Without signals=True a with statement leaves SIGTERM and SIGINT alone: Ctrl-C is Python's own."""
    talk = begin(WITH.format(call="body()").replace(", signals=True", ""))
    talk.hears("body")
    talk.signal(SIGINT)
    talk.over(0)
    assert {"raised KeyboardInterrupt", "base=released top=released"} <= set(talk.lines)
    talk = begin(WITH.format(call="body()").replace(", signals=True", ""))
    talk.hears("body")
    talk.signal(SIGTERM)
    talk.over(-SIGTERM)


@BOTH
@pytest.mark.parametrize("call", ["body()", "asyncio.run(abody())"])
def test_a_second_signal_in_a_with(begin_any: Begin, number: Signals, call: str) -> None:
    """The second signal hurries: what hangs is given up, and with raises in the end; a third is not needed."""
    program = WITH.replace('kind("top", "base")', 'kind("top", "base", stop=gate.wait, stop_timeout=None)')
    talk = begin_any(program.format(call=call))
    talk.hears("body")
    talk.signal(number)
    talk.hears("stop top")
    talk.signal(number)
    talk.over(0)
    assert ["base=poisoned top=timed_out", "True 0"] == talk.lines[-2:]
    assert [line for line in talk.stderr.splitlines() if "top" in line and "base" in line], talk.stderr


@BOTH
def test_a_real_ctrl_c_in_a_teardown(begin_any: Begin, number: Signals) -> None:
    """In a plain teardown(), KeyboardInterrupt hurries: the report is complete, and the interrupt is raised at the end."""
    talk = begin_any("""
signal.signal(signal.SIGTERM, signal.default_int_handler)
graph = Graph(kind("base"), kind("top", "base", stop=gate.wait, stop_timeout=None))
graph.start()
try: graph.teardown()
except KeyboardInterrupt: say("raised")
say(fates(graph.report))
""")
    talk.hears("stop top")
    talk.signal(number)
    talk.over(0)
    assert ["raised", "base=poisoned top=timed_out"] == talk.lines[-2:]


def test_time_left_is_counted_from_the_signal(begin: Begin) -> None:
    """What a body took to end is no longer there for the hooks."""
    talk = begin("""
left = []
graph = Graph(kind("only", stop=lambda: left.append(graph.time_left()), stop_timeout=None), grace=60)
def main(graph):
    try:
        say("body")
        gate.wait()
    finally:
        gate.wait(0.5)
code = graph.run(main)
say(0 < left[0] < 59.6)
""")
    talk.hears("body")
    talk.signal(SIGTERM)
    talk.over(0)
    assert "True" == talk.lines[-1]
