"""Reports: tables, pictures and a page about what happened in topics and groups."""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.pipelines.report.build import build_report
    from gantrymq.pipelines.report.entry import ReportRun, run_report
    from gantrymq.pipelines.report.report import Report
    from gantrymq.pipelines.report.request import ReportRequest
    from gantrymq.pipelines.report.summary import verdict

__all__ = ["Report", "ReportRequest", "ReportRun", "build_report", "run_report", "verdict"]

_HOMES = {
    "gantrymq.pipelines.report.build": ("build_report",),
    "gantrymq.pipelines.report.entry": ("ReportRun", "run_report"),
    "gantrymq.pipelines.report.report": ("Report",),
    "gantrymq.pipelines.report.request": ("ReportRequest",),
    "gantrymq.pipelines.report.summary": ("verdict",),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
