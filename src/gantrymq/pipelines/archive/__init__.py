"""Topics into a lakehouse table: every message once in each table, whatever is killed when."""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.pipelines.archive.entry import ArchiveRun, archive_topics, run_archive
    from gantrymq.pipelines.archive.run import ArchiveRequest, ArchiveResult

__all__ = ["ArchiveRequest", "ArchiveResult", "ArchiveRun", "archive_topics", "run_archive"]

_HOMES = {
    "gantrymq.pipelines.archive.entry": ("ArchiveRun", "archive_topics", "run_archive"),
    "gantrymq.pipelines.archive.run": ("ArchiveRequest", "ArchiveResult"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
