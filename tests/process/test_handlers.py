"""Other people's signal handlers and wake-up fds: given back; and graphs inside graphs that listen, too."""

from __future__ import annotations

from signal import SIGINT, SIGTERM, Signals

import pytest

from tests.process.conftest import Begin
from tests.process.talking import needs_inner_graphs

BOTH = pytest.mark.parametrize("number", [SIGTERM, SIGINT], ids=["SIGTERM", "SIGINT"])

USES = """
def sync_run(body=lambda graph: None, *kinds): Graph(*kinds, name="used").run(body, hard_exit=False)
def async_run(body=lambda graph: None, *kinds):
    async def main(graph): body(graph)
    Graph(*kinds, name="used").run(main, hard_exit=False)
def sync_with(body=lambda graph: None, *kinds):
    with Graph(*kinds, name="used", signals=True) as graph: body(graph)
def async_with(body=lambda graph: None, *kinds):
    async def main():
        async with Graph(*kinds, name="used", signals=True) as graph: body(graph)
    asyncio.run(main())
"""
FORMS = pytest.mark.parametrize("form", ["sync_run", "async_run", "sync_with", "async_with"])

STATE = (
    USES
    + """
def mine(number, frame): say(f"mine {number}")
def others(number, frame): say(f"others {number}")
def wakeup():
    fd = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
    return fd
def state(): return signal.getsignal(2), signal.getsignal(15), wakeup()
r, w = os.pipe()
os.set_blocking(w, False)
befores = {
    "default": lambda: None,
    "handlers": lambda: (signal.signal(2, mine), signal.signal(15, mine)),
    "ignored": lambda: (signal.signal(2, signal.SIG_IGN), signal.signal(15, signal.SIG_IGN)),
    "SIG_DFL": lambda: (signal.signal(2, signal.SIG_DFL), signal.signal(15, signal.SIG_DFL)),
    "wake-up fd": lambda: (signal.signal(15, mine), signal.set_wakeup_fd(w)),
}
def fails(graph): raise ValueError("body")
def replaces(graph):
    signal.signal(2, others)
    signal.signal(15, others)
    signal.set_wakeup_fd(w if wakeup() != w else -1)
bodies = {
    "returns": (lambda graph: None,),
    "raises": (fails,),
    "replaces": (replaces,),
    "start fails": (lambda graph: None, kind("bad", start=raises(OSError("x")))),
    "stop fails": (lambda graph: None, kind("bad", stop=raises(OSError("x")))),
    "bad declaration": (lambda graph: None, kind("bad", "nobody")),
    "requests": (lambda graph: graph.request_teardown(),),
}
"""
)


@FORMS
def test_all_is_as_it_was(begin_any: Begin, form: str) -> None:
    """However run, or a with statement that listens, ends: handlers and wake-up fd are those from before."""
    talk = begin_any(
        STATE
        + f"""
logging.disable(logging.CRITICAL)
for before, prepare in befores.items():
    for name, body in bodies.items():
        signal.signal(2, signal.default_int_handler); signal.signal(15, signal.SIG_DFL); signal.set_wakeup_fd(-1)
        prepare()
        was = state()
        try: {form}(*body)
        except (Exception, KeyboardInterrupt, asyncio.CancelledError): pass
        if before == "ignored" and name == "replaces": continue  # never ours, so not ours to put back
        if state() != was: say(f"{{before}}, {{name}}: {{was}} became {{state()}}")
signal.set_wakeup_fd(-1)
say("looked")
"""
    )
    talk.over(0)
    assert ["looked"] == [line for line in talk.lines if " bad" not in line]


@FORMS
def test_no_descriptor_and_no_thread_is_left(begin: Begin, form: str) -> None:
    """Again and again: neither pipes nor threads pile up."""
    talk = begin(
        USES
        + f"""
def count(): return len(os.listdir("/proc/self/fd"))
for _ in range(3): {form}()
before, threads = count(), threading.active_count()
for _ in range(30): {form}()
say(count() - before < 6)
say(threading.active_count() - threads < 6)
"""
    )
    talk.over(0)
    assert ["True", "True"] == talk.lines


