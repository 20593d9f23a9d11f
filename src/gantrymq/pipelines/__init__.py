"""Data work on topics with Spark: archive, replay, jobs, reports, audit.

Each has a folder; `marts` answer questions from `staging` frames, `lake` has the tables on disk,
`common` what all of them share. Programs import from here; nothing is loaded before it is used.
"""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.pipelines.archive import archive_topics
    from gantrymq.pipelines.jobs.job import Job, job
    from gantrymq.pipelines.lake import open_table
    from gantrymq.pipelines.lake.lookup import Lookup
    from gantrymq.pipelines.replay import Replay, ReplayRequest, ReplayResult
    from gantrymq.pipelines.replay.journal import Journal
    from gantrymq.pipelines.replay.request import parse_origin
    from gantrymq.pipelines.report.build import Report, build_report
    from gantrymq.pipelines.report.request import ReportRequest
    from gantrymq.pipelines.report.summary import verdict

__all__ = [
    "Job",
    "Journal",
    "Lookup",
    "Replay",
    "ReplayRequest",
    "ReplayResult",
    "Report",
    "ReportRequest",
    "archive_topics",
    "build_report",
    "job",
    "open_table",
    "parse_origin",
    "verdict",
]

_HOMES = {
    "gantrymq.pipelines.archive": ("archive_topics",),
    "gantrymq.pipelines.jobs.job": ("Job", "job"),
    "gantrymq.pipelines.lake": ("open_table",),
    "gantrymq.pipelines.lake.lookup": ("Lookup",),
    "gantrymq.pipelines.replay": ("Replay", "ReplayRequest", "ReplayResult"),
    "gantrymq.pipelines.replay.journal": ("Journal",),
    "gantrymq.pipelines.replay.request": ("parse_origin",),
    "gantrymq.pipelines.report.build": ("Report", "build_report"),
    "gantrymq.pipelines.report.request": ("ReportRequest",),
    "gantrymq.pipelines.report.summary": ("verdict",),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
