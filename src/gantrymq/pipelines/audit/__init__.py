"""Audits on Spark: the checks of `store/audit`, run by workers, and a page of what they found."""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.pipelines.audit.entry import AuditRun, run_audit
    from gantrymq.pipelines.audit.store_audit import audit
    from gantrymq.store.audit.whole import Audit

__all__ = ["Audit", "AuditRun", "audit", "run_audit"]

_HOMES = {
    "gantrymq.pipelines.audit.entry": ("AuditRun", "run_audit"),
    "gantrymq.pipelines.audit.store_audit": ("audit",),
    "gantrymq.store.audit.whole": ("Audit",),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
