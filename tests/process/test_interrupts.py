"""A KeyboardInterrupt at any line of ours that the main thread runs: nothing is lost, nothing is done twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.process.conftest import Begin

PROGRAM = """
import faulthandler, json
mode, first, stride, enough = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
OURS = os.path.dirname(lifegraph.__file__)
LIMIT = 4  # seconds for one round
FIRST = tuple(f":{sorted({line for *_, line in leave.__code__.co_lines() if line})[1]}" for leave in (Graph.__exit__, Graph.__aexit__))
EDGES = (("top", "left"), ("top", "right"), ("left", "base"), ("right", "base"))

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")

class World:
    def __init__(self):
        self.log = []  # (what, name), by any thread
        self.left = 0
        self.line = None
        self.shots = 0

    def graph(self, awaited):
        log = self.log
        def make(name, *depends_on):
            class Sync:
                def start(self): log.append(("up", name))
                def stop(self):
                    log.append(("stop", name))
                    log.append(("stopped", name))
            async def factory():
                log.append(("up", name))
                yield name
                log.append(("stop", name))
                await asyncio.sleep(0)
                log.append(("stopped", name))
            class Stops:
                def start(self): log.append(("up", name))
                async def stop(self):
                    log.append(("stop", name))
                    if name == "top": await asyncio.sleep(0)
                    log.append(("stopped", name))
            target = Sync if not awaited else factory if name in ("base", "left") else Stops
            return resource(name=name, depends_on=list(depends_on))(target)
        kinds = [make("base"), make("left", "base"), make("right", "base"), make("top", "left", "right")]
        return Graph(*kinds, name="struck", stop_timeout=5, start_timeout=5)

    # Striking

    def arm(self, countdown):
        self.left = countdown
        sys.settrace(self.trace)

    def disarm(self):
        sys.settrace(None)
        return self.left <= 0

    def trace(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        return self.local

    def local(self, frame, event, arg):
        if event == "line" and self.left > 0:
            self.left -= 1
            if not self.left:
                sys.settrace(None)
                self.line = f"{os.path.relpath(frame.f_code.co_filename, OURS)}:{frame.f_lineno} {frame.f_code.co_qualname}"
                raise KeyboardInterrupt("struck")
        return self.local

def sync_verbs(world, graph):
    graph.start()
    graph.teardown()

def sync_with(world, graph):
    with graph:
        pass

async def async_verbs_(world, graph):
    await graph.astart()
    await graph.ateardown()

async def async_with_(world, graph):
    async with graph:
        pass

class Late(Exception): ...

def bounded(action):
    '''On another thread: what it returns or raises; Late when it hangs.'''
    out, done = [], threading.Event()
    def work():
        try: out.append(action())
        except BaseException as why: out.append(why)
        done.set()
    threading.Thread(target=work, daemon=True).start()
    if not done.wait(LIMIT):
        faulthandler.dump_traceback()
        raise Late
    return out[0]

def one(countdown):
    '''Faults of one round, and whether the strike came to be.'''
    world = World()
    graph = world.graph(mode.startswith("async"))
    faults, seen = [], None
    watch = threading.Timer(LIMIT, hangs, (world,))
    watch.daemon = True
    watch.start()
    try:
        if mode == "sync verbs": act = lambda: sync_verbs(world, graph)
        elif mode == "sync with": act = lambda: sync_with(world, graph)
        else:
            main = async_verbs_ if mode == "async verbs" else async_with_
            runner = asyncio.Runner()
            runner.get_loop()
            act = lambda: runner.run(main(world, graph))
        world.arm(countdown)
        try: act()
        finally: struck = world.disarm()
    except KeyboardInterrupt as why: seen = why
    except BaseException as why: seen = why
    if mode.startswith("async"):
        try: runner.close()
        except BaseException as why: faults.append(f"closing the loop raised {why!r}")
    watch.cancel()
    hooks = isinstance(seen, BaseExceptionGroup) and seen.subgroup(lifegraph.HookInterrupted) is not None
    if seen is None and graph.report is not None:
        hooks = any(o.error_type == "KeyboardInterrupt" for o in graph.report.outcomes.values())
    if struck and not isinstance(seen, KeyboardInterrupt) and not hooks:  # or it was taken for the hook's own
        faults.append(f"the interrupt came out as {seen!r}")
    if not struck and seen is not None:
        faults.append(f"raised {seen!r}")
    was_up = {name for what, name in world.log if what == "up"}
    if mode.endswith("with") and struck and was_up:
        before = world.line.split()[0].endswith(FIRST) and graph.state == "running"  # Python's own gap: it is not left at all
        if graph.report is None and not before:
            faults.append(f"after the with statement the graph is {graph.state}, and there is no report")
    try: last = bounded(graph.teardown)
    except Late:
        faults.append(f"a teardown afterwards hangs; graph {graph.state}")
        return faults, struck, world
    if not isinstance(last, lifegraph.Report):
        faults.append(f"a teardown afterwards: {last!r}")
        return faults, struck, world
    log = list(world.log)
    ups = [name for what, name in log if what == "up"]
    for name in sorted(set(ups)):
        stops = log.count(("stop", name))
        fate = last.fates.get(name)
        if stops > 1: faults.append(f"{name} was stopped {stops} times")
        if fate is None or fate == "skipped": faults.append(f"{name} was up, and its fate is {fate}")
        if fate == "released" and log.count(("stopped", name)) != 1: faults.append(f"{name} is released, but did not stop")
        if fate in ("abandoned", "poisoned") and stops: faults.append(f"{name} is {fate}, but its stop was called")
        if ups.count(name) > 1: faults.append(f"{name} came up {ups.count(name)} times")
    for dependent, dependency in EDGES:
        if ("stop", dependency) in log and dependent in ups:
            before = log[:log.index(("stop", dependency))]
            if ("stopped", dependent) not in before:
                faults.append(f"{dependency} was stopped before {dependent} had stopped")
    return faults, struck, world

def hangs(world):
    faulthandler.dump_traceback()
    say(json.dumps({"line": world.line, "n": current, "faults": ["the call hangs"]}))
    os._exit(9)

current = first
wrong = 0
while True:
    faults, struck, world = one(current)
    if faults:
        say(json.dumps({"line": world.line, "n": current, "faults": faults}))
        wrong += 1
    if not struck or wrong == enough:
        say(json.dumps({"over": current}))
        break
    current += stride
sys.stdout.flush()
os._exit(0)
"""

MODES = ("sync verbs", "sync with", "async verbs", "async with")


def strike(begin: Begin, mode: str, *, first: int = 1, stride: int, enough: int) -> list[dict[str, Any]]:
    """Strike at every ``stride``-th line; what was found wrong, until that is ``enough``. A child that hangs is begun anew behind that line."""
    found: list[dict[str, Any]] = []
    while True:
        talk = begin(PROGRAM, mode, str(first), str(stride), str(enough))
        talk.over(within=280)
        said = [json.loads(line) for line in talk.lines]
        found += [fault for fault in said if "faults" in fault]
        if said and "over" in said[-1]:
            return found
        if talk.process.returncode != 9 or len(found) >= enough:
            assert talk.process.returncode in {0, 9}, talk.account()
            return found
        first = said[-1]["n"] + stride


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_at_some_lines(begin: Begin, mode: str) -> None:
    """At every 13th line that the main thread runs: all have a fate, in order, once; and the call ends."""
    assert [] == strike(begin, mode, first=7, stride=13, enough=1)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_an_interrupt_at_every_line(begin_any: Begin, mode: str) -> None:
    """The same at each and every line, on each Python."""
    assert [] == strike(begin_any, mode, stride=1, enough=6)
