"""Audits: every record, queue entry and index entry of a store, checked against the others."""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.pipelines.audit.entry import AuditRun, run_audit
    from gantrymq.pipelines.audit.store_audit import Audit, audit

__all__ = ["Audit", "AuditRun", "audit", "run_audit"]

_HOMES = {
    "gantrymq.pipelines.audit.entry": ("AuditRun", "run_audit"),
    "gantrymq.pipelines.audit.store_audit": ("Audit", "audit"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
