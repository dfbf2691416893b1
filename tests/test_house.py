"""The rules of the house, each checked over the source.

The tables come first; each check is a function that lists complaints, and is tried on a bad example as well.
Sizes are counted in lines as they stand in the file, docstrings and comments included.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import textwrap
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.conftest import ROOT, installed

# Each room imports only from floors below its own; rooms of one floor do not know each other. A room is a module
# or a package; the modules of one package may import each other, but not in a circle.
FLOORS: dict[int, tuple[str, ...]] = {
    10: ("__main__",),
    9: ("cli", "__init__"),
    8: ("graph", "evidence", "testing"),
    7: ("lifecycle",),
    6: ("drive", "hosts"),
    5: ("run",),
    4: ("model", "report"),
    3: ("declare", "plan"),
    2: ("spec", "leases", "quarantine", "signals", "log", "view"),
    1: ("walk", "errors", "events", "parameters"),
}

# What may be imported where only, in any way.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "networkx": ("model",),
    "ray": ("hosts.ray",),
    "threading": ("drive", "hosts", "signals", "leases"),
    "_thread": ("drive", "hosts", "signals", "leases"),
    "asyncio": ("drive", "hosts", "signals", "leases"),
    "ctypes": ("quarantine",),
}

# Packages that are not of the standard library: imported inside functions (or for typing) unless allowed here.
THIRD_PARTY = ("networkx", "structlog", "rich", "ray", "hypothesis", "pytest")
AT_IMPORT: dict[str, tuple[str, ...]] = {
    "ray": ("hosts.ray",),
    "hypothesis": ("testing",),
    "pytest": ("testing",),
}

# All that the walk may know of the world, and words it must not know.
WALK_IMPORTS = {"__future__", "bisect", "collections", "enum", "heapq", "typing"}
WALK_WORDS = re.compile(r"\b(pool|poison|resource)", re.IGNORECASE)

# Private names of CPython, in quarantine.py only; those with a leading underscore that are documented are free.
PRIVATE = {
    "_asyncgens", "_dangling", "_exitfunc", "_main_thread", "_register_atexit", "_registry", "_run_exitfuncs",
    "_scheduled", "_shutdown", "_shutdown_locks", "_threads_queues", "_weakrefset", "pythonapi",
}  # fmt: skip
DOCUMENTED = {"_exit", "_current_frames", "_getframe", "_thread"}

# `import lifegraph` looks for none of these.
HEAVY = {"networkx", "structlog", "torch", "ray", "rich", "asyncio", "numpy", "hypothesis", "pytest"}

FILE, CLASS, FUNCTION = 300, 200, 40
# Larger ones: "path" or "path::Qualified.name" -> the lines allowed, and why.
EXCEPTIONS: dict[str, tuple[int, str]] = {
    "lifegraph/graph.py": (
        450,
        "the public face: sync and async verbs with their docstrings and overloads in one place",
    ),
    "lifegraph/graph.py::Graph": (400, "the same face, which is one class"),
    "lifegraph/run/engine.py": (385, "all that a driver may ask of a run, and all that a run decides, read as one"),
    "lifegraph/run/engine.py::Run": (335, "the same, which is one class"),
    "lifegraph/drive/threads.py": (480, "the scheduler is read whole: who holds the key, who waits, who is woken"),
    "lifegraph/drive/threads.py::Driver": (410, "the same, which is one class"),
}

FORBIDDEN_NAMES = {"util", "utils", "common", "base", "helper", "helpers", "manager", "misc"}
# A thing of its domain may be called so: path -> why.
NAME_EXCEPTIONS: dict[str, str] = {
    "examples/kv_offload/manager.py": "the KV manager of serving engines is called so by everybody",
}

# Drivers may catch BaseException once each; anywhere else: module -> (how often, why).
DRIVERS = ("drive", "hosts")
BASE_EXCEPTION: dict[str, tuple[int, str]] = {
    "drive.threads": (
        2,
        "user code on a thread, and user code on a loop: whatever it raises is its answer",
    ),
    "drive.caller": (2, "what a verb raised, and what lent work raised, is raised again on the other thread"),
    "drive.loop": (2, "a task that tries to end the private loop, and what is thrown into a host task"),
    "drive.steps": (
        2,
        "an interrupt or cancellation is thrown into the steps of a verb, on a thread and on a loop",
    ),
    "lifecycle.lifecycle": (1, "an interrupt while others finish a teardown is raised again at its end"),
    "lifecycle.saying": (1, "a stream of the user's that raises keeps no process from ending"),
    "lifecycle.session": (3, "whatever main raises, sync or async, the teardown follows and the exit code tells"),
    "log": (1, "a log handler that raises decides nothing"),
    "run.failure": (1, "the text of an exception is the user's code too"),
}

# Rooms without a public face: they need no docstrings below the module's.
UNDOCUMENTED = ("drive", "hosts")


@dataclass(frozen=True)
class Import:
    """One module imported: where from, in which line, inside a function or not, for typing only or not."""

    target: str
    line: int
    lazy: bool = False
    typing: bool = False

    @property
    def package(self) -> str:
        return self.target.partition(".")[0]


@dataclass(frozen=True)
class Module:
    """One source file. ``name`` is dotted, without ``__init__``; ``known`` are the names of all modules."""

    name: str
    source: str
    path: str = "example.py"
    package: bool = False
    known: frozenset[str] = field(default=frozenset(), repr=False)

    def __str__(self) -> str:
        return self.path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source, self.path)

    @property
    def inside(self) -> str:
        """The name within lifegraph: ``drive.threads``."""
        return self.name.partition(".")[2] or "__init__"

    @property
    def room(self) -> str:
        return room(self.name)

    def is_in(self, places: tuple[str, ...]) -> bool:
        return any(self.inside == place or self.inside.startswith(place + ".") for place in places)

    @cached_property
    def imports(self) -> list[Import]:
        return list(self._imports(self.tree, lazy=False, typing=False))

    def _imports(self, node: ast.AST, *, lazy: bool, typing: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, lazy, typing)
            elif isinstance(child, ast.ImportFrom):
                base = self._absolute(child)
                for alias in child.names:
                    inner = f"{base}.{alias.name}"
                    yield Import(inner if inner in self.known else base, child.lineno, lazy, typing)
            elif isinstance(child, ast.Call) and called(child) in ("import_module", "__import__"):
                names = [argument.value for argument in child.args[:1] if isinstance(argument, ast.Constant)]
                yield from (Import(str(name), child.lineno, lazy, typing) for name in names)
            deeper = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for statement in child.body:
                    yield from self._imports(ast.Module([statement], []), lazy=lazy, typing=True)
                yield from self._imports(ast.Module(child.orelse, []), lazy=lazy, typing=typing)
            else:
                yield from self._imports(child, lazy=lazy or deeper, typing=typing)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + self.package]
        return ".".join([*parts, node.module] if node.module else parts)

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        tokens = tokenize.generate_tokens(io.StringIO(self.source).readline)
        return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]

    @cached_property
    def exported(self) -> list[str] | None:
        """What ``__all__`` says; None where there is none."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return list(ast.literal_eval(node.value))
        return None


