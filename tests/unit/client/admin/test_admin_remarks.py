"""What brokers say beside a success, when a topic is made."""

import asyncio
import random

import pytest

from gantrymq.client.admin.admin import Admin
from gantrymq.model import BrokerData, QueueData, Route
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import ClusterInfo
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import HandlerTable, Server
from gantrymq.testing.clock import LoopClock
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

HOST = "127.0.0.1"


def create_topic_where_the_broker_says(remark: str | None) -> None:
    """Make a topic on a broker that takes it, with this remark."""

    async def main() -> None:
        network = MemoryNetwork(random.Random(1))

        async def create(connection: Connection, command: Command) -> Command:
            return Command(code=0, remark=remark)

        broker = Server(HandlerTable(slow={RequestCode.UPDATE_AND_CREATE_TOPIC: create}), network)
        data = BrokerData(
            broker_addrs={"0": f"{HOST}:{await broker.start(HOST, 0)}"}, broker_name="a"
        )
        queues = QueueData(broker_name="a", perm=6, read_queue_nums=8, write_queue_nums=8)

        async def cluster(connection: Connection, command: Command) -> Command:
            return Command(code=0, body=fastjson.dumps(ClusterInfo(broker_addr_table={"a": data})))

        async def route(connection: Connection, command: Command) -> Command:
            known = Route(broker_datas=[data], queue_datas=[queues])
            return Command(code=0, body=fastjson.dumps(known))

        code = RequestCode
        names = {code.GET_BROKER_CLUSTER_INFO: cluster, code.GET_ROUTEINFO_BY_TOPIC: route}
        namesrv = Server(HandlerTable(slow=names), network)
        address = f"{HOST}:{await namesrv.start(HOST, 0)}"
        clock = LoopClock(asyncio.get_running_loop())
        async with Admin(address, network=network, clock=clock, rng=random.Random(1)) as admin:
            assert list(await admin.create_topic("T")) == ["a"]
        await namesrv.stop()
        await broker.stop()

    simulate(main)


@pytest.mark.parametrize(
    "remark, told",
    [
        (None, []),
        ("not set any response code", []),
        ("attribute x is kept only", ["attribute x is kept only"]),
    ],
)
def test_only_a_remark_that_says_something_is_told(
    caplog: pytest.LogCaptureFixture, remark: str | None, told: list[str]
) -> None:
    """RocketMQ's brokers leave a placeholder in the remark of a topic that they made."""
    create_topic_where_the_broker_says(remark)
    name = "gantrymq.client.admin.topic_admin"
    lines = [r.getMessage() for r in caplog.records if r.name == name]
    assert [line.rpartition(": ")[2] for line in lines] == told
