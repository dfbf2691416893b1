"""The words of the command line, and its exit codes: 0 fine, 2 wrong use or faults, 3 something not released."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import LifegraphError
from .verbs import FORMS, VERBS
from .wrong_use import WrongUse

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; returns the exit code. Errors are one paragraph on stderr."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as end:  # argparse has said what is wrong, or given help
        return int(end.code or 0)
    try:
        return VERBS[options.verb](options)
    except (WrongUse, LifegraphError) as why:
        text = f"lifegraph {options.verb}: {why}"
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        return 2
    except BrokenPipeError:  # whoever read this has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """All verbs, with what each takes."""
    made = argparse.ArgumentParser(
        prog="lifegraph",
        description="See and run graphs of resources. TARGET is module:graph, a Graph or a function that returns one.",
    )
    verbs = made.add_subparsers(dest="verb", required=True, metavar="VERB")
    check = verbs.add_parser("check", help="find faults; compare the worst case with the grace")
    check.add_argument("target", metavar="TARGET")
    check.add_argument("--grace", type=_positive, metavar="SECONDS", help="instead of the graph's own")
    show = verbs.add_parser("show", help="draw a graph, or the report in a file")
    show.add_argument("target", metavar="TARGET|REPORT.json")
    what_if = verbs.add_parser("what-if", help="forecast a teardown; without a fault, rank what failures would poison")
    what_if.add_argument("target", metavar="TARGET")
    for verb in (show, what_if):
        _drawing(verb)
    run = verbs.add_parser("run", help="start the graph, wait for a signal, tear it down")
    run.add_argument("target", metavar="TARGET")
    run.add_argument("--live", action="store_true", help="show what happens while it happens")
    run.add_argument("--report", type=Path, metavar="FILE", help="write the report as JSON")
    explain = verbs.add_parser("explain", help="say why something was not released")
    explain.add_argument("report_file", metavar="REPORT.json")
    explain.add_argument("names", nargs="*", metavar="NAME", help="default: all that is not released")
    diff = verbs.add_parser("diff", help="say what is different between two reports")
    diff.add_argument("old", metavar="OLD.json")
    diff.add_argument("new", metavar="NEW.json")
    return made


def _drawing(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--format", choices=list(FORMS), help="default: by the ending of FILE, else tree")
    verb.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of printing")
    verb.add_argument("--fail", action="append", default=[], metavar="NAME", help="suppose that its stop fails")
    verb.add_argument("--hang", action="append", default=[], metavar="NAME", help="suppose that its stop hangs")
    verb.add_argument("--reduce", action="store_true", help="leave out edges that longer paths imply")
    verb.add_argument("--focus", metavar="NAME", help="only this one, what it depends on and what depends on it")


def _positive(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0:
        raise argparse.ArgumentTypeError(f"{text}: a grace is 0 seconds or more")
    return seconds