def called(node: ast.Call) -> str:
    """The last part of the name of what is called."""
    return ast.unparse(node.func).rpartition(".")[2]


def room(name: str) -> str:
    """The room that the module ``name`` is in, or is."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def modules(top: Path, name: str) -> list[Module]:
    """All modules under ``top``, the folder of the package ``name``."""
    files = sorted(top.rglob("*.py")) if top.is_dir() else []
    dotted = {path: ".".join([name, *path.relative_to(top).with_suffix("").parts]) for path in files}
    dotted = {path: name.removesuffix(".__init__") for path, name in dotted.items()}
    known = frozenset(dotted.values())
    return [
        Module(
            name=dotted[path],
            source=path.read_text(encoding="utf-8"),
            path=str(Path(name, path.relative_to(top))),
            package=path.name == "__init__.py",
            known=known,
        )
        for path in files
    ]


LIFEGRAPH = modules(installed("lifegraph"), "lifegraph")
EXAMPLES = modules(ROOT / "examples", "examples")
TESTS = modules(ROOT / "tests", "tests")
NAMES = {module.name for module in LIFEGRAPH}

of_lifegraph = pytest.mark.parametrize("module", LIFEGRAPH, ids=str)
of_product = pytest.mark.parametrize("module", [*LIFEGRAPH, *EXAMPLES], ids=str)
of_all = pytest.mark.parametrize("module", [*LIFEGRAPH, *EXAMPLES, *TESTS], ids=str)


def example(source: str, name: str = "lifegraph.spec") -> Module:
    """A module with this source, as if it were in the house."""
    return Module(name, textwrap.dedent(source), known=frozenset(NAMES | {"lifegraph", "lifegraph.walk"}))


def bites(check: Callable[[Module], list[str]], source: str, name: str = "lifegraph.spec") -> bool:
    """The check has something to say about this source."""
    return bool(check(example(source, name)))


def test_the_house_is_seen() -> None:
    """The checks below look at the real files."""
    assert {"lifegraph", "lifegraph.walk", "lifegraph.errors"} <= NAMES
    assert TESTS


# ---- floors


def floor(name: str) -> int | None:
    """The floor a room is on."""
    return next((number for number, rooms in FLOORS.items() if name in rooms), None)


def climbs(module: Module) -> list[str]:
    """Imports that go up, or sideways into another room."""
    here = floor(module.room)
    if here is None:
        return [f"{module}: the room {module.room!r} stands on no floor; put it into FLOORS"]
    said = []
    for seen in module.imports:
        if seen.package != "lifegraph":
            continue
        there = room(seen.target)
        below = floor(there)
        if there != module.room and (below is None or below >= here):
            said.append(f"{module}:{seen.line}: {module.room} (floor {here}) imports {seen.target} (floor {below})")
    return said


@of_lifegraph
def test_floors(module: Module) -> None:
    """Each room imports only from lower floors, also for typing and inside functions."""
    assert [] == climbs(module)


@pytest.mark.parametrize(
    "source",
    [
        "import lifegraph",
        "from . import __version__",
        "from lifegraph.graph import Graph",
        "from .graph import Graph",
        "from lifegraph import leases",
        "def f():\n    from lifegraph.plan import Plan",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lifegraph.report import Report",
        "import importlib\nimportlib.import_module('lifegraph.run')",
    ],
)
def test_an_import_up_is_seen(source: str) -> None:
    """Every way to import upwards or sideways is seen, and the ways down are not."""
    assert bites(climbs, source)
    assert not bites(climbs, "from lifegraph import walk\nfrom lifegraph.walk import Walk\nfrom .walk import Walk")
    assert bites(climbs, "", "lifegraph.attic"), "an unknown room"


def test_the_design_page_draws_these_floors() -> None:
    """The table in docs/explanation/design.md is the one that is checked here."""
    page = (ROOT / "docs" / "explanation" / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert FLOORS == {int(number): tuple(re.findall(r"`(\w+)`", rooms)) for number, rooms in rows}


def circles(house: list[Module]) -> list[str]:
    """One circle of modules that import each other, if there is any."""
    needs = {module.name: {seen.target for seen in module.imports} - {module.name} for module in house}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return [" -> ".join(reversed(error.args[1]))]
    return []


def test_no_circle() -> None:
    """No modules import each other in a circle, not even under TYPE_CHECKING."""
    assert [] == circles(LIFEGRAPH)
    inner = "def f():\n    from lifegraph.view.a import x"
    pair = [example("from lifegraph.view.b import y", "lifegraph.view.a"), example(inner, "lifegraph.view.b")]
    assert circles(pair)


# ---- who may import what


def strays(module: Module) -> list[str]:
    """Imports of what belongs to another room, or of what nobody said is used, or at the wrong time."""
    said = []
    for seen in module.imports:
        where = f"{module}:{seen.line}: {seen.target}"
        if seen.package in ONLY_IN and not module.is_in(ONLY_IN[seen.package]):
            said.append(f"{where} only in {', '.join(ONLY_IN[seen.package])}")
        if seen.package in (*sys.stdlib_module_names, "lifegraph", "_typeshed"):
            continue
        if seen.package not in THIRD_PARTY:
            said.append(f"{where}: not among the packages used")
        elif not (seen.lazy or seen.typing or module.is_in(AT_IMPORT.get(seen.package, ()))):
            said.append(f"{where}: import it inside a function")
    return said


@of_lifegraph
def test_imports_belong_to_their_rooms(module: Module) -> None:
    """networkx, ray, threading, asyncio and their like are imported in their rooms only; third parties lazily."""
    assert [] == strays(module)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import networkx", "lifegraph.model"),
        ("def f():\n    import networkx", "lifegraph.plan"),
        ("import threading", "lifegraph.run"),
        ("from asyncio import run", "lifegraph.graph"),
        ("from concurrent import futures\nfrom _thread import get_ident", "lifegraph.graph"),
        ("def f():\n    import torch", "lifegraph.evidence"),
        ("import ray", "lifegraph.hosts.wire"),
    ],
)
def test_a_stray_import_is_seen(source: str, name: str) -> None:
    """An import in the wrong room, or at the wrong time, is seen; one in its place is not."""
    assert bites(strays, source, name)
    assert not bites(strays, "def f():\n    import networkx as nx", "lifegraph.model")
    assert not bites(strays, "import threading, asyncio", "lifegraph.drive.loop")
    assert not bites(strays, "import ray", "lifegraph.hosts.ray")


def worldly(module: Module) -> list[str]:
    """What the walk knows that it should not."""
    said = [f"{module}:{i.line}: {i.target}" for i in module.imports if i.package not in WALK_IMPORTS]
    lines = enumerate(module.source.splitlines(), 1)
    return said + [f"{module}:{number}: {line.strip()}" for number, line in lines if WALK_WORDS.search(line)]


def test_the_walk_is_pure() -> None:
    """walk.py knows no clock, thread or I/O, and no words of what it is used for."""
    [walk] = [module for module in LIFEGRAPH if module.name == "lifegraph.walk"]
    assert [] == worldly(walk)
    assert bites(worldly, "import time")
    assert bites(worldly, "def f():\n    from threading import Lock")
    assert bites(worldly, "x = 1  # poisoned")


LOOKED_FOR = """
import sys
heavy = set(sys.argv[1].split(","))
early = heavy & set(sys.modules)
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in heavy:
            print(name)
