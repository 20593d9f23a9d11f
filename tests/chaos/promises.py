"""What a mode promises of a trial, and which promises were broken. Pure.

`kill -9` of a process takes nothing that was acknowledged, in any mode, since what it wrote is in
the operating system's memory. So with all brokers back nothing acknowledged is missing. The one
exception is a disk that turns read-only, with ASYNC_FLUSH: the unflushed tail is gone, but nothing
that was sent after the repair. Without the
leader's machine SEND_OK holds where copies are waited for; elsewhere the loss is counted and told.
Writers try each message once, so nothing may be there twice. The promises have the names of
`gantrymq.testing.invariants`.
"""

from dataclasses import dataclass

from chaos.checker import Verdict
from chaos.modes import Mode
from gantrymq.testing.invariants import (
    acknowledged_is_kept,
    members_agree,
    nothing_from_nowhere,
    order_is_kept,
    refused_is_not_stored,
    sent_once_stored_once,
)


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
        del promised[acknowledged_is_kept.name], promised[members_agree.name]
    broken = [_sentence(what, names) for what, names in promised.items() if names]
    if mode.survives_master and verdict.lost_with_master:
        what = f"{acknowledged_is_kept.name}, without the master's machine"
        broken.append(_sentence(what, verdict.lost_with_master))
    if not result.came_back:
        broken.append("not every queue took messages again after the fault")
    if not verdict.acknowledged:
        broken.append("no message was acknowledged, so nothing is shown")
    return broken


def _always_empty(verdict: Verdict) -> dict[str, list[str]]:
    return {
        acknowledged_is_kept.name: verdict.lost,
        f"{acknowledged_is_kept.name}, if sent after the fault": verdict.lost_later,
        sent_once_stored_once.name: verdict.duplicated,
        order_is_kept.name: verdict.out_of_order,
        nothing_from_nowhere.name: verdict.phantom,
        refused_is_not_stored.name: verdict.unexpected,
        members_agree.name: verdict.disagreeing,
    }


def _sentence(what: str, names: list[str]) -> str:
    return f"broken: {what}; {len(names)} not: {', '.join(names[:3])}"
