"""What a check finds. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Severity(Enum):
    """How bad a finding is."""

    ERROR = "error"
    """Messages are lost or do not flow, or soon will."""
    WARNING = "warning"
    """It works, and not as it should."""
    NOTE = "note"
    """Worth knowing."""


ORDER = list(Severity)


@dataclass(frozen=True)
class DoctorFinding:
    """One thing that is wrong: where, what, and what mends it."""

    check: str
    """The name of the check."""
    severity: Severity
    where: str
    """A server, topic, group or queue."""
    text: str
    setting: str = ""
    """The setting or property that it is about."""
    mend: str = ""
    """The command, or what to do where no command can."""

    def row(self) -> dict[str, Any]:
        """The finding for tables and JSON."""
        return {
            "severity": self.severity.value,
            "check": self.check,
            "where": self.where,
            "finding": self.text,
            "setting": self.setting or None,
            "mend": self.mend or None,
        }


def in_order(findings: Iterable[DoctorFinding]) -> list[DoctorFinding]:
    """The worst first; within a severity as the checks found them."""
    return sorted(findings, key=lambda each: ORDER.index(each.severity))