sys.meta_path.insert(0, Watch())
{program}
assert not early, f"there before: {early}"
"""


def looked_for(program: str) -> str:
    """Which of the heavy packages a fresh interpreter looks for, installed or not."""
    code = LOOKED_FOR.replace("{program}", program)
    command = [sys.executable, "-c", code, ",".join(sorted(HEAVY))]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT).stdout


def test_importing_lifegraph_is_light() -> None:
    """`import lifegraph` looks for none of the heavy packages."""
    assert "" == looked_for("import lifegraph")
    assert "asyncio" in looked_for("import asyncio").splitlines()
    assert "torch" in looked_for("try: import torch.nn\nexcept ImportError: pass").splitlines()


def pries(module: Module) -> list[str]:
    """Private names of CPython that are used."""
    if module.is_in(("quarantine",)):
        return []
    foreign: set[str] = set()  # names that stand for something of the standard library
    said = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            foreign |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or "", *(alias.name for alias in node.names)]
            foreign |= {alias.asname or alias.name for alias in node.names}
        else:
            continue
        said += [f"{module}:{node.lineno}: {n}" for n in names if is_private(n) and n != "_typeshed"]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            ours = owner in ("self", "cls")
            pried = node.attr in PRIVATE or (owner.partition(".")[0] in foreign and is_private(node.attr))
            if pried and not ours:
                said.append(f"{module}:{node.lineno}: {owner}.{node.attr}")
        elif isinstance(node, ast.Constant) and node.value in PRIVATE:
            said.append(f"{module}:{node.lineno}: {node.value!r}")
    return said


def is_private(name: str) -> bool:
    """An underscore in front, and not documented for all that."""
    return name.startswith("_") and not name.startswith("__") and name not in DOCUMENTED


@of_lifegraph
def test_private_names_of_cpython(module: Module) -> None:
    """Private names of CPython are used in quarantine.py only."""
    assert [] == pries(module)


@pytest.mark.parametrize(
    "source",
    [
        "import weakref\nweakref.finalize._registry",
        "from weakref import finalize\ngetattr(finalize, '_registry')",
        "import ctypes\nctypes.pythonapi",
        "import threading as t\nt._shutdown()",
        "from threading import _register_atexit",
        "import _weakref",
        "import atexit\natexit._run_exitfuncs()",
    ],
)
def test_a_private_name_is_seen(source: str) -> None:
    """Prying into CPython is seen; its documented names, and our own private names, are free."""
    assert bites(pries, source)
    assert not bites(pries, source, "lifegraph.quarantine")
    assert not bites(pries, "import sys, os\nsys._getframe()\nsys._current_frames()\nos._exit(1)\nself._registry")


# ---- sizes and names


def measures(module: Module) -> Iterator[tuple[str, int, int]]:
    """Everything that has a size: its key, its lines, and how many it may have."""
    yield module.path, len(module.source.splitlines()), FILE
    pending: list[tuple[str, ast.AST]] = [("", module.tree)]
    while pending:
        prefix, node = pending.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{prefix}{child.name}"
                limit = CLASS if isinstance(child, ast.ClassDef) else FUNCTION
                yield f"{module.path}::{name}", (child.end_lineno or 0) - child.lineno + 1, limit
                pending.append((f"{name}.", child))
            else:
                pending.append((prefix, child))


def sprawls(module: Module) -> list[str]:
    """What is larger than it may be."""
    return [
        f"{key}: {lines} lines, {EXCEPTIONS.get(key, (limit, ''))[0]} allowed"
        for key, lines, limit in measures(module)
        if lines > EXCEPTIONS.get(key, (limit, ""))[0]
    ]


@of_product
def test_sizes(module: Module) -> None:
    """Files, classes and functions fit their limits; what does not is an exception that says why."""
    assert [] == sprawls(module)


def test_a_sprawl_is_seen() -> None:
    """One line too many is seen, at every level."""
    long = "\n    ".join(["def f():", *["pass"] * FUNCTION])
    assert bites(sprawls, long)
    assert not bites(sprawls, long.rpartition("\n")[0])
    assert bites(sprawls, "\n    ".join(["class C:", *["x = 1"] * CLASS]))
    assert bites(sprawls, "x = 1\n" * (FILE + 1))
    assert not bites(sprawls, "x = 1\n" * FILE)


def test_exceptions_are_needed_and_say_why() -> None:
    """Each exception has a reason, and is still needed where its subject exists."""
    seen = {key: (lines, limit) for module in [*LIFEGRAPH, *EXAMPLES] for key, lines, limit in measures(module)}
    for key, (allowed, why) in EXCEPTIONS.items():
        assert len(why) > 10, f"{key}: say why"
        lines, limit = seen.get(key, (allowed, 0))
        assert lines > limit, f"{key} fits its limit now: take the exception away"
    for key, reason in (*NAME_EXCEPTIONS.items(), *((key, why) for key, (_, why) in BASE_EXCEPTION.items())):
        assert len(reason) > 10, f"{key}: say why"


@of_all
def test_no_room_for_everything(module: Module) -> None:
    """No module or package is named after nothing in particular."""
    assert not FORBIDDEN_NAMES & set(module.name.split(".")) or module.path in NAME_EXCEPTIONS


# ---- ignores

CODES = r"[\w-]+(?:\s*,\s*[\w-]+)*"
REASON = r"[\s#:–—-]+\S.*\S"
IGNORES = (
    (re.compile(r"#\s*type:\s*ignore"), re.compile(rf"#\s*type:\s*ignore\[{CODES}\]{REASON}")),
    (re.compile(r"#\s*pyright:\s*ignore"), re.compile(rf"#\s*pyright:\s*ignore\[{CODES}\]{REASON}")),
    (
        re.compile(r"#\s*(ruff:\s*|flake8:\s*)?noqa", re.IGNORECASE),
        re.compile(rf"#\s*(ruff:\s*)?noqa:\s*{CODES}{REASON}", re.IGNORECASE),
    ),
    (re.compile(r"#\s*mypy:"), re.compile(rf"#\s*mypy:\s*\S+(?=\s){REASON}")),
)


def hushes(module: Module) -> list[str]:
    """Ignores without a code or without a reason."""
    return [
        f"{module}:{line}: {comment}"
        for line, comment in module.comments
        for ignore, reasoned in IGNORES
        if ignore.search(comment) and not reasoned.search(comment)
    ]


@of_all
def test_every_ignore_has_a_code_and_a_reason(module: Module) -> None:
    """Every `type: ignore` and `noqa` says what it ignores, and why."""
    assert [] == hushes(module)


@pytest.mark.parametrize(
    "comment",
    [
        "# type: ignore",
        "# type: ignore[attr-defined]",
        "# type: ignore  # because",
        "# noqa",
        "# noqa: BLE001",
        "# noqa - because",
        "# ruff: noqa",
        "# pyright: ignore",
        "# pyright: ignore[reportAny]",
        "# mypy: ignore-errors",
    ],
)
def test_a_bare_ignore_is_seen(comment: str) -> None:
    """An ignore that lacks its code or its reason is seen, in a comment only."""
    assert bites(hushes, f"x = 1  {comment}")
    assert not bites(hushes, f"x = '{comment}'")


@pytest.mark.parametrize(
    "comment",
    [
        "# type: ignore[attr-defined]  # set below",
        "# type: ignore[a, b] - set below",
        "# noqa: BLE001 - a hook may raise anything",
        "# noqa: BLE001, S110  # a hook may raise anything",
        "# pyright: ignore[reportAny]  # anything is meant",
    ],
)
def test_a_reasoned_ignore_is_fine(comment: str) -> None:
    """An ignore with its code and its reason is fine."""
    assert not bites(hushes, f"x = 1  {comment}")


def test_every_ignored_rule_has_a_reason() -> None:
    """Each rule that pyproject.toml ignores for whole files has its reason in a comment beside it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lint = text.partition("\nignore = [")[2].partition("\n[tool.ruff.lint.pydocstyle]")[0].splitlines()
    rules = [line for line in lint if re.search(r'"[A-Z]+\d*"', line)]
    assert len(rules) > 20
    assert [] == [line for line in rules if not re.search(r"#\s*\S.*\S", line)]
    types = text.partition("\n[tool.pyright]")[2].splitlines()
    assert [] == [line for line in types if line.endswith("= false")]


