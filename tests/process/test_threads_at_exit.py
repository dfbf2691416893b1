"""The end of the interpreter: hung workers, other people's threads and executors, atexit, and the last word."""

from __future__ import annotations

import contextlib
import subprocess
from signal import SIGINT

import pytest

from tests.process.conftest import Begin

HUNG = {
    "a worker": 'kind("hung", stop=gate.wait, stop_timeout=0.1)',
    "a dedicated thread": 'kind("hung", stop=gate.wait, stop_timeout=0.1, lane="dedicated")',
    "a start": 'kind("hung", start=gate.wait, start_timeout=0.1)',
    "a constructor": "resource(name='hung', start_timeout=0.1)(type('H', (), {'__init__': lambda self: gate.wait(), 'stop': print}))",
    "the private loop": "resource(name='hung', stop_timeout=0.1)(AsyncHung)",
    "the private loop, blocked": "resource(name='hung', stop_timeout=0.1)(Blocks)",
}
CLASSES = """
class AsyncHung:
    async def stop(self): await asyncio.get_running_loop().create_future()
class Blocks:
    async def stop(self): gate.wait()
"""


@pytest.mark.parametrize("hung", HUNG)
def test_what_hangs_keeps_no_process_from_ending(begin_any: Begin, hung: str) -> None:
    """Given up is given up: the interpreter ends with its own exit code, without a traceback."""
    talk = begin_any(f"""
logging.disable(logging.CRITICAL)
{CLASSES}
graph = Graph(kind("base"), {HUNG[hung]})
try: graph.start()
except lifegraph.StartError: pass
graph.teardown()
say("the end")
sys.exit(5)
""")
    talk.over(5)
    assert "the end" == talk.lines[-1]
    assert "Traceback" not in talk.stderr
    assert "Fatal" not in talk.stderr


def test_forty_hung_workers(begin: Begin) -> None:
    """More than all workers hang, and the process ends."""
    talk = begin("""
logging.disable(logging.CRITICAL)
kinds = [kind(f"k{n}", stop=gate.wait, stop_timeout=0.2) for n in range(40)]
graph = Graph(*kinds, workers=8)
graph.start()
report = graph.teardown()
say(len(report.timed_out))
""")
    talk.over(0)
    assert "40" == talk.lines[-1]


