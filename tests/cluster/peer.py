"""A peer that speaks the protocol by hand, for what no client library shows."""

from collections.abc import Callable, Coroutine
from typing import Any

from gantrymq.protocol import fastjson
from gantrymq.protocol.command import Command
from gantrymq.protocol.record import StoredMessage, decode_records
from gantrymq.protocol.subscription import subscription
from gantrymq.remoting.connection import Connection
from gantrymq.testing.cluster import HOST, Cluster

Work = Callable[[Cluster], Coroutine[Any, Any, None]]
Run = Callable[..., None]
"""Runs work against a cluster in one of the two worlds; see conftest."""


class Peer:
    """One connection to a server of the cluster."""

    def __init__(self, connection: Connection, pushed: list[Command]) -> None:
        self.connection, self.pushed = connection, pushed

    @classmethod
    async def to(cls, cluster: Cluster, port: int | None = None) -> "Peer":
        """Connect to a broker (the first unless a port says otherwise)."""
        return await cls._to(cluster, HOST, port or cluster.broker().config.listen_port)

    @classmethod
    async def at(cls, cluster: Cluster, name: str) -> "Peer":
        """Connect to a broker by its name in the cluster."""
        port = cluster.broker(name).config.listen_port
        return await cls._to(cluster, cluster.host_of(name), port)

    @classmethod
    async def _to(cls, cluster: Cluster, host: str, port: int) -> "Peer":
        pushed: list[Command] = []
        connection = await cluster.network.connect(
            host, port, lambda: Connection(lambda _, command: pushed.append(command)), 3
        )
        return cls(connection, pushed)

    @classmethod
    async def to_namesrv(cls, cluster: Cluster, number: int = 0) -> "Peer":
        address = cluster.namesrv.split(";")[number]
        return await cls.to(cluster, int(address.rpartition(":")[2]))

    async def call(self, code: int, body: bytes = b"", timeout: float = 40, **ext: Any) -> Command:
        fields = {name: str(value) for name, value in ext.items()}
        return await self.connection.call(Command(code=code, ext=fields, body=body), timeout)

    async def send(self, topic: str, body: bytes, queue: int = 0, props: str = "") -> Command:
        ext = {"a": "p", "b": topic, "c": "TBW102", "d": 4, "e": queue, "f": 0, "g": 1, "h": 0}
        return await self.call(310, body, i=props, **ext)

    async def pull(
        self, topic: str, offset: int, queue: int = 0, *, hold: int = 0, tags: str = "*",
        group: str = "g", count: int = 32,
    ) -> Command:  # fmt: skip
        return await self.call(
            11, consumerGroup=group, topic=topic, queueId=queue, queueOffset=offset,
            maxMsgNums=count, sysFlag=4 | (2 if hold else 0), commitOffset=0,
            suspendTimeoutMillis=hold, subscription=tags, subVersion=0,
        )  # fmt: skip

    async def heartbeat(
        self, client: str, group: str, *topics: str, model: str = "CLUSTERING"
    ) -> Command:
        consumer = {
            "groupName": group,
            "messageModel": model,
            "consumeType": "CONSUME_PASSIVELY",
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "subscriptionDataSet": [subscription(topic, "*") for topic in topics],
        }
        beat = {"clientID": client, "consumerDataSet": [consumer], "producerDataSet": []}
        return await self.call(34, fastjson.dumps(beat))

    def close(self) -> None:
        self.connection.close()


def messages(answer: Command) -> list[StoredMessage]:
    return list(decode_records(answer.body))


def bodies(answer: Command) -> list[bytes]:
    return [message.body for message in messages(answer)]
