"""SIGINT and SIGTERM, once, twice, three times, at every stage of a graph's life, in child processes."""

from __future__ import annotations

import os
import signal
from signal import SIGHUP, SIGINT, SIGTERM, Signals

import pytest

from tests.process.conftest import Begin
from tests.process.talking import needs_drain, pace

BOTH = pytest.mark.parametrize("number", [SIGTERM, SIGINT], ids=["SIGTERM", "SIGINT"])

CHAIN = """
base, top = kind("base"), kind("top", "base")
"""
STOPPED = ["stop top", "stop top done", "stop base", "stop base done"]

BODY = (
    CHAIN
    + """
def main(graph):
    try:
        say("body")
        gate.wait()
    except BaseException as why:
        say(f"body ended by {type(why).__name__}")
        raise
    finally:
        say("body left")
graph = Graph(top, base)
code = graph.run(main, signal_exit=7)
say(fates(graph.report))
sys.exit(code)
"""
)


@BOTH
def test_in_the_body(begin_any: Begin, number: Signals) -> None:
    """A signal ends the body by KeyboardInterrupt, then everything is stopped, and the exit code is signal_exit."""
    talk = begin_any(BODY)
    talk.hears("body")
    talk.signal(number)
    talk.over(7)
    assert ["body ended by KeyboardInterrupt", "body left", *STOPPED, "base=released top=released"] == talk.lines[-7:]
    assert "" == talk.stderr


@BOTH
def test_signal_exit_is_0_unless_said(begin: Begin, number: Signals) -> None:
    """A signal is an ordinary end of a server."""
    talk = begin(BODY.replace(", signal_exit=7", ""))
    talk.hears("body")
    talk.signal(number)
    talk.over(0)


@BOTH
def test_waiting_for_a_signal(begin_any: Begin, number: Signals) -> None:
    """Without main, run waits for a signal; with nothing else to do the process sleeps meanwhile."""
    talk = begin_any(CHAIN + "sys.exit(Graph(top, base).run(signal_exit=4))")
    talk.hears("start top done")
    talk.signal(number)
    talk.over(4)
    assert STOPPED == talk.lines[-4:]


@BOTH
def test_in_an_async_body(begin_any: Begin, number: Signals) -> None:
    """A signal cancels an async main; everything is stopped, on its loop."""
    talk = begin_any("""
loops = []
@resource
async def base():
    loops.append(asyncio.get_running_loop())
    yield 1
    say(f"base left on its loop: {loops[0] is asyncio.get_running_loop()}")
async def main(graph):
    try:
        say("body")
        await asyncio.get_running_loop().create_future()
    except BaseException as why:
        say(f"body ended by {type(why).__name__}")
        raise
sys.exit(Graph(base).run(main, signal_exit=7))
""")
    talk.hears("body")
    talk.signal(number)
    talk.over(7)
    assert ["body", "body ended by CancelledError", "base left on its loop: True"] == talk.lines
    assert "" == talk.stderr


@BOTH
def test_in_a_start(begin_any: Begin, number: Signals) -> None:
    """A signal calls the start off: what is starting may finish, the rest is skipped, what is up is stopped."""
    talk = begin_any("""
base = kind("base", start=lambda: (listen(), gate.wait(0.3)))  # the signal is heard meanwhile
top = kind("top", "base")
graph = Graph(base, top)
code = graph.run(lambda graph: say("never"), signal_exit=7)
say(fates(graph.report))
sys.exit(code)
""")
    talk.hears("start base")
    talk.signal(number)
    talk.tell()
    talk.over(7)
    assert ["start base", "start base done", "stop base", "stop base done", "base=released top=skipped"] == talk.lines


def test_a_second_signal_in_a_start_that_hangs(begin_any: Begin) -> None:
    """The second signal gives the hanging start up: the report is complete, and the exit prompt, by code 3."""
    talk = begin_any("""
base = kind("base")
slow = kind("slow", "base", start=gate.wait, start_timeout=None)
Graph(base, slow).run(hard_exit=True, signal_exit=7)
""")
    talk.hears("start slow")
    talk.signal(SIGTERM, SIGINT)  # two of one kind might become one
    talk.over(3)
    assert "slow" in talk.stderr


