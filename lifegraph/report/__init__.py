"""What a run leaves behind: a report of plain data, which explains itself."""

from .outcome import FATES, Detail, Lease, Outcome, ReportError
from .report import Report, supposed

__all__ = ["FATES", "Detail", "Lease", "Outcome", "Report", "ReportError", "supposed"]
