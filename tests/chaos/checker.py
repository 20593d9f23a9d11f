"""Judges a history: what is lost, twice, in the wrong order, or from nowhere. Pure.

In the manner of Jepsen's checkers: `total-queue` for loss and surplus, `total-order` for two
readers that must not disagree. A send of unknown outcome may have happened or not, and at any time
after it began, so it is never lost and never late; but what was acknowledged before it began has to
come before it. The checks are those of `gantrymq.testing.invariants`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from chaos.history import Read, Send, by_queue
from gantrymq.testing.invariants import (
    SendTimes,
    acknowledged_is_kept,
    nothing_from_nowhere,
    order_is_kept,
    refused_is_not_stored,
    sent_once_stored_once,
)

PAUSE_SECONDS = 0.5
"""Time between two acknowledgements of a queue that is no unavailability yet."""


@dataclass(frozen=True)
class Downtime:
    """How long no message of a queue was acknowledged: of the queue that was worst off."""

    longest: float = 0.0
    total: float = 0.0
    """All pauses that are longer than PAUSE_SECONDS, together."""


@dataclass(frozen=True)
class Verdict:
    """What became of the messages of one trial. Each list names the messages concerned."""

    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    unknown: int = 0
    unknown_stored: int = 0
    """Of unknown outcome, and found."""
    lost: list[str] = field(default_factory=list)
    """Acknowledged, and not found when all brokers were back."""
    lost_later: list[str] = field(default_factory=list)
    """Those of the lost that were begun after the fault was over: no fault excuses them."""
    lost_with_master: list[str] = field(default_factory=list)
    """Answered with SEND_OK, and not on the slave when the master was gone."""
    duplicated: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    phantom: list[str] = field(default_factory=list)
    """Found, and never sent."""
    unexpected: list[str] = field(default_factory=list)
    """Found, though the sender was told that it is not stored."""
    disagreeing: list[str] = field(default_factory=list)
    """At one offset, the slave had another message than the master."""
    downtime: Downtime = Downtime()


def check(
    sends: Sequence[Send],
    read: Read,
    copy: Read | None = None,
    *,
    healed: float = float("inf"),
    until: float = float("inf"),
) -> Verdict:
    """Compare what was sent with what was read from all, and from the slave alone (`copy`).

    The fault was over at `healed`. Downtime is counted up to `until`: what ends the trial is no
    part of its fault.
    """
    outcomes = Counter(send.outcome for send in sends)
    found = {queue: _known(bodies) for queue, bodies in read.items()}
    stored = {name for names in found.values() for name in names}
    known = {str(send.name): send for send in sends}
    acknowledged = [name for name, send in known.items() if send.acknowledged]
    lost = acknowledged_is_kept.culprits(acknowledged, stored)
    refused = [name for name, send in known.items() if send.outcome == "failed"]
    return Verdict(
        sent=len(sends),
        acknowledged=outcomes["ok"] + outcomes["stored"],
        failed=outcomes["failed"],
        unknown=outcomes["unknown"],
        unknown_stored=sum(s.outcome == "unknown" and str(s.name) in stored for s in sends),
        lost=lost,
        lost_later=[name for name in lost if known[name].began > healed],
        lost_with_master=_lost_with_master(sends, copy),
        duplicated=sent_once_stored_once.culprits(n for names in found.values() for n in names),
        out_of_order=_out_of_order(found, sends),
        phantom=_phantom(read, sends),
        unexpected=[_told(known[name]) for name in refused_is_not_stored.culprits(refused, stored)],
        disagreeing=_disagreeing(read, copy),
        downtime=downtime([send for send in sends if send.ended <= until]),
    )


def _told(send: Send) -> str:
    """The message, and what its sender was told."""
    return f"{send.name} ({send.why})" if send.why else str(send.name)


def _is_name(body: str) -> bool:
    writer, *numbers = body.split("/")
    return bool(writer) and len(numbers) == 2 and all(number.isdecimal() for number in numbers)


def _known(bodies: Sequence[str]) -> list[str]:
    return [body for body in bodies if _is_name(body)]


def _lost_with_master(sends: Sequence[Send], copy: Read | None) -> list[str]:
    if copy is None:
        return []
    there = {body for bodies in copy.values() for body in bodies}
    promised = [str(send.name) for send in sends if send.outcome == "ok"]
    return acknowledged_is_kept.culprits(promised, there)


def _out_of_order(found: dict[int, list[str]], sends: Sequence[Send]) -> list[str]:
    spans = {str(s.name): SendTimes(s.began, s.ended, s.acknowledged) for s in sends}
    return [name for names in found.values() for name in order_is_kept.culprits(names, spans)]


def _phantom(read: Read, sends: Sequence[Send]) -> list[str]:
    """What nobody sent, or nobody sent to this queue."""
    sent = {queue: {str(send.name) for send in group} for queue, group in by_queue(sends).items()}
    return [
        body
        for queue, bodies in read.items()
        for body in nothing_from_nowhere.culprits(bodies, sent.get(queue, set()))
    ]


def _disagreeing(read: Read, copy: Read | None) -> list[str]:
    """Both are read from offset 0 on, so the shorter has to be the beginning of the longer."""
    return [
        f"{queue}:{offset}"
        for queue, bodies in (copy or {}).items()
        for offset, (there, here) in enumerate(zip(bodies, read.get(queue, []), strict=False))
        if there != here
    ]


def downtime(sends: Sequence[Send]) -> Downtime:
    """The pauses between acknowledgements, from the first send of a queue to its last."""
    worst = Downtime()
    for queue in by_queue(sends).values():
        ends = sorted(send.ended for send in queue if send.acknowledged)
        times = [queue[0].began, *ends, max(send.ended for send in queue)]
        pauses = [after - before for before, after in pairwise(times)]
        long = [pause for pause in pauses if pause > PAUSE_SECONDS]
        worst = Downtime(max(worst.longest, *pauses), max(worst.total, sum(long)))
    return worst
