"""What the command line and programs call: audit a store, and write what was found as a page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gantrymq.base.errors import GantryError
from gantrymq.pipelines.audit.page import page
from gantrymq.pipelines.audit.store_audit import audit
from gantrymq.pipelines.common.progress import RunProgress
from gantrymq.store.audit.whole import Audit


@dataclass(frozen=True, kw_only=True)
class AuditRun:
    """One run of an audit, as it is asked for."""

    store: Path
    """The store's folder; executors must see it."""
    page: Path | None = None
    """The file of the page; None writes none."""


def run_audit(spark: Any, run: AuditRun, *, progress: RunProgress | None = None) -> Audit:
    """Audit a store."""
    result = audit(spark, str(run.store), progress)
    if run.page is not None:
        try:
            run.page.write_text(page(result))
        except OSError as error:
            raise GantryError(f"the page cannot be written: {error}") from error
    return result