@BOTH
@FORMS
def test_an_ignored_signal_stays_ignored(begin: Begin, form: str, number: Signals) -> None:
    """What the parent, or nohup, had ignored does not end the program."""
    talk = begin(
        USES
        + f"""
signal.signal({int(number)}, signal.SIG_IGN)
def body(graph):
    say("body")
    say(listen())
    try: gate.wait(0.1)
    except KeyboardInterrupt: say("interrupted")
{form}(body, kind("only"))
"""
    )
    talk.hears("body")
    talk.signal(number)
    talk.tell("still here")
    talk.hears("still here", "stop only done")
    talk.over(0)
    assert "interrupted" not in talk.lines


@BOTH
def test_the_other_signal_when_one_is_ignored(begin: Begin, number: Signals) -> None:
    """A program in the background, whose SIGINT is ignored, ends by SIGTERM, and the other way round."""
    other = SIGINT if number == SIGTERM else SIGTERM
    talk = begin(f"""
signal.signal({int(other)}, signal.SIG_IGN)
def main(graph):
    say("body")
    gate.wait()
sys.exit(Graph(kind("only")).run(main, signal_exit=7))
""")
    talk.hears("body")
    talk.signal(number)
    talk.over(7)


@pytest.mark.parametrize("ignored", [SIGINT, SIGTERM])
def test_a_request_when_a_signal_is_ignored(begin: Begin, ignored: Signals) -> None:
    """request_teardown ends a sync main whatever is ignored."""
    talk = begin(f"""
signal.signal({int(ignored)}, signal.SIG_IGN)
def main(graph):
    threading.Thread(target=lambda: (go.wait(), graph.request_teardown())).start()
    go.set()
    gate.wait()
sys.exit(Graph(kind("only")).run(main, signal_exit=7))
""")
    talk.over(7)


def test_a_request_when_main_took_the_signals(begin: Begin) -> None:
    """A main that installed handlers of its own is ended by request_teardown, and those handlers are not called for it."""
    talk = begin("""
def main(graph):
    for number in (2, 15): signal.signal(number, lambda n, f: say(f"own {n}"))
    threading.Thread(target=lambda: (go.wait(), graph.request_teardown())).start()
    try:
        go.set()
        gate.wait()
    except KeyboardInterrupt: say("ended")
sys.exit(Graph(kind("only")).run(main, signal_exit=7))
""")
    talk.over(7, within=5)
    assert "ended" in talk.lines
    assert "own 2" not in talk.lines


