"""What each verb of the command line does. All return an exit code."""

from __future__ import annotations

import logging
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Final

from ..errors import DeclarationError
from ..graph import Graph
from ..plan import Blast, Plan
from ..quarantine import quarantine
from ..report import Report
from ..view import (
    Scene,
    form_of,
    printed,
    scene,
    to_dot,
    to_html,
    to_json,
    to_mermaid,
    to_svg,
    to_text,
    to_trace,
)
from ..view.labels import counted, duration, listing, shorten, visible
from ..view.live import Live
from .differing import differences
from .targets import graph_of, is_report, report_of
from .wrong_use import WrongUse

__all__ = ["FORMS", "VERBS", "check", "diff", "explain", "run", "show", "what_if"]

FORMS: Final[Mapping[str, Callable[[Scene], str]]] = {
    "tree": to_text, "dot": to_dot, "mermaid": to_mermaid, "svg": to_svg, "html": to_html, "json": to_json,
    "trace": to_trace,
}  # fmt: skip
_RANKED = 20
_RANKABLE = 20_000  # resources; the ranking grows with the square


def check(options: Namespace) -> int:
    """Declarations, worst case against grace, and what fails worst."""
    graph = graph_of(options.target)
    plan = graph.plan()
    grace = plan.grace if options.grace is None else options.grace
    worst = replace(plan, grace=None).worst_case
    edges = counted(len(plan.edges), "dependency", "dependencies")
    _say(f"{visible(plan.title)}: {counted(len(plan), 'resource', 'resources')}, {edges}, no faults")
    _say(f"worst case    {_seconds(worst)}, along {listing(plan.critical_path, 6)}")
    _say(f"grace         {'none' if grace is None else duration(grace)}")
    for blast in _ranking(graph)[:3]:
        if blast.poisoned:
            _say(f"if it fails   {_blast(blast)}")
    if callers := _on_the_callers_lane(graph):
        _fail(f"no limit can be kept for {listing(callers, 6)}: hooks with lane='caller' run on the thread that waits")
    if grace is None or worst <= grace:
        return 0
    least = "make the limits on that path smaller, or the grace larger"
    _fail(f"the worst case, {_seconds(worst)}, is longer than the grace of {duration(grace)}: {least}")
    return 2


def show(options: Namespace) -> int:
    """A graph or a report, in any form; faults may be supposed."""
    if is_report(options.target):
        if options.fail or options.hang:
            raise WrongUse("--fail and --hang suppose faults of a graph; a report says what happened")
        report = report_of(options.target)
        _paint(report.plan, report, options)
        return 0
    graph = graph_of(options.target)
    _paint(graph.plan(), _forecast(graph, options) if options.fail or options.hang else None, options)
    return 0


def what_if(options: Namespace) -> int:
    """A forecast; without a fault, the ranking of what a failure would poison."""
    graph = graph_of(options.target)
    if not (options.fail or options.hang):
        _rank(graph, options)
        return 0
    report = _forecast(graph, options)
    _paint(report.plan, report, options)
    for note in report.notes:
        sys.stderr.write(f"note: {visible(note)}\n")
    return 0


def run(options: Namespace) -> int:
    """The graph as a program, until a signal or its own request ends it."""
    graph = graph_of(options.target)
    if options.report is not None and not options.report.absolute().parent.is_dir():
        raise WrongUse(f"--report {options.report}: there is no folder to write it into")
    live = Live(graph.plan()) if options.live else nullcontext()
    if isinstance(live, Live):
        graph.observe(live)
    with live:
        code = graph.run(hard_exit=False)
    if options.report is not None and graph.report is not None:
        _write(options.report, graph.report.to_json())
    if quarantine():
        _leave(code)
    return code


def explain(options: Namespace) -> int:
    """A paragraph on each resource that was not released, or on those named."""
    report = report_of(options.report_file)
    for name in options.names:
        if name not in report.fates:
            raise WrongUse(f"{options.report_file} knows no {name!r}; it has {listing(list(report.fates), 12)}")
    unproven = [name for name in report.held if report.fates[name].unproven]
    names = options.names or [*unproven, *(name for name in report.held if name not in unproven)]
    _say("\n\n".join(report.explain(name) for name in names) or report.headline)
    return 0


def diff(options: Namespace) -> int:
    """What is different in the second report."""
    lines = differences(report_of(options.old), report_of(options.new))
    _say("\n".join(lines) or "no difference")
    return 0


VERBS: Final[Mapping[str, Callable[[Namespace], int]]] = {
    "check": check, "show": show, "what-if": what_if, "run": run, "explain": explain, "diff": diff,
}  # fmt: skip


def _forecast(graph: Graph, options: Namespace) -> Report:
    try:
        return graph.what_if(fail=options.fail, hang=options.hang)
    except DeclarationError as why:
        raise WrongUse(str(why)) from why


def _rank(graph: Graph, options: Namespace) -> None:
    if len(graph) > _RANKABLE:
        raise WrongUse(f"{len(graph):,} resources are too many to rank: say one by --fail or --hang")
    blasts = [blast for blast in graph.blast() if blast.poisoned]
    lines = [f"{visible(graph.name)}: what a resource poisons when it is not proven stopped"]
    lines += [f"{len(blast.poisoned):>7,}  {_blast(blast)}" for blast in blasts[:_RANKED]]
    if len(blasts) > _RANKED:
        lines.append(
            f"     and {counted(len(blasts) - _RANKED, 'more resource', 'more resources')} that poison something"
        )
    if len(blasts) < len(graph):
        lines.append(f"      0  {counted(len(graph) - len(blasts), 'resource poisons', 'resources poison')} nothing")
    _put("\n".join(lines) + "\n", options.output)


def _on_the_callers_lane(graph: Graph) -> list[str]:
    model = graph._life.model  # noqa: SLF001 - lanes are no part of a plan
    return [model.names[node] for node in model.nodes() if model.spec(node).hooks.lane == "caller"]


def _ranking(graph: Graph) -> tuple[Blast, ...]:
    return graph.blast() if len(graph) <= _RANKABLE else ()


def _blast(blast: Blast) -> str:
    size = f", {blast.bytes:,} bytes" if blast.bytes else ""
    return f"{shorten(visible(blast.name), 60)} -> {listing(blast.poisoned, 5)}{size}"


def _paint(plan: Plan, report: Report | None, options: Namespace) -> None:
    form = options.format or ("tree" if options.output is None else _form(options.output))
    if form == "json" and report is not None and not options.reduce and options.focus is None:
        _put(report.to_json() + "\n", options.output)
        return
    try:
        picture = scene(plan, report, reduce=options.reduce, focus=options.focus)
    except ValueError as why:
        raise WrongUse(str(why)) from why
    if form == "tree" and options.output is None:
        sys.stdout.write(printed(picture, sys.stdout))
    else:
        _put(FORMS[form](picture), options.output)


def _form(path: Path) -> str:
    try:
        return form_of(path)
    except ValueError as why:
        raise WrongUse(f"{why}; or say it by --format") from why


def _put(text: str, path: Path | None) -> None:
    if path is None:
        _say(text.removesuffix("\n"))
    else:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as why:
        raise WrongUse(f"cannot write {path}: {why.strerror or why}") from why


def _say(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _fail(text: str) -> None:
    sys.stderr.write(f"lifegraph: {text}\n")


def _seconds(seconds: float) -> str:
    return "without end: a stop_timeout is None" if seconds == inf else duration(seconds)


def _leave(code: int) -> None:
    """End the process here: what is held must not be touched by the interpreter's own end."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    logging.shutdown()
    os._exit(code)
