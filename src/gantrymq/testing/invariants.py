"""What has to hold, whatever happens: one table for simulator, chaos runs and demo. Pure.

An invariant has a name, a sentence and a check. The check takes plain values of a history (names of
messages, offsets, times) and returns who broke it:

    acknowledged_is_kept.culprits({"a", "b"}, found={"b"})   # ["a"]
    acknowledged_is_kept.broken({"a", "b"}, found={"b"})     # ["acknowledged is kept: a"]

Some are judged at the end of a history, some after each step of it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, ParamSpec

P = ParamSpec("P")

SHOWN_MAX: Final = 5
"""How many culprits a sentence names."""


class Invariant(Generic[P]):
    """A name, a sentence, and the check."""

    def __init__(self, name: str, sentence: str, check: Callable[P, list[str]]) -> None:
        self.name, self.sentence, self.culprits = name, sentence, check

    def broken(self, *args: P.args, **kwargs: P.kwargs) -> list[str]:
        """A text for whoever reads the history; none if it holds."""
        culprits = self.culprits(*args, **kwargs)
        more = f" and {len(culprits) - SHOWN_MAX} more" if len(culprits) > SHOWN_MAX else ""
        return [f"{self.name}: {', '.join(culprits[:SHOWN_MAX])}{more}"] if culprits else []


class SendTimes(NamedTuple):
    """When a send began and ended; of messages that are sent one by one, their number twice."""

    began: float
    ended: float
    acknowledged: bool = True


# Messages


def _lost(acknowledged: Iterable[str], found: Collection[str]) -> list[str]:
    return [name for name in acknowledged if name not in found]


def _phantoms(found: Iterable[str], sent: Collection[str]) -> list[str]:
    return [name for name in found if name not in sent]


def _stored(refused: Iterable[str], found: Collection[str]) -> list[str]:
    return [name for name in refused if name in found]


def _repeated(found: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(found).items() for _ in range(count - 1)]


def _late(found: Iterable[str], sends: Mapping[str, SendTimes]) -> list[str]:
    """Acknowledged messages before which one lies that was begun after they had ended.

    A second copy is a repetition, not a disorder. A send of unknown outcome may have happened at
    any time after it began.
    """
    late, latest = [], float("-inf")
    for name in dict.fromkeys(found):
        send = sends.get(name)
        if send is None:
            continue
        if send.acknowledged and send.ended < latest:
            late.append(name)
        latest = max(latest, send.began)
    return late


def _early(deliveries: Iterable[tuple[str, float, float]]) -> list[str]:
    return [f"{name} came {due - at:.3f} s early" for name, at, due in deliveries if at < due]


def _delivered(withdrawn: Collection[str], delivered: Iterable[str]) -> list[str]:
    return [name for name in delivered if name in withdrawn]


def _ahead(progress: Mapping[str, int], ends: Mapping[str, int]) -> list[str]:
    return [
        f"{queue} is read up to {offset} and ends at {ends[queue]}"
        for queue, offset in progress.items()
        if queue in ends and offset > ends[queue]
    ]


# Copies


def _differing(copies: Mapping[str, Sequence[object]]) -> list[str]:
    """Where copies differ; one that is shorter is only behind."""
    longest = max(copies.values(), key=len, default=())
    return [
        f"{who} at {_parting(copy, longest)}"
        for who, copy in copies.items()
        if copy != longest[: len(copy)]
    ]


def _parting(one: Sequence[object], other: Sequence[object]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (here, there) in pairs if here != there), min(len(one), len(other)))


# Raft groups


def _second_leaders(leaders: Iterable[tuple[int, str]]) -> list[str]:
    terms: dict[int, dict[str, None]] = {}
    for term, name in leaders:
        terms.setdefault(term, {})[name] = None
    return [
        f"{' and '.join(names)} lead in term {term}"
        for term, names in terms.items()
        if len(names) > 1
    ]


def _changed(who: str, at: int, before: Sequence[object], now: Sequence[object]) -> list[str]:
    """Compare what was committed from `at` on with what somebody shows there."""
    length = min(len(before), len(now))
    if before[:length] == now[:length]:
        return []
    return [f"{who} has something else at {at + _parting(before, now)}"]


def _lacking(who: str, committed: int, *, has_it: bool) -> list[str]:
    return [] if has_it else [f"{who} leads without what was committed up to {committed}"]


def _unheld(who: str, offset: int, holders: Collection[str], members: int) -> list[str]:
    if 2 * len(holders) > members:
        return []
    return [f"{who} committed {offset}, which only {', '.join(holders) or 'nobody'} had"]


def _lingering(serving: Mapping[str, float], seconds_max: float) -> list[str]:
    return [
        f"{who} serves for {seconds:.1f} s without a majority"
        for who, seconds in serving.items()
        if seconds > seconds_max
    ]


def _together(key: str, workers: Collection[str]) -> list[str]:
    return [f"{' and '.join(workers)} work on {key}"] if len(workers) > 1 else []


acknowledged_is_kept = Invariant(
    "acknowledged is kept", "What was acknowledged is found in the end, once or more.", _lost
)
nothing_from_nowhere = Invariant(
    "nothing from nowhere", "What is found was sent, and to there.", _phantoms
)
refused_is_not_stored = Invariant(
    "refused is not stored", "What was refused before it was written is not found.", _stored
)
sent_once_stored_once = Invariant(
    "sent once, stored once", "What was sent once is not stored twice.", _repeated
)
order_is_kept = Invariant(
    "order is kept",
    "Within a queue or a key nothing lies before what was acknowledged before it began.",
    _late,
)
nothing_before_its_time = Invariant(
    "nothing before its time", "A message with a delay is not delivered earlier.", _early
)
withdrawn_is_never_delivered = Invariant(
    "withdrawn is never delivered", "What was rolled back or recalled reaches nobody.", _delivered
)
one_worker_a_key = Invariant(
    "one worker a key", "One member at a time works on messages of a key.", _together
)
progress_is_not_ahead = Invariant(
    "progress is not ahead", "No group has read further than a queue goes.", _ahead
)
members_agree = Invariant(
    "members agree", "Copies are the same as far as they go, to the byte.", _differing
)
one_leader_a_term = Invariant(
    "one leader a term", "No term of a raft group has two leaders.", _second_leaders
)
committed_never_changes = Invariant(
    "committed never changes", "What one member shows, no member ever has otherwise.", _changed
)
leaders_have_all = Invariant(
    "leaders have all", "A new leader holds all that was ever committed.", _lacking
)
committed_is_held = Invariant(
    "committed is held", "What is committed lies on the disks of a majority.", _unheld
)
old_leaders_stop = Invariant(
    "old leaders stop", "A leader that has lost its majority soon serves no more.", _lingering
)

INVARIANTS: Final = (
    acknowledged_is_kept,
    nothing_from_nowhere,
    refused_is_not_stored,
    sent_once_stored_once,
    order_is_kept,
    nothing_before_its_time,
    withdrawn_is_never_delivered,
    one_worker_a_key,
    progress_is_not_ahead,
    members_agree,
    one_leader_a_term,
    committed_never_changes,
    leaders_have_all,
    committed_is_held,
    old_leaders_stop,
)
"""All of them, in the order of docs/reliability.md."""
