"""Brokers that only register at a name server, with the frames that brokers send."""

import struct
import zlib
from types import TracebackType
from typing import Self

from bench.connections import Link
from gantrymq.model import DataVersion, TopicConfig
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import RegisterBrokerBody, TopicTable
from gantrymq.protocol.command import Command, encode
from gantrymq.protocol.headers.topics import RegisterBrokerRequest

CLUSTER, QUEUES = "DefaultCluster", 8
_SIZE = struct.Struct(">i")


def topic_name(number: int) -> str:
    return f"orders-of-region-{number:05d}"


def plain_body(topics: int, version: DataVersion) -> bytes:
    """All topics as JSON: RocketMQ's default, and what our brokers send."""
    table = {topic.topic_name: topic for topic in _topics(topics)}
    return fastjson.dumps(
        RegisterBrokerBody(topics=TopicTable(data_version=version, topic_config_table=table))
    )


def packed_body(topics: int, version: DataVersion) -> bytes:
    """The same as a broker with `compressedRegister=true` sends it."""
    lines = [
        f"{topic.topic_name} {topic.read_queue_nums} {topic.write_queue_nums} {topic.perm} "
        f"{topic.topic_filter_type} {{}}"
        for topic in _topics(topics)
    ]
    parts = [
        _sized(fastjson.dumps(version)),
        _SIZE.pack(len(lines)),
        *(_sized(line.encode()) for line in lines),
        _sized(b"[]"),
    ]
    return zlib.compress(b"".join(parts))


def _topics(count: int) -> list[TopicConfig]:
    return [
        TopicConfig(topic_name=topic_name(number), read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        for number in range(count)
    ]


def _sized(data: bytes) -> bytes:
    return _SIZE.pack(len(data)) + data


class RegisteringBrokers:
    """Brokers of a cluster, each with a connection that stays open."""

    def __init__(self, namesrv: str, count: int) -> None:
        self._links = [Link(namesrv) for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for link in self._links:
            link.socket.close()

    def register(self, body: bytes) -> None:
        """Every broker registers once, one after the other."""
        for number, link in enumerate(self._links):
            link.socket.sendall(_frame(number, body))
            link.pending += 1
            while link.pending:
                _, failed = link.take_answers()
                assert not failed, "the name server refused a registration"


def _frame(number: int, body: bytes) -> bytes:
    header = RegisterBrokerRequest(
        broker_name=f"broker-{number}", broker_addr=f"10.0.0.{number + 1}:10911",
        cluster_name=CLUSTER, ha_server_addr=f"10.0.0.{number + 1}:10912", broker_id=0,
        compressed=body[:1] != b"{", body_crc32=zlib.crc32(body) & 0x7FFF_FFFF,
    )  # fmt: skip
    command = Command(
        code=calls.REGISTER_BROKER.code, ext=header.to_ext(), body=body, opaque=number,
        language="JAVA",
    )  # fmt: skip
    return encode(command)
