"""What the command line and programs call: make a report and write its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gantrymq.pipelines.common.progress import RunProgress
from gantrymq.pipelines.report.build import build_report
from gantrymq.pipelines.report.report import Report
from gantrymq.pipelines.report.report_files import write
from gantrymq.pipelines.report.request import ReportRequest


@dataclass(frozen=True, kw_only=True)
class ReportRun:
    """One run of a report, as it is asked for."""

    request: ReportRequest
    folder: Path | None = None
    """Where tables, pictures and the page are written; None writes nothing."""
    history: Path | None = None
    """Where lags are kept from run to run; None keeps none."""


def run_report(spark: Any, run: ReportRun, *, progress: RunProgress | None = None) -> Report:
    """Make a report; `page` of the result is the path of its page, if it was written."""
    report = build_report(spark, run.request, history=run.history, progress=progress)
    if run.folder is not None:
        report.page = write(report, run.folder)
    return report
