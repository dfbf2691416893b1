"""How the run of a teardown begins, and what is done at its end, also where a bug of ours keeps it from going on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from ..drive.pool import pool
from ..errors import DeclarationError, InternalError
from ..events import Fate, NoteTaken, TeardownBegan, TeardownEnded
from ..report import Detail, Report
from ..run import Teardown
from .coming import Coming
from .ground import State

__all__ = ["Ending"]


class Ending(Coming):
    """The two ends of a teardown of all."""

    def _begin_teardown(self, grace: float | None, body: BaseException | None, since: float) -> Teardown:
        try:
            self.model.seal(lenient=True)
            some = None
        except DeclarationError as error:  # no whole plan can be made; what is alive is checked as it came in
            some = self.lives.alive()
            self.herald.tell(NoteTaken(self.title, since, f"torn down as it was declared, with faults: {error}"))
        self.herald.listen()
        plan, nodes = self.freeze(some)
        if some is not None and len(plan.sequence) < len(plan):  # never: edges are checked as they come in
            plan, nodes = self.freeze([nodes[node] for node in plan.sequence])
        plan = replace(plan, grace=grace)
        if not self.herald.quiet:
            self.herald.tell(TeardownBegan(self.title, since, len(nodes), grace))
        return Teardown(plan, nodes, self.lives, herald=self.herald, body=body, prior=self._prior, since=since)

    def _end(self, run: Teardown) -> None:
        """The teardown is over; on the thread that brought it there, which must not wait for observers."""
        report = run.report
        if report is None:
            self._break_down(run.internal)
            return
        run.errors = dict(sorted(run.errors.items()))
        self._failures = run.raised
        waits = False
        try:
            if not self.herald.quiet or not report.ok:
                self.herald.tell(TeardownEnded(self.title, run.closed, report.seconds, report.ok, report.held))
            if not self.herald.idle:
                pool.engage(lambda: self._conclude(report, self._last_notes()))
                waits = True
        except RuntimeError:  # no thread can be started any more
            pass
        finally:
            if not waits:
                self._conclude(report, ())

    def _last_notes(self) -> tuple[str, ...]:
        try:
            return self.herald.finish()
        except Exception as why:  # noqa: BLE001 - a bug of ours: nobody must wait for ever because of it
            return (f"internal error, please report: {type(why).__name__}: {why}",)

    def _break_down(self, why: Exception | None) -> InternalError:
        """A bug of ours kept the teardown from going on: what is up is held, and whoever waits is told."""
        broken = self._broken = why if isinstance(why, InternalError) else InternalError(
            f"internal error, please report: graph {self.title!r} could not be torn down, and all that is up is held: "
            f"{type(why).__name__}: {why}")  # fmt: skip
        with suppress(Exception):  # the bug may be there; what is alive is kept anyway
            for node in self.lives.alive():
                self.lives.confine(node, str(broken), (Fate.ABANDONED, Detail(error=str(broken))))
        self.state = State.CLOSED
        self._closed.open()
        return broken

    def _conclude(self, report: Report, notes: tuple[str, ...]) -> None:
        self.report = replace(report, notes=report.notes + notes) if notes else report
        self.state = State.CLOSED
        self._closed.open()