# ---- who catches everything


def catches(module: Module) -> list[int]:
    """The lines where BaseException is caught, or ignored."""
    lines = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            what = ast.unparse(node.type) if node.type else "BaseException"
        elif isinstance(node, ast.Call) and called(node) == "suppress":
            what = ast.unparse(node)
        else:
            continue
        if re.search(r"\bBaseException(Group)?\b", what):
            lines.append(node.lineno)
    return sorted(lines)


def greedy(module: Module) -> list[str]:
    """BaseException caught too often, or without saying why."""
    lines = catches(module)
    allowed = BASE_EXCEPTION.get(module.inside, (1 if module.is_in(DRIVERS) else 0, ""))[0]
    said = [f"{module}: BaseException is caught in lines {lines}; {allowed} allowed"] if len(lines) > allowed else []
    commented = {line for line, _ in module.comments}
    return said + [f"{module}:{line}: say why" for line in lines if not {line - 1, line, line + 1} & commented]


@of_lifegraph
def test_base_exception_is_caught_once_per_driver(module: Module) -> None:
    """Only drivers catch BaseException, at one line each, and say why."""
    assert [] == greedy(module)


def test_greed_is_seen() -> None:
    """Every way to catch everything is seen."""
    why = "try: pass\nexcept BaseException: pass  # the product"
    for source in (why, why.replace(" BaseException", ""), why.replace("BaseException", "(ValueError, BaseException)")):
        assert bites(greedy, source), "not a driver"
        assert not bites(greedy, source, "lifegraph.drive.herald")
        assert bites(greedy, source.partition("#")[0], "lifegraph.drive.herald"), "no reason"
        assert bites(greedy, f"{source}\n{why}", "lifegraph.drive.herald"), "twice"
    assert bites(greedy, "from contextlib import suppress\nwith suppress(BaseException): pass")


