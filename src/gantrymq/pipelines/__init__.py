"""Data work on topics with Spark: archive, replay, jobs, reports, audit.

Each has a folder; `marts` answer questions from `staging` frames, `lake` has the tables on disk,
`common` what all of them share. Programs import from here and from the folders; nothing is loaded
before it is used. Archive, replay, report and audit have one shape: `run_*(session, run)` takes a
frozen value that says all that is asked for and returns the result. The commands call it, too.
"""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.pipelines.archive import ArchiveRun, archive_topics, run_archive
    from gantrymq.pipelines.audit import AuditRun, run_audit
    from gantrymq.pipelines.jobs.job import Job, job
    from gantrymq.pipelines.lake import open_table
    from gantrymq.pipelines.lake.lookup import Lookup
    from gantrymq.pipelines.replay import (
        Journal,
        Replay,
        ReplayRequest,
        ReplayResult,
        ReplayRun,
        parse_origin,
        preview_replay,
        run_replay,
    )
    from gantrymq.pipelines.report import (
        Report,
        ReportRequest,
        ReportRun,
        build_report,
        run_report,
        verdict,
    )

__all__ = [
    "ArchiveRun",
    "AuditRun",
    "Job",
    "Journal",
    "Lookup",
    "Replay",
    "ReplayRequest",
    "ReplayResult",
    "ReplayRun",
    "Report",
    "ReportRequest",
    "ReportRun",
    "archive_topics",
    "build_report",
    "job",
    "open_table",
    "parse_origin",
    "preview_replay",
    "run_archive",
    "run_audit",
    "run_replay",
    "run_report",
    "verdict",
]

_HOMES = {
    "gantrymq.pipelines.archive": ("ArchiveRun", "archive_topics", "run_archive"),
    "gantrymq.pipelines.audit": ("AuditRun", "run_audit"),
    "gantrymq.pipelines.jobs.job": ("Job", "job"),
    "gantrymq.pipelines.lake": ("open_table",),
    "gantrymq.pipelines.lake.lookup": ("Lookup",),
    "gantrymq.pipelines.replay": (
        "Journal",
        "Replay",
        "ReplayRequest",
        "ReplayResult",
        "ReplayRun",
        "parse_origin",
        "preview_replay",
        "run_replay",
    ),
    "gantrymq.pipelines.report": (
        "Report",
        "ReportRequest",
        "ReportRun",
        "build_report",
        "run_report",
        "verdict",
    ),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
