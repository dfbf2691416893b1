"""What a command is about: a graph named `module:graph`, or a report in a file."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path

from ..errors import PACKAGE, did_you_mean, short
from ..graph import Graph
from ..report import Report, ReportError
from .wrong_use import WrongUse

__all__ = ["graph_of", "is_report", "report_of"]

_SHAPE = "write it as module:graph, where graph is a Graph or a function that returns one"


def is_report(target: str) -> bool:
    """Whether this names a report's file rather than a graph."""
    return target.endswith(".json") or (":" not in target and Path(target).is_file())


def report_of(path: str) -> Report:
    """The report in this file; raises `WrongUse` where there is none."""
    try:
        return Report.from_json(Path(path).read_text(encoding="utf-8"))
    except OSError as why:
        raise WrongUse(f"cannot read {path}: {why.strerror or why}") from why
    except (ReportError, UnicodeError) as why:
        raise WrongUse(f"{path} is no report: {why}") from why


def graph_of(target: str) -> Graph:
    """The graph that this names; raises `WrongUse` where there is none, or where making it fails."""
    module_name, colon, path = target.partition(":")
    if not (module_name and colon and path):
        raise WrongUse(f"{target!r} names no graph: {_SHAPE}")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` does, so that modules beside the user are found
    found = _imported(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            known = [word for word in dir(found) if not word.startswith("_")]
            hint = did_you_mean(name, known)
            raise WrongUse(f"{module_name} has no {name!r}" + (f"; {hint}" if hint else ""))
        found = getattr(found, name)
    if not isinstance(found, Graph) and callable(found):
        found = _called(target, found)
    if not isinstance(found, Graph):
        raise WrongUse(f"{target} is no graph but of type {type(found).__name__}: {_SHAPE}")
    return found


def _imported(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as why:
        if why.name is not None and (name == why.name or name.startswith(f"{why.name}.")):
            raise WrongUse(f"there is no module {why.name!r} here: {_SHAPE}") from why
        raise WrongUse(f"cannot import {name}: {_told(why)}") from why
    except (Exception, SystemExit) as why:
        raise WrongUse(f"cannot import {name}: {_told(why)}") from why


def _called(target: str, function: object) -> object:
    assert callable(function)
    try:
        return function()
    except (Exception, SystemExit) as why:
        raise WrongUse(f"{target}() made no graph: {_told(why)}") from why


def _told(error: BaseException) -> str:
    """An error in one line, and where the user's code raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((PACKAGE, "<frozen"))]
    where = f" ({short(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    text = str(error)
    return (f"{type(error).__name__}: {text}" if text else type(error).__name__) + where
