"""The client: producers, consumers and administration, over a shared core.

`core` has what all clients with one client id share, `messages` what consumers get, `sending` the
way of one send, `produce` and `consume` the public clients, `once` effectively-once consuming,
`tracing` the trace writer, `spans` those of OpenTelemetry and `admin` the requests of operators.
Programs import from `gantrymq`, and from here what only programs of operators need.
"""

from typing import TYPE_CHECKING

from gantrymq.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from gantrymq.client.admin.doctor.checks import examine
    from gantrymq.client.admin.doctor.collect import take_snapshot
    from gantrymq.client.admin.doctor.findings import DoctorFinding
    from gantrymq.client.admin.groups.group_settings import change_settings, settings
    from gantrymq.client.admin.groups.lag import Backlog, GroupLag, QueueLag, TopicLag
    from gantrymq.client.admin.groups.lag_advice import advice
    from gantrymq.client.admin.letters.dead_letters import DeadLetterFilter, DeadLetters, Letter
    from gantrymq.client.admin.messages.history_query import why
    from gantrymq.client.admin.messages.trace_query import Trace, TraceEvent, trace_of
    from gantrymq.client.admin.monitoring.alarms import Alarm, watch_alarms
    from gantrymq.client.admin.monitoring.monitor import Monitor
    from gantrymq.client.admin.monitoring.monitor_round import (
        MonitorRound,
        OffsetMovedEvent,
        Problem,
        Thresholds,
    )
    from gantrymq.client.admin.topics.shrink import shrink_topic
    from gantrymq.client.admin.topics.spread import Spread
    from gantrymq.client.consume.queues.pull_request import pull_raw
    from gantrymq.client.core.options_file import load_options
    from gantrymq.client.once.store import TransactionStore
    from gantrymq.protocol.assignment import (
        Strategy,
        averagely,
        by_circle,
        by_config,
        by_machine_room,
        consistent_hash,
        machine_room_nearby,
    )

__all__ = [
    "Alarm",
    "Backlog",
    "DeadLetterFilter",
    "DeadLetters",
    "DoctorFinding",
    "GroupLag",
    "Letter",
    "Monitor",
    "MonitorRound",
    "OffsetMovedEvent",
    "Problem",
    "QueueLag",
    "Spread",
    "Strategy",
    "Thresholds",
    "TopicLag",
    "Trace",
    "TraceEvent",
    "TransactionStore",
    "advice",
    "averagely",
    "by_circle",
    "by_config",
    "by_machine_room",
    "change_settings",
    "consistent_hash",
    "examine",
    "load_options",
    "machine_room_nearby",
    "pull_raw",
    "settings",
    "shrink_topic",
    "take_snapshot",
    "trace_of",
    "watch_alarms",
    "why",
]

_HOMES = {
    "gantrymq.client.admin.letters.dead_letters": ("DeadLetterFilter", "DeadLetters", "Letter"),
    "gantrymq.client.admin.doctor.checks": ("examine",),
    "gantrymq.client.admin.doctor.collect": ("take_snapshot",),
    "gantrymq.client.admin.doctor.findings": ("DoctorFinding",),
    "gantrymq.client.admin.groups.group_settings": ("change_settings", "settings"),
    "gantrymq.client.admin.messages.history_query": ("why",),
    "gantrymq.client.admin.groups.lag": ("Backlog", "GroupLag", "QueueLag", "TopicLag"),
    "gantrymq.client.admin.groups.lag_advice": ("advice",),
    "gantrymq.client.admin.monitoring.alarms": ("Alarm", "watch_alarms"),
    "gantrymq.client.admin.monitoring.monitor": ("Monitor",),
    "gantrymq.client.admin.monitoring.monitor_round": (
        "MonitorRound", "OffsetMovedEvent", "Problem", "Thresholds",
    ),
    "gantrymq.client.admin.topics.shrink": ("shrink_topic",),
    "gantrymq.client.admin.topics.spread": ("Spread",),
    "gantrymq.client.admin.messages.trace_query": ("Trace", "TraceEvent", "trace_of"),
    "gantrymq.client.consume.queues.pull_request": ("pull_raw",),
    "gantrymq.client.core.options_file": ("load_options",),
    "gantrymq.client.once.store": ("TransactionStore",),
    "gantrymq.protocol.assignment": (
        "Strategy", "averagely", "by_circle", "by_config", "by_machine_room", "consistent_hash",
        "machine_room_nearby",
    ),
}  # fmt: skip
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