@BOTH
def test_while_a_hook_hangs(begin_any: Begin, number: Signals) -> None:
    """One signal, a hook that hangs: its limit decides, what it uses is poisoned, all else is released; exit code 3."""
    talk = begin_any("""
base, free = kind("base"), kind("free")
bad = kind("bad", "base", stop=gate.wait, stop_timeout=0.2)
graph = Graph(base, bad, free)
def main(graph):
    say("body")
    gate.wait()
sys.exit(graph.run(main, signal_exit=7))
""")
    talk.hears("body")
    talk.signal(number)
    talk.over(3)
    assert "stop free done" in talk.lines
    assert "stop base" not in talk.lines
    assert [] == [word for word in ("base", "bad", "poisoned", "timed out") if word not in talk.stderr]


@BOTH
@pytest.mark.parametrize("main", ["", "a"], ids=["sync", "async"])
def test_a_first_signal_in_a_stop(begin_any: Begin, number: Signals, main: str) -> None:
    """When main had returned already, it is still only the first: what runs may finish, and all is released."""
    talk = begin_any(f"""
top = kind("top", "base", stop=lambda: (listen(), gate.wait(0.3)))  # the signal is heard meanwhile
graph = Graph(kind("base"), top)
def main(graph): say("body")
async def amain(graph): say("body")
code = graph.run({main}main)
say(fates(graph.report))
sys.exit(code)
""")
    talk.hears("body", "stop top")
    talk.signal(number)
    talk.tell()
    talk.over(0)
    assert ["stop top done", "stop base", "stop base done", "base=released top=released"] == talk.lines[-4:]
    assert "" == talk.stderr


@BOTH
def test_a_first_signal_in_a_drain(begin_any: Begin, number: Signals) -> None:
    """The same while a drain runs: it may finish, and the stops follow."""
    needs_drain()
    talk = begin_any("""
top = kind("top", "base", drain=lambda: (listen(), gate.wait(0.3)))  # the signal is heard meanwhile
sys.exit(Graph(kind("base"), top).run(lambda graph: say("body")))
""")
    talk.hears("body", "drain top")
    talk.signal(number)
    talk.tell()
    talk.over(0)
    assert ["drain top done", "stop top", "stop top done", "stop base", "stop base done"] == talk.lines[-5:]


HANGING = """
base, free = kind("base"), kind("free")
bad = kind("bad", "base", stop=gate.wait, stop_timeout=None)
late = kind("late", stop=gate.wait, stop_timeout=None)
graph = Graph(base, bad, free, late)
"""


@pytest.mark.parametrize("main", ["", "main", "amain"])
@BOTH
def test_a_second_signal_hurries(begin_any: Begin, number: Signals, main: str) -> None:
    """Hooks that would hang for ever are given up; one line names all that is not released; the report is complete."""
    talk = begin_any(
        HANGING
        + f"""
def main(graph): gate.wait()
async def amain(graph): await asyncio.sleep(1000)
code = graph.run({main or None}, hard_exit=False, signal_exit=7)
say(fates(graph.report))
sys.stderr.flush()
os._exit(code)
"""
    )
    talk.hears("start bad done", "start free done", "start late done")
    talk.signal(number)
    talk.hears("stop bad", "stop late")
    talk.signal(number)
    talk.over(3)
    assert "base=poisoned" in talk.lines[-1]
    assert "bad=timed_out" in talk.lines[-1]
    assert "late=timed_out" in talk.lines[-1]
    line = [line for line in talk.stderr.splitlines() if all(name in line for name in ("bad", "late", "base"))]
    assert line, talk.stderr


def test_a_second_signal_of_the_other_kind(begin: Begin) -> None:
    """SIGTERM after SIGINT is a second signal too; a third of either leaves by its own number."""
    talk = begin(HANGING + "graph.run(signal_exit=7)")
    talk.hears("start bad done", "start free done", "start late done")
    talk.signal(SIGINT)
    talk.hears("stop bad")
    talk.signal(SIGTERM)
    talk.over(3)


NEVER_ENDS = """
# The second signal cannot end this: the hook runs on the caller's own lane.
stuck = kind("stuck", stop=lambda: [gate_wait() for _ in range(10)], lane="caller")
def gate_wait():
    try: gate.wait()
    except KeyboardInterrupt: say("swallowed")
graph = Graph(stuck)
def main(graph):
    atexit.register(say, "atexit ran")
    say("body")
    gate.wait()
graph.run(main, signal_exit=7)
"""


@BOTH
def test_a_third_signal_leaves_at_once(begin_any: Begin, number: Signals) -> None:
    """Whatever holds the process up, the third signal ends it with 128 + n, and nothing else runs."""
    talk = begin_any(NEVER_ENDS)
    talk.hears("body")
    talk.signal(number)
    talk.hears("stop stuck")
    talk.signal(number)
    talk.writes("stuck")  # the line that says what the hurry leaves
    talk.signal(number)
    talk.over(128 + number)
    assert "atexit ran" not in talk.lines


