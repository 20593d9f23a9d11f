"""The history of one message, derived from the facts found about it. Pure: sends no request."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gantrymq.base.plurals import counted
from gantrymq.client.admin.messages.trace_query import TraceEvent
from gantrymq.client.messages.failures import failure_in
from gantrymq.client.messages.received import Received
from gantrymq.model import (
    CHECK_MAX_TOPIC,
    DEAD_PREFIX,
    HALF_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    Queue,
)
from gantrymq.protocol import properties as p
from gantrymq.protocol.trace import (
    ConsumeReturnType,
    EndTransaction,
    Pub,
    Recall,
    SubAfter,
    SubBefore,
)

_ORDER: Final = (
    "born", "sent", "half", "checked", "decision", "decided", "delayed", "recalled", "stored",
    "redelivered", "handed out", "acked", "failed", "retry", "dead",
)  # fmt: skip
"""The order of events of the same millisecond: a cause comes before its effect."""
WAITING_TOPICS: Final = (SCHEDULE_TOPIC, TIMER_TOPIC)
_OUTCOMES: Final[dict[int, str]] = {
    ConsumeReturnType.TIMEOUT: "was not finished in time",
    ConsumeReturnType.EXCEPTION: "failed with an exception",
    ConsumeReturnType.RETURNED_NULL: "failed: the listener returned null",
    ConsumeReturnType.FAILED: "failed",
}
_DECISIONS: Final = {"COMMIT_MESSAGE": "committed", "ROLLBACK_MESSAGE": "rolled back"}


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to the message."""

    at_ms: int
    what: str
    text: str
    place: str = ""
    """Broker, topic, queue and offset; or the client's address."""
    group: str = ""
    due_ms: int | None = None
    """When a wait ends that begins here."""
    source: str = "store"


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the message for one consumer group."""

    group: str
    state: str
    """acked, waiting, retry, dead, unwanted or unknown."""
    text: str
    due_ms: int | None = None


class MessageHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The history of one message: state, events, groups."""

    msg_id: str
    topic: str
    state: str
    """half, rolled back, undecided, delayed, called back, stored or gone."""
    text: str
    due_ms: int | None = None
    tags: str = ""
    keys: tuple[str, ...] = ()
    events: list[Event]
    """Oldest first. Times are those of the clock that wrote them, a broker's or a client's."""
    groups: list[Standing]
    unknown: list[str]
    """What could not be found out, and why."""


class GroupFacts(msgspec.Struct, kw_only=True):
    """What brokers know of a group that reads the topic."""

    group: str
    progress: Mapping[Queue, int]
    """The next offset the group will read, per queue."""
    retries_max: int = 16
    broadcast: bool = False
    unwanted: str = ""
    """The subscription that does not let the message through, if there is one."""


class MessageFacts(msgspec.Struct, kw_only=True):
    """Everything that the sources found."""

    msg_id: str
    topic: str
    now_ms: int
    copies: list[Received] = []
    trace: list[TraceEvent] = []
    groups: list[GroupFacts] = []
    retry_owners: dict[str, str] = {}
    """Retry topics of POP to their groups: their names do not begin with the group's."""
    decided_ms: int | None = None
    """When the broker stored the decision on the half message."""
    levels_ms: tuple[int, ...] = ()
    events: list[Event] = []
    """Events that neither copies nor traces show."""
    unknown: list[str] = []


def group_of(topic: str, owners: Mapping[str, str]) -> str:
    """The group whose retries or dead letters lie in a topic; empty for all other topics."""
    for prefix in (RETRY_PREFIX, DEAD_PREFIX):
        if topic.startswith(prefix):
            return owners.get(topic, topic[len(prefix) :])
    return ""


def real_topic(copy: Received) -> str:
    """The topic a message was sent to, also if its copy lies in a system, retry or dead topic."""
    found, topic = copy.properties, copy.queue.topic
    if topic in WAITING_TOPICS or topic in (HALF_TOPIC, CHECK_MAX_TOPIC):
        topic = found.get(p.REAL_TOPIC, topic)
    if topic.startswith((RETRY_PREFIX, DEAD_PREFIX)):
        return found.get(p.RETRY_TOPIC) or found.get(p.DEAD_ORIGIN_TOPIC) or topic
    return topic


