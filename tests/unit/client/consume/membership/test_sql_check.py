"""Brokers are asked whether they know what a condition uses, before anybody waits in vain."""

import asyncio
import random

import pytest

from gantrymq.client.consume.membership.subscriptions import check_sql
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.options import ClientOptions
from gantrymq.protocol.codes import SQL_OPERATORS, VERSION_4_9_8, VERSION_5_1_3, RequestCode
from gantrymq.protocol.command import RESPONSE_FLAG, Command, encode
from gantrymq.protocol.subscription import subscription
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import HandlerTable, Server
from gantrymq.testing.clock import LoopClock
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

HOST = "127.0.0.1"
OURS = {SQL_OPERATORS: "CONTAINS,ENDSWITH,LIKE,STARTSWITH"}


def said_by(version: int, ext: dict[str, str], sql: str) -> str:
    """What a client says of a broker that takes every condition and answers like this."""

    async def main() -> str:
        def answer(connection: Connection, command: Command) -> None:
            reply = Command(
                code=0, ext=ext, flag=RESPONSE_FLAG, opaque=command.opaque, version=version
            )
            connection.reply_frame(encode(reply))

        network = MemoryNetwork(random.Random(1))
        server = Server(HandlerTable(hot={RequestCode.CHECK_CLIENT_CONFIG: answer}), network)
        port = await server.start(HOST, 0)
        instance = Instance(
            ClientOptions(namesrv=f"{HOST}:1"),
            network=network,
            clock=LoopClock(asyncio.get_running_loop()),
            rng=random.Random(1),
        )
        try:
            wanted = subscription("T", sql, "SQL92")
            await check_sql(instance, "g", f"{HOST}:{port}", wanted)
        except BrokerRefused as error:
            return error.remark
        finally:
            await instance.close()
            await server.stop()
        return "fine"

    return simulate(main)


@pytest.mark.parametrize(
    "version, ext, sql, expected",
    [
        (VERSION_4_9_8, {}, "a = 1", "fine"),
        (VERSION_4_9_8, {}, "a CONTAINS 'x'", "it has no CONTAINS in SQL conditions"),
        (VERSION_5_1_3, {}, "a CONTAINS 'x' AND a STARTSWITH 'y'", "fine"),
        (VERSION_5_1_3, {}, "a LIKE 'x%'", "it has no LIKE in SQL conditions"),
        (VERSION_4_9_8, OURS, "a LIKE 'x%' OR a ENDSWITH 'x'", "fine"),
    ],
)
def test_operators_that_a_broker_would_ignore_are_refused(
    version: int, ext: dict[str, str], sql: str, expected: str
) -> None:
    """
    RocketMQ ends a condition at the first word it does not know and takes what stood before it:
    nothing would ever match. Our brokers say what they have, others are known by their version.
    """
    assert expected == said_by(version, ext, sql)
