"""Events as log lines: structlog around the stdlib logger ``lifegraph``.

The library configures nothing and prints nothing below WARNING by default. structlog is loaded with the first
line that is really written.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from dataclasses import fields
from typing import Any, Final, assert_never

from .events import (
    AnswerLate,
    Event,
    HookBegan,
    HookEnded,
    NoteTaken,
    ResourceSettled,
    StartBegan,
    StartEnded,
    StillWaiting,
    TeardownBegan,
    TeardownEnded,
)

__all__ = ["audible", "write"]

_stdlib: Final = logging.getLogger("lifegraph")
_loggers: list[Any] = []
_NAMES: Final = 12  # of many are shown in a line; the record has all


def audible(level: int = logging.DEBUG) -> bool:
    """Whether lines of this level would be written at all."""
    return _stdlib.isEnabledFor(level)


def write(event: Event) -> None:
    """Write one event. What a handler raises is swallowed: a log never decides a teardown."""
    try:
        level, text = _line(event)
        if _stdlib.isEnabledFor(level):
            _logger().log(
                level, text, **{f.name: v for f in fields(event) if (v := getattr(event, f.name)) not in (None, ())}
            )
    except BaseException:  # noqa: BLE001 - see above; this runs on the herald's thread, where nothing is to be ended
        return


def _line(event: Event) -> tuple[int, str]:
    match event:
        case StartBegan():
            return logging.DEBUG, "start began"
        case StartEnded():
            return (logging.INFO, "started") if event.ok else (logging.WARNING, "start rolled back")
        case TeardownBegan():
            return logging.DEBUG, "teardown began"
        case TeardownEnded():
            return (logging.INFO, "torn down") if event.ok else (logging.WARNING, "teardown did not release everything")
        case HookBegan():
            return logging.DEBUG, "hook began"
        case HookEnded():
            if event.timed_out:
                return logging.WARNING, "hook timed out"
            return (logging.WARNING, "hook failed") if event.error else (logging.DEBUG, "hook ended")
        case ResourceSettled():
            return logging.DEBUG, f"resource {event.fate}"  # a consequence: the end of the teardown sums these up
        case AnswerLate():
            return logging.WARNING, "hook ended too late"
        case NoteTaken():
            return logging.WARNING, "note"
        case StillWaiting():
            return logging.WARNING, "still waiting"
        case _:
            assert_never(event)


def _logger() -> Any:
    if not _loggers:
        import structlog  # noqa: PLC0415 - slow to import, and seldom needed

        _loggers.append(
            structlog.wrap_logger(
                _stdlib,
                processors=[_render],
                wrapper_class=structlog.stdlib.BoundLogger,
                cache_logger_on_first_use=False,
            )
        )
    return _loggers[0]


def _render(_: Any, __: str, line: MutableMapping[str, Any]) -> tuple[tuple[str], dict[str, Any]]:
    """``text key=value ...`` for people, and the values as ``record.lifegraph`` for machines."""
    text = str(line.pop("event"))
    line.pop("at", None)
    shown = " ".join(f"{key}={_shown(value)}" for key, value in line.items() if value is not False)
    return (f"{text}  {shown}",), {"extra": {"lifegraph": dict(line)}}


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, tuple):
        more = f" and {len(value) - _NAMES} more" if len(value) > _NAMES else ""
        return ",".join(map(_shown, value[:_NAMES])) + more
    text = str(value)
    return repr(text) if any(c.isspace() for c in text) or not text else text
