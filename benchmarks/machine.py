"""Where it was measured."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["facts"]


def facts() -> dict[str, str]:
    """What a reader needs to judge the figures: date, machine, load, and versions."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(cores),
        "load": f"{load:.2f} when the run began{'' if load < cores / 4 else ', so not an idle machine'}",
        "switch interval": f"{sys.getswitchinterval():g} s",
        "lifegraph": _version("lifegraph-runtime"),
        "networkx": _version("networkx"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