@BOTH
def test_a_third_signal_while_the_main_thread_is_in_c(begin_any: Begin, number: Signals) -> None:
    """A body stuck in C code that no signal gets out of: the third signal still ends the process at once."""
    talk = begin_any("""
import ctypes
libc = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(256)
def main(graph):
    libc.pthread_mutex_lock(mutex)
    threading.Timer(0.5, say, ["body"]).start()  # when the main thread is in there
    libc.pthread_mutex_lock(mutex)  # for ever, also when a signal comes
base = kind("base")
Graph(base).run(main)
""")
    talk.hears("body")
    for _ in range(3):
        talk.signal(number)
        pace(talk.pid)
    talk.over(128 + number)


@BOTH
def test_many_signals_at_once(begin_any: Begin, number: Signals) -> None:
    """A storm of signals ends the process one way or the other, never in a traceback of ours, never in a hang."""
    talk = begin_any(BODY)
    talk.hears("body")
    for _ in range(50):
        if talk.process.poll() is None:
            os.kill(talk.pid, number)
    code = talk.over()
    assert code in {7, 3, 128 + number}, talk.account()
    assert 'File "' not in talk.stderr


GROUP = """
class Child:
    def start(self):
        self.process = subprocess.Popen([sys.executable, "-S", "-c", self.text], stdout=subprocess.PIPE)
        self.process.stdout.readline()
    def stop(self):
        self.process.terminate()
        say(f"child ended {self.process.wait(10)}")
        self.process.stdout.close()
class Quick(Child):
    text = "import signal; signal.signal(2, signal.SIG_DFL); print('x', flush=True); signal.pause()"
class Obstinate(Child):
    text = '''
import signal
signal.signal(2, signal.SIG_IGN)
print(signal.getsignal(15) is signal.SIG_DFL, flush=True)
while True: signal.pause()
'''
quick, obstinate = resource(name="quick")(Quick), resource(name="obstinate", depends_on=["quick"])(Obstinate)
def main(graph):
    say("body")
    gate.wait()
graph = Graph(quick, obstinate)
code = graph.run(main, signal_exit=7)
say(fates(graph.report))
sys.exit(code)
"""


@BOTH
def test_to_the_whole_group(begin_any: Begin, number: Signals) -> None:
    """Child processes that are resources get the signal too; each is reaped by its own stop, and all is released."""
    talk = begin_any(GROUP)
    talk.hears("body")
    talk.signal_group(number)
    talk.over(7)
    assert ["child ended -15", f"child ended -{int(number)}", "obstinate=released quick=released"] == talk.lines[-3:]


IMPORTING = """
import os, signal, sys
def say(text): os.write(1, (text + "\\n").encode())
{before}
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "lifegraph.walk":
            say("importing")
            sys.stdin.readline()
sys.meta_path.insert(0, Finder())
import lifegraph
say("imported")
"""


@BOTH
def test_during_the_import(begin: Begin, number: Signals) -> None:
    """Importing the package touches no handler: a signal then does what it does without it."""
    talk = begin(IMPORTING.format(before=""), prelude="")
    talk.hears("importing")
    talk.signal(number)
    code = talk.over()
    assert -number == code


@BOTH
def test_during_the_import_with_a_handler(begin: Begin, number: Signals) -> None:
    """The program's own handler is called, and the import goes on."""
    talk = begin(IMPORTING.format(before=f"signal.signal({int(number)}, lambda n, f: say(f'got {{n}}'))"), prelude="")
    talk.hears("importing")
    talk.signal(number)
    talk.hears(f"got {int(number)}")
    talk.tell()
    talk.over(0)
    assert "imported" == talk.lines[-1]


@BOTH
@pytest.mark.parametrize("failing", [False, True])
def test_after_the_end(begin: Begin, number: Signals, failing: bool) -> None:
    """When run has returned, a signal does what it did before run."""
    talk = begin(f"""
base = kind("base", stop={'raises(OSError("x"))' if failing else None})
say(Graph(base).run(lambda graph: None, hard_exit=False))
say("after")
gate.wait()
""")
    talk.hears("after")
    talk.signal(number)
    assert -number == talk.over()


