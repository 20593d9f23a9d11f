"""Checks of topics: their queues and permissions. Pure."""

from collections.abc import Iterator

from gantrymq.base.plurals import counted
from gantrymq.client.admin.doctor.findings import DoctorFinding, Severity
from gantrymq.client.admin.doctor.snapshot import BrokerView, ClusterSnapshot
from gantrymq.model import (
    DEAD_PREFIX,
    READ,
    RETRY_PREFIX,
    WRITE,
    TopicConfig,
    is_system_topic,
)


def _topics(found: ClusterSnapshot) -> Iterator[tuple[BrokerView, TopicConfig]]:
    for broker in found.masters():
        for name, config in sorted(broker.topics.items()):
            if not is_system_topic(name):
                yield broker, config


def queue_counts(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Write queues that nobody may read, and read queues that nobody may write to."""
    for broker, topic in _topics(found):
        name, extra = topic.topic_name, topic.write_queue_nums - topic.read_queue_nums
        if not extra or name.startswith((RETRY_PREFIX, DEAD_PREFIX)):
            continue
        if topic.perm & (READ | WRITE) != READ | WRITE:
            continue
        where = f"{name} on {broker.name}"
        setting = "readQueueNums, writeQueueNums"
        update = f"gantry topic update {name} --broker {broker.name}"
        if extra > 0:
            yield DoctorFinding(
                "queue-counts",
                Severity.ERROR,
                where,
                f"{topic.write_queue_nums} write queues and {topic.read_queue_nums} read queues: "
                f"what is sent to {counted(extra, 'queue')} is read by nobody",
                setting,
                f"{update} --read-queues {topic.write_queue_nums}",
            )
        else:
            yield DoctorFinding(
                "queue-counts",
                Severity.WARNING,
                where,
                f"{topic.read_queue_nums} read queues and {topic.write_queue_nums} write queues: "
                f"nothing comes to {counted(-extra, 'queue')}, whose consumers are idle",
                setting,
                f"gantry topic shrink {name} --queues {topic.write_queue_nums}, or "
                f"{update} --write-queues {topic.read_queue_nums}",
            )


def dead_letter_permissions(found: ClusterSnapshot) -> Iterator[DoctorFinding]:
    """Dead letters that nobody may read: brokers before 4.9.2 made their topics so."""
    for broker, topic in _topics(found):
        if topic.topic_name.startswith(DEAD_PREFIX) and not topic.perm & READ:
            yield DoctorFinding(
                "dead-letter-permission",
                Severity.WARNING,
                f"{topic.topic_name} on {broker.name}",
                f"has permission {topic.perm}: its dead letters cannot be read",
                "perm",
                f"mqadmin updateTopicPerm -b {broker.address} -t '{topic.topic_name}' -p 6",
            )