# ---- public names

TYPE_VARIABLES = {"K", "P", "R", "T", "V"}
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def bindings(body: list[ast.stmt]) -> Iterator[str]:
    """The names that these statements bind at the module's top, inside `if` and `try` too."""
    for node in body:
        if isinstance(node, Definition):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        for part in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try):
                yield from bindings(getattr(node, part, []))


def unlisted(module: Module) -> list[str]:
    """Public names that ``__all__`` lacks, and names in it that do not exist."""
    own = [node for node in module.tree.body if not isinstance(node, ast.Import | ast.ImportFrom | ast.If | ast.Try)]
    public = {name for name in bindings(own) if not name.startswith("_") and name not in TYPE_VARIABLES}
    exported = module.exported
    if exported is None:
        return [f"{module}: no __all__, but {sorted(public)}"] if public else []
    said = [f"{module}: {name} is public, but not in __all__" for name in sorted(public - set(exported))]
    bound = set(bindings(module.tree.body))
    said += [f"{module}: {name} in __all__ twice" for name in sorted(set(exported)) if exported.count(name) > 1]
    return said + [f"{module}: {name} in __all__ does not exist" for name in exported if name not in bound]


@of_lifegraph
def test_public_names_are_in_all(module: Module) -> None:
    """Every public name is in its module's `__all__`, and nothing else is."""
    assert [] == unlisted(module)


