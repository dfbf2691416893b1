"""The command line: `run` (the default), `plan` and `explain`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from lifegraph import LifegraphError, Report

from .assembly import SMALLEST_BLOCK, TIERS, Settings, assemble
from .faults import Fault
from .memory.pinning import PinError
from .memory.policies import PolicyName
from .memory.shared import MAX_WORKERS
from .memory.smaps import available_bytes
from .progress import progress
from .serving.content import Content
from .units import parse_size, show_size

DEFAULT_SIZE = 256 << 20
DEFAULT_TORCH_SIZE = 16 << 20
SMALLEST_REGION = 64 * SMALLEST_BLOCK
LARGEST_REGION = 1 << 40
_PROCESSES = tuple(tier for tier in TIERS if tier != "disk")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all released, 1 the traffic failed, 2 wrong use or a failed start, 3 something was not released.

    Where something is not released, the process ends in here.
    """
    parser = _parser()
    options = parser.parse_intermixed_args(arguments)
    options.size = options.size or (DEFAULT_TORCH_SIZE if options.torch else DEFAULT_SIZE)
    verb = _VERBS[options.verb]
    if options.name is not None and options.verb != "explain":
        parser.error(f"{options.verb} takes no name; got {options.name!r}")
    try:
        return verb(options)
    except (_WrongUse, PinError, LifegraphError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2


class _WrongUse(Exception):
    """The command cannot be carried out; the message is for the user."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.kv_offload",
        description="A KV-cache offload hierarchy: a pinned region, tiers behind it, and a safe teardown.",
        epilog="verbs: run serves and tears down; plan draws the hierarchy; explain reads a report; bench measures, "
        "beside vLLM where it is found; scrub verifies the files of --dir; faults runs the matrix of faults",
    )
    parser.add_argument("verb", nargs="?", choices=list(_VERBS), default="run", help="default: run")
    parser.add_argument("name", nargs="?", help="explain: the resource to explain (default: all that is held)")
    parser.add_argument("--size", type=_size, help="bytes of the region (256M; 16M with --torch)")
    parser.add_argument("--dir", type=Path, help="where the disk tier keeps its files (default: a temporary directory)")
    parser.add_argument("--report", type=Path, default=Path("report.json"), help="default: report.json")
    parser.add_argument("--fail", type=_failing, action="append", default=[], metavar="TIER:stop|start")
    parser.add_argument("--hang", choices=TIERS, action="append", default=[], metavar="TIER")
    parser.add_argument(
        "--lie", choices=TIERS, action="append", default=[], metavar="TIER", help="says ok, still writes"
    )
    parser.add_argument(
        "--kill", choices=_PROCESSES, action="append", default=[], metavar="TIER", help="SIGKILL, half-way"
    )
    parser.add_argument("--tiers", type=_tiers, default=("peer", "disk"), help=f"of {', '.join(TIERS)} (peer,disk)")
    parser.add_argument(
        "--policy", type=PolicyName, choices=list(PolicyName), default=PolicyName.LRU, help="default: lru"
    )
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="processes that compute the blocks (none)")
    parser.add_argument("--torch", action="store_true", help="blocks are the keys and values of a small model")
    parser.add_argument("--metrics", type=Path, metavar="FILE", help="write metrics there, as Prometheus text")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="bench, faults: write the tables there")
    parser.add_argument("--quick", action="store_true", help="bench: small and once; faults: the teardown alone")
    parser.add_argument("--vllm", type=Path, metavar="PYTHON", help="bench: the Python of an environment with vLLM")
    parser.add_argument("--redis", metavar="URL", help="use this redis-server and start none")
    return parser


def _size(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not SMALLEST_REGION <= size <= LARGEST_REGION:
        limits = f"{show_size(SMALLEST_REGION)} to {show_size(LARGEST_REGION)}"
        raise argparse.ArgumentTypeError(f"{text}: a region has {limits}")
    return size // SMALLEST_BLOCK * SMALLEST_BLOCK


def _tiers(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or not set(names) <= set(TIERS) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r}: write some of {','.join(TIERS)}")
    return names


def _failing(text: str) -> tuple[str, str]:
    tier, _, hook = text.partition(":")
    if tier not in TIERS or hook not in ("start", "stop"):
        raise argparse.ArgumentTypeError(f"{text!r}: write it as TIER:stop or TIER:start; tiers are {', '.join(TIERS)}")
    return tier, hook


def _settings(options: argparse.Namespace, size: int) -> Settings:
    faults: dict[str, Fault] = {}
    asked = [(tier, Fault(hook)) for tier, hook in options.fail]
    asked += [(tier, Fault.HANG) for tier in options.hang] + [(tier, Fault.LIE) for tier in options.lie]
    for tier, fault in asked:
        if faults.setdefault(tier, fault) != fault:
            raise _WrongUse(f"{tier} can show one fault at a time: {faults[tier]} or {fault}")
    if options.workers and options.torch:
        raise _WrongUse("--torch computes in this process: leave --workers out")
    if not 0 <= options.workers < MAX_WORKERS:
        raise _WrongUse(f"--workers {options.workers}: 0 to {MAX_WORKERS - 1}")
    missing = {*faults, *options.kill} - set(options.tiers)
    if missing:
        raise _WrongUse(f"no tier {' or '.join(sorted(missing))} in --tiers {','.join(options.tiers)}")
    if options.dir is not None and options.dir.exists() and not options.dir.is_dir():
        raise _WrongUse(f"--dir {options.dir} is not a directory")
    settings = Settings(
        size,
        options.dir,
        faults,
        tiers=options.tiers,
        policy=options.policy,
        redis_url=options.redis,
        workers=options.workers,
    )
    return replace(settings, content=_model(settings.block_size)) if options.torch else settings


def _model(block_size: int) -> Content:
    """The content of `--torch`: as many tokens to a block as fit."""
    try:
        from .serving.model_content import ModelContent  # noqa: PLC0415 - torch is optional, and slow to import
        from .serving.transformer import Shape  # noqa: PLC0415 - the same
    except ImportError as error:
        raise _WrongUse(f"--torch: {error}; it comes with the torch extra, or by `make demo-torch`") from error
    return ModelContent(Shape(block_tokens=Shape().block_tokens * block_size // Shape().block_bytes))


def _run(options: argparse.Namespace) -> int:
    from .demo import Demo  # noqa: PLC0415 - the other verbs do without
    from .memory.registration import pinnable  # noqa: PLC0415 - the same

    _settings(options, options.size)
    if not options.report.parent.is_dir() or options.report.is_dir():
        raise _WrongUse(f"--report {options.report}: no file can be written there")
    if options.size > available_bytes():
        raise _WrongUse(
            f"--size {show_size(options.size)}: only {show_size(available_bytes())} of memory are available"
        )
    size, notice = pinnable(options.size, SMALLEST_REGION)
    if notice:
        print(f"notice    {notice}")
    demo = Demo(_settings(options, size), options.report, killed=options.kill, metrics_path=options.metrics)
    return demo.run()


def _plan(options: argparse.Namespace) -> int:
    graph = assemble(_settings(options, options.size))
    print(graph.to_text())
    return 0


def _explain(options: argparse.Namespace) -> int:
    try:
        report = Report.from_json(options.report.read_text())
    except (OSError, ValueError) as error:
        raise _WrongUse(f"no report to explain in {options.report}: {error}") from error
    if options.name is not None and options.name not in report.fates:
        raise _WrongUse(f"{options.report} knows no {options.name!r}; it has {', '.join(report.fates)}")
    names = [options.name] if options.name is not None else [*report.timed_out, *report.failed, *report.poisoned]
    print("\n\n".join(report.explain(name) for name in names) or "everything was released")
    return 0


def _scrub(options: argparse.Namespace) -> int:
    from .scrub import scrub  # noqa: PLC0415 - the other verbs do without

    if options.dir is None or not options.dir.is_dir():
        raise _WrongUse(f"scrub needs the directory of a disk tier: --dir {options.dir or 'PATH'}")
    found = scrub(options.dir)
    print(found.text())
    return 1 if found.wrong else 0


def _bench(options: argparse.Namespace) -> int:
    from .bench import page  # noqa: PLC0415 - the other verbs do without

    directory = options.dir or Path.cwd()
    tables = page.run(
        directory,
        quick=options.quick,
        vllm=options.vllm or page.VLLM,
        told=lambda table: print(page.text(table) + "\n"),
    )
    _write(options.markdown, page.markdown(tables))
    return 0


def _faults(options: argparse.Namespace) -> int:
    from .matrix import table as matrix  # noqa: PLC0415 - the other verbs do without
    from .matrix.cells import Phase  # noqa: PLC0415 - the same

    tiers, missing = matrix.tiers_here()
    print("\n".join(f"not tried {line}" for line in missing), end="\n" if missing else "")
    names = matrix.all_nodes(tiers)
    phases = [Phase.TEARDOWN] if options.quick else list(Phase)
    with progress("rows", len(names) * len(phases)) as told:
        table = matrix.fill(names, phases, told=lambda done, _: told(done))
    right, of = matrix.right(table)
    print("\n" + matrix.markdown(table))
    print("\n".join(matrix.complaints(table)), end="\n" if right < of else "")
    print(f"{right} of {of} cells went by the rule")
    _write(options.markdown, matrix.page(table))
    return 0 if right == of else 1


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        path.write_text(text)
        print(f"written   {path}")


_VERBS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "run": _run,
    "plan": _plan,
    "explain": _explain,
    "bench": _bench,
    "scrub": _scrub,
    "faults": _faults,
}