USERS = {
    "a non-daemon thread": """
class Own:
    def start(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=False)
        self.thread.start()
    def work(self): self.over.wait()
    def stop(self):
        self.over.set()
        self.thread.join(10)
        say(f"joined {not self.thread.is_alive()}")
""",
    "a ThreadPoolExecutor": """
from concurrent.futures import ThreadPoolExecutor
class Own:
    def start(self):
        self.pool = ThreadPoolExecutor(2)
        self.pool.submit(int).result()
    def stop(self):
        say(f"joined {self.pool.submit(lambda: True).result(10)}")
        self.pool.shutdown()
""",
    "asyncio.to_thread": """
class Own:
    async def start(self): await asyncio.to_thread(int)
    async def stop(self): say(f"joined {await asyncio.to_thread(lambda: True)}")
""",
    "a daemon thread by default": """
class Own:
    def start(self):
        self.thread = threading.Thread(target=gate.wait)
        self.thread.start()
    def stop(self): say(f"joined {self.thread.daemon}")
""",
}
ENDS = {
    "run": "sys.exit(graph.run(lambda graph: None))",
    "run, signal": "graph.run(lambda graph: os.kill(os.getpid(), 15) or gate.wait())",
    "with": "with graph: pass",
    "async run": "async def main(graph): await asyncio.sleep(0)\nsys.exit(graph.run(main))",
    "teardown in a thread": "graph.start()\nt = threading.Thread(target=graph.teardown)\nt.start()\nt.join()",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("user", USERS)
def test_other_peoples_threads(begin: Begin, user: str, end: str) -> None:
    """Threads and executors that are, or belong to, resources are ended by their stop, and hold nothing up."""
    talk = begin(f"{USERS[user]}\ngraph = Graph(resource(name='own')(Own))\n{ENDS[end]}")
    talk.over(0)
    assert ["joined True"] == talk.lines, talk.account()
    assert "" == talk.stderr


@pytest.mark.parametrize("user", ["a non-daemon thread", "a ThreadPoolExecutor", "asyncio.to_thread"])
def test_never_torn_down_with_other_peoples_threads(begin_any: Begin, user: str) -> None:
    """The word comes before the interpreter waits for threads, so also where it would wait for ever."""
    talk = begin_any(
        f"""
{USERS[user]}
graph = Graph(resource(name='own')(Own), name="forgotten")
graph.start()
say("the end")
""",
        options=("-W", "always::ResourceWarning"),
    )
    talk.hears("the end")
    talk.writes("forgotten")
    if user != "a non-daemon thread":
        talk.over(0)
    assert "ResourceWarning" in talk.stderr
    assert "<string>" in talk.stderr
    assert "can't start new thread" not in talk.stderr
    assert 1 == talk.stderr.count("ResourceWarning: ")


@pytest.mark.parametrize("thread", ["none", "daemon", "non-daemon, before", "non-daemon, after the import"])
def test_the_word_is_said_once(begin_any: Begin, thread: str) -> None:
    """One ResourceWarning and one line in the log for each graph with anything up, by name and file:line, no more."""
    make = {
        "none": "",
        "daemon": "threading.Thread(target=gate.wait, daemon=True).start()",
        "non-daemon, before": "threading.Thread(target=lambda: go.wait(0.2)).start()",
        "non-daemon, after the import": "atexit.register(lambda: None); threading.Thread(target=lambda: go.wait(0.2)).start()",
    }[thread]
    talk = begin_any(
        f"""
logging.getLogger("lifegraph").addHandler(handler := logging.Handler())
logged = []
handler.emit = lambda record: say(f"logged {{record.levelname}} {{'one' in str(record.msg % record.args if record.args else record.msg)}}")
one, two = Graph(kind("up"), name="one"), Graph(kind("up"), name="two")
one.start()
two.start()
two.teardown()
{make}
del one, two
gc.collect()
say("the end")
""",
        options=("-W", "always::ResourceWarning"),
    )
    talk.over(0)
    assert 1 == talk.stderr.count("ResourceWarning: "), talk.stderr
    assert "logged WARNING True" == talk.lines[-1], talk.account()
    assert 1 == sum(line.startswith("logged") for line in talk.lines)
    assert "stop up done" in talk.lines
    assert 1 == talk.lines.count("stop up")


@pytest.mark.parametrize("state", ["never started", "torn down", "nothing in it"])
def test_no_word_without_a_reason(begin: Begin, state: str) -> None:
    """A graph that has nothing up is not spoken of."""
    talk = begin(
        f"""
graph = Graph(*[kind("only")] if {state!r} != "nothing in it" else [])
if {state!r} != "never started": graph.start()
if {state!r} == "torn down": graph.teardown()
""",
        options=("-W", "always::ResourceWarning"),
    )
    talk.over(0)
    assert "" == talk.stderr


def test_the_word_as_an_error(begin: Begin) -> None:
    """Where warnings are errors the end is not spoilt: nothing is released, and the exit code stays."""
    talk = begin(
        """
graph = Graph(kind("up"), name="forgotten")
other = Graph(kind("up"), name="too")
graph.start()
other.start()
sys.exit(5)
""",
        options=("-W", "error::ResourceWarning"),
    )
    talk.over(5)
    assert "stop up" not in talk.lines
    assert "forgotten" in talk.stderr
    assert "too" in talk.stderr


ATEXIT = """
sync = kind("sync")
@resource(name="coro")
class Coro:
    async def start(self): say("start coro")
    async def stop(self): say("stop coro")
@resource(name="pinned", lane="dedicated")
class Pinned:
    def stop(self): say("stop pinned")
graph = Graph(sync, Coro, Pinned, name="late")
graph.start()
def end():
    try: say(fates(graph.teardown()))
    except BaseException as why: say(f"raised {type(why).__name__}: {why}")
"""


@pytest.mark.parametrize(
    "where",
    [
        "atexit.register(end)",
        "threading._register_atexit(end)",
        "import weakref\nclass A: ...\na = A()\nweakref.finalize(a, end)",
    ],
)
def test_a_teardown_late(begin_any: Begin, where: str) -> None:
    """Where no threads can be started any more: all is stopped, on the calling thread, or failed with a reason."""
    talk = begin_any(ATEXIT + where)
    talk.over(0)
    assert "can't start new thread" not in talk.stderr, talk.account()
    assert "Traceback" not in talk.stderr, talk.account()
    assert "coro=" in talk.lines[-1]
    assert "pinned=" in talk.lines[-1]
    assert "sync=released" in talk.lines[-1]
    for name in ("coro", "pinned"):
        assert (f"{name}=released" in talk.lines[-1]) == (f"stop {name}" in talk.lines), talk.account()


def test_a_whole_life_late(begin_any: Begin) -> None:
    """A graph that is started, used and torn down in atexit."""
    talk = begin_any("""
graph = Graph(kind("base"), kind("top", "base"))
def end():
    with graph: say("body")
    say(fates(graph.report))
atexit.register(end)
""")
    talk.over(0)
    assert "base=released top=released" == talk.lines[-1], talk.account()


def test_run_late(begin: Begin) -> None:
    """run in atexit works, or raises what says why; it does not hang."""
    talk = begin("""
def end():
    try: say(Graph(kind("base")).run(lambda graph: None))
    except lifegraph.LifegraphError as why: say("said why")
atexit.register(end)
""")
    talk.over(0)
    assert talk.lines[-1] in {"0", "said why"}, talk.account()


def test_a_late_teardown_that_hangs(begin: Begin) -> None:
    """On the calling thread there are no limits: Ctrl-C gets out of it."""
    talk = begin("""
graph = Graph(kind("base"), kind("top", "base", stop=gate.wait, stop_timeout=0.1))
graph.start()
def end():
    say("ending")
    try: say(fates(graph.teardown()))
    except KeyboardInterrupt: say(fates(graph.report))
atexit.register(end)
""")
    talk.hears("ending", "stop top")
    with contextlib.suppress(subprocess.TimeoutExpired):
        talk.process.wait(1)  # where threads can be started, the limit counts
    if talk.process.poll() is None:
        talk.signal(SIGINT)
    talk.over(0)
    assert "base=poisoned" in talk.lines[-1]


def test_the_batcher_that_flushes_through_a_pool(begin_any: Begin) -> None:
    """pool <- batcher: run flushes through the pool while it still takes work; forgotten, a word is said and no data called saved."""
    program = """
from concurrent.futures import ThreadPoolExecutor
class Pool:
    def start(self): self.pool = ThreadPoolExecutor(1)
    def stop(self): self.pool.shutdown(); say("pool")
class Batcher:
    def __init__(self, pool: Pool): self.pool = pool
    def stop(self): say(self.pool.pool.submit(lambda: "flushed").result(5)); say("batcher")
Pool, Batcher = resource(Pool), resource(Batcher)
Batcher.__init__.__annotations__["pool"] = Pool
graph = Graph(Batcher, name="forgotten")
"""
    talk = begin_any(program + "sys.exit(graph.run(lambda graph: None))")
    talk.over(0)
    assert ["flushed", "batcher", "pool"] == talk.lines, talk.account()
    talk = begin_any(program + "graph.start()")
    talk.over(0)
    assert "forgotten" in talk.stderr
    assert [] == talk.lines


def test_at_the_systems_limit_of_threads(begin: Begin) -> None:
    """Where no thread can be started, the graph does all on the calling thread."""
    talk = begin("""
logging.disable(logging.CRITICAL)
real = threading.Thread.start
def refuse(self): raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
graph = Graph(kind("base"), kind("top", "base"))
with graph: say("body")
say(fates(graph.report))
with Graph(kind("base"), signals=True) as graph: say("body")
say(fates(graph.report))
""")
    talk.over(0)
    assert "base=released top=released" in talk.lines, talk.account()


def test_exit_in_a_thread_while_a_teardown_runs(begin_any: Begin) -> None:
    """The main thread ends while another one, a daemon, is in teardown: no crash, no hang."""
    talk = begin_any("""
graph = Graph(*[kind(f"k{n}", stop=lambda: time.sleep(0.001)) for n in range(200)], workers=4)
graph.start()
threading.Thread(target=graph.teardown, daemon=True).start()
sys.exit(4)
""")
    talk.over(4)
    assert "Fatal" not in talk.stderr


def test_os_exit_is_prompt_with_many_held(begin: Begin) -> None:
    """A thousand things held, and the process leaves at once."""
    talk = begin("""
logging.disable(logging.CRITICAL)
quiet = lambda n: resource(name=f"k{n}")(type("K", (), {"stop": raises(OSError("x"))}))
Graph(*[quiet(n) for n in range(1000)]).run(lambda graph: say("body"))
""")
    talk.hears("body")
    talk.over(3)