def test_an_unlisted_name_is_seen() -> None:
    """A name without its place in `__all__`, and a place without its name, are seen."""
    for source in ("def f(): ...", "__all__ = []\nX = 1", "__all__ = ['x']", "__all__ = ['f', 'f']\ndef f(): ..."):
        assert bites(unlisted, source)
    assert not bites(unlisted, "from os import sep\n__all__ = ['f', 'sep']\ndef f(): ...\n_x = 1")


def decorators(node: Definition) -> set[str]:
    """The last parts of the names of its decorators."""
    return {ast.unparse(d).partition("(")[0].rpartition(".")[2] for d in node.decorator_list}


def documented(node: Definition) -> bool:
    """It has a docstring, or is one of those that another one speaks for."""
    return bool(ast.get_docstring(node)) or bool({"overload", "override", "setter"} & decorators(node))


def silent(module: Module) -> list[str]:
    """Public things without a docstring, and time limits without their unit."""
    said = [] if ast.get_docstring(module.tree) else [f"{module}: no docstring"]
    if module.is_in(UNDOCUMENTED):
        return said
    for node in module.tree.body:
        if not isinstance(node, Definition) or node.name.startswith("_"):
            continue
        said += [f"{module}:{node.lineno}: {node.name} has no docstring"] if not documented(node) else []
        if not isinstance(node, ast.ClassDef) or "Protocol" in map(ast.unparse, node.bases):
            continue
        for method in node.body:
            if not isinstance(method, Definition) or method.name.startswith("_"):
                continue
            if not (documented(method) or inherited(method.name, node, module)):
                said.append(f"{module}:{method.lineno}: {node.name}.{method.name} has no docstring")
    return said