def build_history(facts: MessageFacts) -> MessageHistory:
    """Derive the history from the facts."""
    return _HistoryText(facts).history()


class _HistoryText:
    """Sorts the copies by the kind of topic they lie in, and describes them."""

    def __init__(self, facts: MessageFacts) -> None:
        self._facts = facts
        copies = sorted(facts.copies, key=lambda copy: copy.store_ms)
        self._recalls = [c for c in copies if p.TIMER_DELETE_UNIQ_KEY in c.properties]
        copies = [c for c in copies if p.TIMER_DELETE_UNIQ_KEY not in c.properties]
        self._halves = [c for c in copies if c.queue.topic == HALF_TOPIC]
        self._undecided = [c for c in copies if c.queue.topic == CHECK_MAX_TOPIC]
        self._waiting = [c for c in copies if c.queue.topic in WAITING_TOPICS]
        self._home = [c for c in copies if c.queue.topic == facts.topic]
        self._dead = [c for c in copies if c.queue.topic.startswith(DEAD_PREFIX)]
        self._retries = [c for c in copies if c.queue.topic.startswith(RETRY_PREFIX)]
        self._any = copies[0] if copies else None

    def history(self) -> MessageHistory:
        facts = self._facts
        state, text, due_ms = self._state()
        events = [*self._stored_events(), *self._trace_events(), *facts.events]
        return MessageHistory(
            msg_id=facts.msg_id,
            topic=facts.topic,
            state=state,
            text=text,
            due_ms=due_ms,
            tags=(self._any.tags or "") if self._any else "",
            keys=self._any.keys if self._any else (),
            events=sorted(events, key=lambda event: (event.at_ms, _rank(event))),
            groups=[self._standing(group) for group in facts.groups],
            unknown=list(facts.unknown),
        )

    # the message itself

    def _state(self) -> tuple[str, str, int | None]:
        if self._home:
            stored = [copy for copy in self._home if copy.origin == Received.origin]
            if stored:
                return "stored", f"in its topic ({', '.join(map(_place, stored))})", None
            return "archived", f"no longer in its topic; from: {self._home[0].origin}", None
        own = [copy for copy in self._waiting if not self._owner(copy)]
        if own and not self._recalls:
            return "delayed", "waits for its time", self._due_ms(own[-1])
        if self._recalls or any(
            isinstance(event.record, Recall) and event.record.ok for event in self._facts.trace
        ):
            return "called back", "a recall took it back before its time", None
        if self._undecided:
            return "undecided", "its producer never decided; the broker stopped asking", None
        if self._halves:
            return self._half_state()
        return "gone", "its copy in the topic is not there (any more)", None

    def _half_state(self) -> tuple[str, str, int | None]:
        if self._facts.decided_ms is not None:
            return "rolled back", "its producer rolled the transaction back", None
        checks = self._halves[-1].properties.get(p.CHECK_TIMES, "0")
        asked = {"0": "not asked yet", "1": "asked once so far"}.get(
            checks, f"asked {checks} times so far"
        )
        return "half", f"waits for its producer to decide, {asked}", None

    def _owner(self, copy: Received) -> str:
        """The group to whose retry topic a waiting copy goes; empty if it goes to its own topic."""
        topic = copy.properties.get(p.REAL_TOPIC, "")
        return group_of(topic, self._facts.retry_owners)

    def _due_ms(self, copy: Received) -> int:
        if copy.queue.topic == TIMER_TOPIC:
            # The time that the producer asked for; the broker's own is rounded.
            asked = copy.properties.get(p.TIMER_DELIVER_MS) or copy.properties.get(p.TIMER_OUT_MS)
            return int(asked) if asked and asked.isdecimal() else copy.store_ms
        levels, level = self._facts.levels_ms, copy.queue.queue_id
        return copy.store_ms + (levels[level] if level < len(levels) else 0)

    def _has_left(self, copy: Received) -> bool:
        """Whether a waiting copy was delivered to its real topic."""
        topic = copy.properties.get(p.REAL_TOPIC, "")
        return any(
            other.queue.topic == topic
            and other.queue.broker_name == copy.queue.broker_name
            and other.reconsume_times == copy.reconsume_times
            and other.store_ms >= copy.store_ms
            for other in (*self._home, *self._retries)
        )

    # events

    def _stored_events(self) -> list[Event]:
        events: list[Event] = []
        if self._any is not None and not any(isinstance(e.record, Pub) for e in self._facts.trace):
            host = "{}:{}".format(*self._any.born_host)
            born = Event(
                at_ms=self._any.born_ms,
                what="born",
                text="made by its producer",
                place=host,
                source=self._any.origin,
            )
            events.append(born)
        events += [self._half_event(copy) for copy in self._halves]
        if self._facts.decided_ms is not None and not self._undecided:
            text = "committed" if self._home or self._waiting else "rolled back"
            events.append(
                Event(at_ms=self._facts.decided_ms, what="decided", text=f"transaction {text}")
            )
        text = "nobody decided on the transaction: put aside"
        events += [_event(copy, "undecided", text) for copy in self._undecided]
        text = "called back before its time"
        events += [_event(copy, "recalled", text) for copy in self._recalls]
        events += [self._waiting_event(copy) for copy in self._waiting]
        events += [_event(copy, "stored", "stored in its topic") for copy in self._home]
        events += [self._again_event(copy) for copy in (*self._retries, *self._dead)]
        return events

    def _again_event(self, copy: Received) -> Event:
        group = self._group_at(copy)
        if copy.queue.topic.startswith(DEAD_PREFIX):
            text = f"to the dead letters after {_deliveries(copy)}{_reason(copy)}"
            return _event(copy, "dead", text, group)
        return _event(copy, "redelivered", f"back for delivery {copy.reconsume_times + 1}", group)

    def _group_at(self, copy: Received) -> str:
        return group_of(copy.queue.topic, self._facts.retry_owners)

    def _half_event(self, copy: Received) -> Event:
        group, checks = (
            copy.properties.get(name, "") for name in (p.PRODUCER_GROUP, p.CHECK_TIMES)
        )
        if checks not in ("", "0"):
            return _event(copy, "checked", f"producer group {group} asked, time {checks}")
        return _event(copy, "half", f"half message: producer group {group} has to decide")

    def _waiting_event(self, copy: Received) -> Event:
        group, due_ms = self._owner(copy), self._due_ms(copy)
        text = (
            f"given back after {_deliveries(copy)}{_reason(copy)}; waits"
            if group
            else "waits for its time"
        )
        return Event(
            at_ms=copy.store_ms,
            what="retry" if group else "delayed",
            text=text,
            place=_place(copy),
            group=group,
            due_ms=due_ms,
        )

    def _trace_events(self) -> list[Event]:
        before = {
            event.record.request_id: event.record
            for event in self._facts.trace
            if isinstance(event.record, SubBefore)
        }
        return [_traced(event, before) for event in self._facts.trace]

    # groups

    def _standing(self, facts: GroupFacts) -> Standing:
        group = facts.group
        dead = [copy for copy in self._dead if self._group_at(copy) == group]
        if dead:
            text = f"dead after {_deliveries(dead[-1])}{_reason(dead[-1])}"
            return Standing(
                group=group, state="dead", text=f"{text} (the group's limit: {facts.retries_max})"
            )
        again = self._retry_standing(facts)
        if again is not None:
            return again
        if facts.broadcast:
            text = "broadcasting: every member keeps its own progress"
            return Standing(group=group, state="unknown", text=text)
        if facts.unwanted:
            return Standing(group=group, state="unwanted", text=facts.unwanted)
        return self._home_standing(facts)

    def _retry_standing(self, facts: GroupFacts) -> Standing | None:
        group = facts.group
        mine = [copy for copy in self._retries if self._group_at(copy) == group]
        waiting = [
            copy
            for copy in self._waiting
            if self._owner(copy) == group and not self._has_left(copy)
        ]
        if waiting:
            last = waiting[-1]
            text = f"given back after {_deliveries(last)}{_reason(last)}; waits for the next"
            due_ms = self._due_ms(last)
            return Standing(group=group, state="retry", text=text, due_ms=due_ms)
        if not mine:
            return None
        last = max(mine, key=lambda copy: (copy.reconsume_times, copy.store_ms))
        done = facts.progress.get(last.queue, 0)
        number = last.reconsume_times + 1
        if done > last.offset:
            return Standing(group=group, state="acked", text=f"acknowledged in delivery {number}")
        text = f"ready for delivery {number}: {_behind(last, done)}"
        return Standing(group=group, state="retry", text=text)

    def _home_standing(self, facts: GroupFacts) -> Standing:
        group = facts.group
        if not self._home:
            return Standing(group=group, state="waiting", text="not in the topic yet")
        for copy in self._home:
            done = facts.progress.get(copy.queue)
            if done is None:
                text = f"has not begun with {copy.queue}"
                return Standing(group=group, state="waiting", text=text)
            if done <= copy.offset:
                return Standing(group=group, state="waiting", text=_behind(copy, done))
        last = self._home[-1]
        done = facts.progress[last.queue]
        text = f"acknowledged: the group stands at {done} in {last.queue}"
        return Standing(group=group, state="acked", text=text)


