"""Queues, and where those of a topic are."""

from typing import Any

import msgspec

from gantrymq.base.javatypes import Int32

READ, WRITE, INHERIT, PRIORITY = 4, 2, 1, 8
"""What may be done with a topic, as bits of `perm`."""


class Queue(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """One queue of one topic on one broker; sorts as RocketMQ's clients sort."""

    topic: str
    broker_name: str
    queue_id: Int32

    def __str__(self) -> str:
        return f"{self.topic}@{self.broker_name}:{self.queue_id}"

    @property
    def text(self) -> str:
        """The queue as errors name it."""
        return f"queue {self.queue_id} of {self.topic} on {self.broker_name}"


class BrokerData(msgspec.Struct, kw_only=True, rename="camel"):
    """The addresses behind one broker name; id 0 is the master."""

    broker_addrs: dict[str, str]
    broker_name: str
    cluster: str = ""
    enable_acting_master: bool = False

    @property
    def master(self) -> str | None:
        return self.broker_addrs.get("0")


class QueueData(msgspec.Struct, kw_only=True, rename="camel"):
    """How many queues of a topic one broker offers, and what may be done with them."""

    broker_name: str
    perm: Int32 = READ | WRITE
    read_queue_nums: Int32 = 4
    topic_sys_flag: Int32 = 0
    write_queue_nums: Int32 = 4


class Route(msgspec.Struct, kw_only=True, rename="camel"):
    """Where a topic lives."""

    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, Any] = {}
    order_topic_conf: str | None = None
    queue_datas: list[QueueData] = []