def inherited(name: str, node: ast.ClassDef, module: Module) -> bool:
    """A base in the same module has a method of this name, whose docstring speaks for this one."""
    bases = {ast.unparse(base) for base in node.bases}
    classes = [other for other in module.tree.body if isinstance(other, ast.ClassDef) and other.name in bases]
    return any(isinstance(method, Definition) and method.name == name for other in classes for method in other.body)


@of_lifegraph
def test_public_names_are_documented(module: Module) -> None:
    """Every module, public class, function and method has a docstring."""
    assert [] == silent(module)


def test_silence_is_seen() -> None:
    """A missing docstring is seen at every level."""
    for source in (
        "x = 1",
        "'D.'\ndef f(): ...",
        "'D.'\nclass C: ...",
        "'D.'\nclass C:\n    'D.'\n    def m(self): ...",
    ):
        assert bites(silent, source)
    assert not bites(silent, "'D.'\nclass C:\n    'D.'\n    def m(self): 'D.'\n    def _n(self): ...")
    assert not bites(silent, "'D.'\ndef f(): ...", "lifegraph.drive.loop")


def unitless(module: Module) -> list[str]:
    """Public functions that take a limit in time and do not say in what unit, nor does their class."""
    said = []
    for top in module.tree.body:
        if not isinstance(top, Definition) or top.name.startswith("_"):
            continue
        about = ast.get_docstring(top) or ""
        for node in [top, *(top.body if isinstance(top, ast.ClassDef) else ())]:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or "overload" in decorators(node):
                continue
            limits = {a.arg for a in (*node.args.args, *node.args.kwonlyargs) if re.search("timeout|grace", a.arg)}
            if limits and not node.name.startswith("_") and "second" not in about + (ast.get_docstring(node) or ""):
                said.append(f"{module}:{node.lineno}: {node.name} does not say that {sorted(limits)} are seconds")
    return said


