"""Judges a history: what is lost, twice, in the wrong order, or from nowhere. Pure.

In the manner of Jepsen's checkers: `total-queue` for loss and surplus, `total-order` for two
readers that must not disagree. A send of unknown outcome may have happened or not, and at any time
after it began, so it is never lost and never late; but what was acknowledged before it began has to
come before it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from chaos.history import Name, Read, Send, by_queue

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
    found = {queue: list(map(Name.parse, _known(bodies))) for queue, bodies in read.items()}
    stored = {name for names in found.values() for name in names}
    known = {send.name: send for send in sends}
    lost = [send for send in sends if send.acknowledged and send.name not in stored]
    return Verdict(
        sent=len(sends),
        acknowledged=outcomes["ok"] + outcomes["stored"],
        failed=outcomes["failed"],
        unknown=outcomes["unknown"],
        unknown_stored=sum(s.outcome == "unknown" and s.name in stored for s in sends),
        lost=[str(send.name) for send in lost],
        lost_later=[str(send.name) for send in lost if send.began > healed],
        lost_with_master=_lost_with_master(sends, copy),
        duplicated=_duplicated(found),
        out_of_order=_out_of_order(found, known),
        phantom=_phantom(read, known),
        unexpected=[_told(s) for s in sends if s.outcome == "failed" and s.name in stored],
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
    return [str(s.name) for s in sends if s.outcome == "ok" and str(s.name) not in there]


def _duplicated(found: dict[int, list[Name]]) -> list[str]:
    counts = Counter(name for names in found.values() for name in names)
    return [str(name) for name, count in counts.items() for _ in range(count - 1)]


def _out_of_order(found: dict[int, list[Name]], known: dict[Name, Send]) -> list[str]:
    """Acknowledged messages before which one was found that was begun after they had ended."""
    late = []
    for names in found.values():
        latest_began = float("-inf")
        for name in dict.fromkeys(names):  # a second copy is a duplicate, not a disorder
            send = known.get(name)
            if send is None:
                continue
            if send.acknowledged and send.ended < latest_began:
                late.append(str(name))
            latest_began = max(latest_began, send.began)
    return late


def _phantom(read: Read, known: dict[Name, Send]) -> list[str]:
    """What nobody sent, or nobody sent to this queue."""
    return [
        body
        for queue, bodies in read.items()
        for body in bodies
        if not _is_name(body) or Name.parse(body) not in known or Name.parse(body).queue != queue
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
