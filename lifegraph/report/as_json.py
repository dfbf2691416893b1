"""A report as JSON, and back. Reading runs no code from the text, and refuses whatever does not fit."""

from __future__ import annotations

import json
from array import array
from typing import Any, Final

from ..events import Fate
from ..plan import Plan
from .outcome import FATES, NO_DETAIL, Detail, Lease, ReportError
from .told import Told

__all__ = ["SCHEMA", "dumped", "loaded"]

SCHEMA: Final = 1


def dumped(report: Told) -> str:
    """All of ``report``. Causes follow from the edges, and are added for readers."""
    plan, codes, causes = report.plan, report.codes, report.causes.of
    resources = []
    for node, name in enumerate(plan.names):
        detail = report.details.get(node, NO_DETAIL)
        told = {
            slot: value for slot in Detail.__slots__ if (value := getattr(detail, slot)) != getattr(NO_DETAIL, slot)
        }
        resources.append({
            "name": name, "fate": FATES[codes[node]], "uses": plan.uses[node], "orders": plan.orders[node],
            "declared_at": plan.where[node], "start_timeout": plan.start_limits[node],
            "stop_timeout": plan.stop_limits[node], "began": report.began[node], "ended": report.ended[node], **told,
            **({"because": [plan.names[cause] for cause in causes[node]]} if node in causes else {}),
        })  # fmt: skip
    return json.dumps({
        "lifegraph": SCHEMA, "graph": plan.title, "ok": report.ok, "exit_code": report.exit_code,
        "seconds": report.seconds, "workers": plan.workers, "grace": plan.grace, "start_failed": report.start_failed,
        "forecast": report.forecast, "attested": report.attested, "notes": report.notes,
        "leases": [{slot: getattr(lease, slot) for slot in Lease.__slots__} for lease in report.leases],
        "critical_path": report.critical_path, "resources": resources,
    }, indent=1, allow_nan=False)  # fmt: skip


def loaded(text: str | bytes) -> dict[str, Any]:
    """The fields of the report that `dumped` wrote; raises `ReportError` for anything else."""
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("lifegraph") != SCHEMA:
            found = data.get("lifegraph") if isinstance(data, dict) else None
            raise ReportError(f"not a report of schema {SCHEMA}: it says {found!r}")
        return _read(data)
    except ReportError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as why:
        raise ReportError(f"not a report of this library: {type(why).__name__}: {why}") from why


def _read(data: dict[str, Any]) -> dict[str, Any]:
    rows = data["resources"]
    plan = _plan(data, rows)
    details = {}
    for node, row in enumerate(rows):
        if told := {slot: row[slot] for slot in Detail.__slots__ if slot in row}:
            details[node] = _detail(told)
    codes = bytes(FATES.index(Fate(row["fate"])) for row in rows)
    began, ended = (array("d", [row[key] for row in rows]) for key in ("began", "ended"))
    return {
        "plan": plan, "codes": codes, "began": began, "ended": ended, "details": details,
        "seconds": _seconds(data["seconds"]) or 0.0, "notes": tuple(map(str, data["notes"])),
        "leases": tuple(Lease(**lease) for lease in data["leases"]), "attested": tuple(map(str, data["attested"])),
        "start_failed": bool(data["start_failed"]), "forecast": bool(data["forecast"]),
    }  # fmt: skip


def _plan(data: dict[str, Any], rows: list[dict[str, Any]]) -> Plan:
    size = len(rows)
    names = tuple(str(row["name"]) for row in rows)
    uses, orders = (tuple(tuple(_within(d, size) for d in row[key]) for row in rows) for key in ("uses", "orders"))
    where = tuple(str(row["declared_at"]) for row in rows)
    starts, stops = (tuple(_seconds(row[key]) for row in rows) for key in ("start_timeout", "stop_timeout"))
    plan = Plan(
        str(data["graph"]), names, uses, orders, where, starts, stops, int(data["workers"]), _seconds(data["grace"])
    )
    if len(plan.ids) != size or len(plan.sequence) != size:
        raise ReportError("not a report of this library: a name twice, or a cycle")
    return plan


def _detail(told: dict[str, Any]) -> Detail:
    for slot, value in told.items():
        wanted = type(getattr(NO_DETAIL, slot)) if slot in ("late", "forced", "generation") else str
        if value is not None and not isinstance(value, wanted):
            raise ReportError(f"not a report of this library: {slot} is {value!r}")
    return Detail(**told)


def _seconds(value: Any) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ReportError(f"not a report of this library: {value!r} is no number of seconds")
    return value


def _within(value: Any, size: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < size:
        raise ReportError(f"not a report of this library: no resource number {value!r}")
    return value