def _traced(event: TraceEvent, before: Mapping[str, SubBefore]) -> Event:
    record = event.record
    what, text = type(record).__name__.lower(), ""
    group, place = record.group, event.client
    if isinstance(record, Pub):
        safe = "" if record.ok else ", stored less safely than asked for"
        what, text = "sent", f"sent by group {record.group} in {record.cost_ms} ms{safe}"
        group = ""
    elif isinstance(record, SubBefore):
        what, text = "handed out", f"delivery {record.retry_times + 1}"
    elif isinstance(record, SubAfter):
        first = before.get(record.request_id)
        group = record.group or (first.group if first else "")
        how = "acknowledged" if record.ok else _OUTCOMES.get(record.outcome, "failed")
        what, text = ("acked" if record.ok else "failed"), f"{how} after {record.cost_ms} ms"
    elif isinstance(record, EndTransaction):
        said = _DECISIONS.get(record.state, "did not decide on")
        asked = " when asked" if record.from_check else ""
        what, text = "decision", f"producer group {record.group} {said} the transaction{asked}"
        group = ""
    elif isinstance(record, Recall):
        what = "recalled" if record.ok else "recall failed"
        text, group = f"group {record.group} called it back", ""
    return Event(at_ms=event.at_ms, what=what, text=text, place=place, group=group, source="trace")


def _rank(event: Event) -> int:
    return _ORDER.index(event.what) if event.what in _ORDER else len(_ORDER)


def _event(copy: Received, what: str, text: str, group: str = "") -> Event:
    return Event(
        at_ms=copy.store_ms,
        what=what,
        text=text,
        place=_place(copy),
        group=group,
        source=copy.origin,
    )


def _place(copy: Received) -> str:
    return f"{copy.queue} at {copy.offset}"


def _behind(copy: Received, done: int) -> str:
    ahead = copy.offset - done
    return f"the group stands at {done} in {copy.queue}, " + (
        f"{ahead} before the message" if ahead else "the message is next"
    )


def _deliveries(copy: Received) -> str:
    count = copy.reconsume_times
    return counted(count, "delivery", "deliveries")


def _reason(copy: Received) -> str:
    """Why the last delivery failed, from properties that GantryMQ's clients set."""
    failure = failure_in(copy.properties)
    if failure is None:
        return ""
    said = ": ".join(part for part in (failure.error, failure.text) if part) or failure.reason
    return f": {said}" if said else ""
