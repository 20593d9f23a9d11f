"""What a mode promises of a trial, and which promises were broken. Pure.

`kill -9` of a process takes nothing that was acknowledged, in any mode, since what it wrote is in
the operating system's memory. So with all brokers back nothing acknowledged is missing. The one
exception is a disk that turns read-only, with ASYNC_FLUSH: the unflushed tail is gone, but nothing
that was sent after the repair. Without the
leader's machine SEND_OK holds where copies are waited for; elsewhere the loss is counted and told.
Writers try each message once, so nothing may be there twice.
"""

from dataclasses import dataclass

from chaos.checker import Verdict
from chaos.modes import Mode


@dataclass(frozen=True)
class TrialResult:
    """What happened in the time of one fault."""

    mode: str
    fault: str
    hit: str
    """Who was hit, in words."""
    verdict: Verdict
    came_back: bool
    """Whether every queue took messages again after the fault."""


def broken_promises(mode: Mode, result: TrialResult) -> list[str]:
    """One sentence for each promise that does not hold."""
    verdict = result.verdict
    promised = _always_empty(verdict)
    if result.fault == "disk-read-only" and not mode.flushes:
        # What the disk had not taken yet is lost to it, and the master goes on without.
        del promised["lost"], promised["different on the slave"]
    broken = [
        f"{len(names)} {what}: {', '.join(names[:3])}" for what, names in promised.items() if names
    ]
    if mode.survives_master and verdict.lost_with_master:
        names = verdict.lost_with_master
        broken.append(f"{len(names)} lost with the master's machine: {', '.join(names[:3])}")
    if not result.came_back:
        broken.append("not every queue took messages again after the fault")
    if not verdict.acknowledged:
        broken.append("no message was acknowledged, so nothing is shown")
    return broken


def _always_empty(verdict: Verdict) -> dict[str, list[str]]:
    return {
        "lost": verdict.lost,
        "lost that were sent after the fault": verdict.lost_later,
        "duplicated": verdict.duplicated,
        "out of order": verdict.out_of_order,
        "never sent": verdict.phantom,
        "stored though refused": verdict.unexpected,
        "different on the slave": verdict.disagreeing,
    }