def test_other_signals_are_not_touched(begin: Begin) -> None:
    """SIGHUP keeps its default, and its user's handler, while run is at work."""
    talk = begin(
        CHAIN
        + """
signal.signal(signal.SIGUSR1, lambda *_: say("usr1"))
Graph(top, base).run()
"""
    )
    talk.hears("start top done")
    talk.signal(signal.SIGUSR1)
    talk.hears("usr1")
    talk.signal(SIGHUP)
    assert -SIGHUP == talk.over()


def test_the_grace_counts_from_the_signal(begin: Begin) -> None:
    """A body that takes its time to end eats of the grace: what is left when it is over is abandoned."""
    talk = begin("""
base = kind("base", stop=gate.wait, stop_timeout=None)
def main(graph):
    try:
        say("body")
        gate.wait()
    finally:
        say("cleaning up")
        listen()
graph = Graph(base, grace=0.3)
began = time.monotonic()
code = graph.run(main, hard_exit=False)
say("over")
os._exit(code)
""")
    talk.hears("body")
    talk.signal(SIGTERM)
    talk.hears("cleaning up")
    talk.tell()
    talk.hears("over")
    talk.over(3)


STRUCK = """
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
OURS = os.path.dirname(lifegraph.__file__)
first, stride = int(sys.argv[1]), int(sys.argv[2])
foreign = []
signal.signal(signal.SIGTERM, lambda n, f: foreign.append(n))

def world():
    log = []
    def make(name, *depends_on):
        class Sync:
            def start(self): log.append(("up", name))
            def stop(self): log.append(("stop", name))
        return resource(name=name, depends_on=list(depends_on))(Sync)
    return log, Graph(make("base"), make("mid", "base"), make("top", "mid"))

def one(countdown):
    left, line = [countdown], []
    def local(frame, event, arg):
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                sys.settrace(None)
                before.append(not returned)
                line.append(f"{os.path.relpath(frame.f_code.co_filename, OURS)}:{frame.f_lineno} {frame.f_code.co_qualname}")
                os.kill(os.getpid(), signal.SIGTERM)
        return local
    def trace(frame, event, arg):
        return local if frame.f_code.co_filename.startswith(OURS) else None
    log, graph = world()
    del foreign[:]
    before, returned, kept = [], [], []
    def main(graph):
        if before and not foreign:
            gate.wait(4)  # the end was asked for already, so it comes
            kept.append(1)
        returned.append(1)
    watch = threading.Timer(9, hangs, (line, countdown))
    watch.daemon = True
    watch.start()
    sys.settrace(trace)
    error = code = None
    try: code = graph.run(main, signal_exit=7, hard_exit=False)
    except BaseException as why: error = why
    finally: sys.settrace(None)
    watch.cancel()
    faults = []
    if error is not None: faults.append(f"run raised {error!r}")
    if kept and not foreign: faults.append("the body was not ended")
    struck = left[0] <= 0
    ups = {name for what, name in log if what == "up"}
    stops = [name for what, name in log if what == "stop"]
    if sorted(stops) != sorted(ups): faults.append(f"up {sorted(ups)}, stopped {sorted(stops)}")
    if stops != [n for n in ("top", "mid", "base") if n in stops]: faults.append(f"stopped in this order: {stops}")
    if code == 0 and before == [True] and not foreign: faults.append("the signal was lost")
    if code not in (0, 7): faults.append(f"exit code {code}")
    if len(foreign) > 1: faults.append("the program's own handler was called twice")
    if signal.getsignal(signal.SIGTERM).__name__ != "<lambda>": faults.append("the handler was not given back")
    if faults: say(f"line {countdown} {line}: {faults}")
    return struck, faults

def hangs(line, countdown):
    import faulthandler
    faulthandler.dump_traceback()
    say(f"line {countdown} {line}: hangs")
    os._exit(9)

number, wrong = first, 0
while True:
    struck, faults = one(number)
    wrong += bool(faults)
    if not struck or wrong > 2: break
    number += stride
say("swept")
os._exit(0)
"""


def test_at_some_lines(begin: Begin) -> None:
    """A signal at every third line of ours that run takes on the main thread: heard, by us or by the program's own
    handler; all that was up is stopped, once."""
    talk = begin(STRUCK, "1", "3")
    talk.over(within=60)
    assert ["swept"] == talk.lines, talk.account()


@pytest.mark.slow
def test_at_every_line(begin_any: Begin) -> None:
    """The same at each line, on every Python."""
    talk = begin_any(STRUCK, "1", "1")
    talk.over(within=280)
    assert ["swept"] == talk.lines, talk.account()