@FORMS
def test_off_the_main_thread(begin: Begin, form: str) -> None:
    """Elsewhere than on the main thread no signals can be had: a clear GraphStateError, before anything starts."""
    talk = begin(
        USES
        + f"""
def work():
    try: {form}(lambda graph: say("never"), kind("only"))
    except GraphStateError as why: say(f"refused: {{'main thread' in str(why)}}")
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    )
    talk.over(0)
    assert ["refused: True"] == talk.lines, talk.account()
    assert "never awaited" not in talk.stderr


def test_without_signals_any_thread_will_do(begin: Begin) -> None:
    """A graph that does not listen is used by with on any thread."""
    talk = begin("""
def work():
    with Graph(kind("only")): say("body")
thread = threading.Thread(target=work)
thread.start()
thread.join()
""")
    talk.over(0)
    assert "stop only done" == talk.lines[-1]


def test_someone_elses_wakeup_fd_hears(begin: Begin) -> None:
    """While run is at work the program's own wake-up fd has it back afterwards, and nothing of ours is written there."""
    talk = begin("""
r, w = os.pipe()
for fd in (r, w): os.set_blocking(fd, False)
signal.set_wakeup_fd(w)
def main(graph):
    say("body")
    gate.wait()
code = Graph(kind("only")).run(main, signal_exit=7)
signal.signal(signal.SIGUSR1, lambda *_: None)
try: os.read(r, 100)
except BlockingIOError: pass
os.kill(os.getpid(), signal.SIGUSR1)
say(os.read(r, 100) == bytes([signal.SIGUSR1]))
signal.set_wakeup_fd(-1)
""")
    talk.hears("body")
    talk.signal(SIGTERM)
    talk.over(0)
    assert "True" == talk.lines[-1]


def test_add_signal_handler_in_an_async_main(begin: Begin) -> None:
    """An async main that listens by add_signal_handler, as servers do, hears; and all is given back at the end."""
    talk = begin("""
before = signal.getsignal(2), signal.getsignal(15)
async def main(graph):
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.set)
    say("body")
    await heard.wait()
    asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
    say("heard")
code = Graph(kind("only")).run(main, signal_exit=7)
say((signal.getsignal(2), signal.getsignal(15)) == before)
say(signal.set_wakeup_fd(-1))
sys.exit(code)
""")
    talk.hears("body")
    talk.signal(SIGTERM)
    talk.over(0)
    assert ["heard", "stop only", "stop only done", "True", "-1"] == talk.lines[-5:]


NESTED = """
outer = Graph(kind("outer"), name="o", {outer})
inner = Graph(kind("inner"), name="i", {inner})
def body(graph=None):
    try:
        say("body")
        gate.wait()
    finally: say(f"inner {{inner.state}} outer {{outer.state}}")
def nested(graph=None):
    {nest}
{call}
"""
NESTS = {
    "with in with": ("signals=True", "signals=True", "with inner: body()", "with outer: nested()"),
    "run in run": ("", "", "inner.run(body)", "sys.exit(outer.run(nested, signal_exit=7))"),
    "run in with": ("signals=True", "", "inner.run(body)", "with outer: nested()"),
    "with in run": ("", "signals=True", "with inner: body()", "sys.exit(outer.run(nested, signal_exit=7))"),
    "plain with in run": ("", "", "with inner: body()", "sys.exit(outer.run(nested, signal_exit=7))"),
    "with in plain with": ("", "signals=True", "with inner: body()", "with outer: nested()"),
}


@BOTH
@pytest.mark.parametrize("nest", NESTS)
def test_nested(begin: Begin, nest: str, number: Signals) -> None:
    """A signal in the innermost body: inner and outer are torn down, in this order, each once."""
    outer, inner, nested, call = NESTS[nest]
    talk = begin(NESTED.format(outer=outer, inner=inner, nest=nested, call=call))
    talk.hears("body")
    talk.signal(number)
    talk.over()
    assert ["inner running outer running", "stop inner", "stop inner done", "stop outer", "stop outer done"] == [
        line for line in talk.lines if line.startswith(("inner", "stop"))
    ], talk.account()


@BOTH
def test_nested_second_and_third(begin: Begin, number: Signals) -> None:
    """Signals are the process's: a second hurries, a third leaves, whichever of two nested graphs is at work."""
    program = NESTED.replace('kind("inner")', 'kind("inner", stop=gate.wait, stop_timeout=None, lane="caller")')
    outer, inner, nested, call = NESTS["with in with"]
    talk = begin(program.format(outer=outer, inner=inner, nest=nested, call=call))
    talk.hears("body")
    talk.signal(number)
    talk.hears("stop inner")
    talk.signal(number)
    talk.writes("inner")
    talk.signal(number)
    talk.over(128 + number)


@pytest.mark.parametrize("first", [0, 1])
def test_two_graphs_left_in_the_wrong_order(begin: Begin, first: int) -> None:
    """Two listening graphs that do not nest: when both are left, the handlers from before are back."""
    talk = begin(f"""
before = signal.getsignal(2), signal.getsignal(15)
graphs = [Graph(kind("a"), name="a", signals=True), Graph(kind("b"), name="b", signals=True)]
for graph in graphs: graph.__enter__()
for graph in (graphs[{first}], graphs[{1 - first}]): graph.__exit__(None, None, None)
say((signal.getsignal(2), signal.getsignal(15)) == before)
""")
    talk.over(0)
    assert "True" == talk.lines[-1]


def test_an_inner_graph_that_is_a_resource(begin: Begin) -> None:
    """A graph inside a graph: hurry passes inward, one signal after the other."""
    needs_inner_graphs()
    talk = begin("""
base = kind("base")
stuck = kind("stuck", stop=gate.wait, stop_timeout=None)
inner = Graph(base, stuck, name="inner")
outer = Graph(name="outer")
outer.add(inner)
def main(graph):
    say("body")
    gate.wait()
code = outer.run(main, hard_exit=False)
say(fates(inner.report))
say(fates(outer.report))
os._exit(code)
""")
    talk.hears("body")
    talk.signal(SIGTERM)
    talk.hears("stop stuck")
    talk.signal(SIGTERM)
    talk.over(3)
    assert "stuck=timed_out" in talk.lines[-2]