def test_limits_say_their_unit() -> None:
    """What takes a limit in time says that it is in seconds."""
    face = [module for module in LIFEGRAPH if module.room in ("graph", "evidence", "testing", "declare")]
    assert [] == [complaint for module in face for complaint in unitless(module)]
    assert bites(unitless, "def f(grace): 'D.'")
    assert not bites(unitless, "def f(grace): 'With grace in seconds.'")


def test_the_face_says_what_threads_may_do() -> None:
    """The graph's docstring speaks of thread-safety."""
    faces = [node for m in LIFEGRAPH if m.room == "graph" for node in m.tree.body if isinstance(node, ast.ClassDef)]
    for node in faces:
        if node.name == "Graph":
            assert "thread" in (ast.get_docstring(node) or "")


def test_public_names_are_covered_by_typing_tests() -> None:
    """Every name that lifegraph exports is used in tests/typing/, which type checkers read."""
    [top] = [module for module in LIFEGRAPH if module.name == "lifegraph"]
    typing = [module for module in TESTS if module.name.startswith("tests.typing.")]
    used = {
        name
        for module in typing
        for node in ast.walk(module.tree)
        for name in (
            [node.id] if isinstance(node, ast.Name) else [node.attr] if isinstance(node, ast.Attribute) else []
        )
    }
    assert set() == {name for name in top.exported or [] if not name.startswith("__")} - used


# ---- tests


def waits(module: Module) -> list[str]:
    """Sleeps that may be waits: those of more than nothing whose line does not say what they stand for."""
    reasoned = {line for line, comment in module.comments if re.search(r"#\s*\S+\s\S+", comment)}
    return [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and called(node) == "sleep"
        if not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
        if node.lineno not in reasoned
    ]


@of_all
def test_nothing_sleeps_to_wait(module: Module) -> None:
    """Nothing sleeps to wait for something; a sleep that is something else says what, in its line."""
    assert [] == waits(module)


def test_a_sleep_is_seen() -> None:
    """A sleep without a reason is seen; yielding once is fine."""
    assert bites(waits, "import time\ntime.sleep(0.1)")
    assert bites(waits, "async def f():\n    await asyncio.sleep(1)  # wait")
    assert not bites(waits, "async def f():\n    await asyncio.sleep(0)\n    time.sleep(9)  # the hook that hangs")


@pytest.mark.parametrize("module", TESTS, ids=str)
def test_tests_say_what_they_show(module: Module) -> None:
    """Each test has a docstring that says what is so when it passes."""
    tests = [n for n in ast.walk(module.tree) if isinstance(n, Definition) and n.name.startswith("test_")]
    assert [] == [f"{module}:{node.lineno}: {node.name}" for node in tests if not ast.get_docstring(node)]


def test_pytest_is_strict() -> None:
    """Warnings are errors, an unexpected pass is a failure, a hang shows its stacks, and markers are declared."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert ["error"] == options["filterwarnings"][:1]
    assert options["xfail_strict"] is True
    assert options["faulthandler_timeout"] > 0
    assert "--strict-markers" in options["addopts"]
