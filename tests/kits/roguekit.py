"""A member and a broker that say of themselves what would like to be a part of a page.

Both speak the protocol by hand, since our clients and brokers say no such things.
"""

import asyncio
import threading
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Final

from gantrymq.base.network import TcpNetwork, split_address
from gantrymq.model import GroupConfig, Subscription, TopicConfig, dead_topic
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import (
    ConsumerData,
    Heartbeat,
    ProducerData,
    RegisterBrokerBody,
    TopicTable,
)
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.headers.topics import RegisterBrokerRequest
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import HandlerTable, Server

HOST: Final = "127.0.0.1"
SECONDS_MAX: Final = 20.0

Live = Callable[[AsyncExitStack], Awaitable[None]]


@contextmanager
def rogue_member(broker: str, group: str, text: str) -> Iterator[None]:
    """A member whose client id, subscription and own report are this text; a producer, too."""

    def answer(connection: Connection, command: Command) -> None:
        body = _running_info(text)
        if command.code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
            body = {"consumeResult": text, "remark": text, "spentTimeMills": 1}
        connection.reply(command, body=fastjson.dumps(body))

    async def live(stack: AsyncExitStack) -> None:
        wanted = Subscription(topic="orders", sub_string=text, tags_set=[text])
        beat = Heartbeat(
            client_id=text,
            consumer_data_set=[ConsumerData(group_name=group, subscription_data_set=[wanted])],
            producer_data_set=[ProducerData(group_name=text)],
        )
        connection = await _connected(broker, answer, stack)
        command = Command(code=RequestCode.HEART_BEAT, body=fastjson.dumps(beat))
        heard = await connection.call(command, SECONDS_MAX)
        assert heard.code == 0, heard.remark

    with _living(live):
        yield


@contextmanager
def rogue_broker(namesrv: str, text: str, *, tells: bool = True) -> Iterator[None]:
    """A registered broker whose names, figures, groups and errors are this text.

    A topic of a broker's name is its own, so that of people has a `t` in front. One that does not
    tell refuses everything.
    """
    table = {name: TopicConfig(topic_name=name) for name in (f"t{text}", dead_topic(text))}
    groups = {text: GroupConfig(group_name=text)}
    bodies: dict[int, Any] = {
        RequestCode.GET_BROKER_RUNTIME_INFO: {
            "table": {text: text, "brokerVersionDesc": text, "commitLogDiskRatio": "0.99"}
        },
        RequestCode.GET_ALL_TOPIC_CONFIG: TopicTable(topic_config_table=table),
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: {"subscriptionGroupTable": groups},
        RequestCode.GET_CONSUMER_RUNNING_INFO: _running_info(text),
    }

    async def answer(connection: Connection, command: Command) -> Command:
        if not tells:
            return response(command, 1, remark=text)
        if command.code == RequestCode.GET_BROKER_CONFIG:
            body = f"brokerName={text}\n".encode()
            return response(command, 0, ext={"version": text}, body=body)
        if command.code in bodies:
            return response(command, 0, body=fastjson.dumps(bodies[command.code]))
        return response(command, 1, remark=text)

    async def live(stack: AsyncExitStack) -> None:
        handlers = HandlerTable(slow=dict.fromkeys(map(int, RequestCode), answer))
        server = Server(handlers, TcpNetwork())
        port = await server.start(HOST, 0)
        stack.push_async_callback(server.stop)
        body = fastjson.dumps(RegisterBrokerBody(topics=TopicTable(topic_config_table=table)))
        header = RegisterBrokerRequest(
            broker_name=text, broker_addr=f"{HOST}:{port}", cluster_name=text, broker_id=0,
            body_crc32=zlib.crc32(body) & 0x7FFF_FFFF,
        )  # fmt: skip
        connection = await _connected(namesrv, lambda *_: None, stack)
        command = Command(code=RequestCode.REGISTER_BROKER, ext=header.to_ext(), body=body)
        told = await connection.call(command, SECONDS_MAX)
        assert told.code == 0, told.remark

    with _living(live):
        yield


def _running_info(text: str) -> dict[str, Any]:
    queue = fastjson.dumps({"topic": text, "brokerName": text, "queueId": 0}).decode()
    return {
        "properties": {text: text},
        "jstack": text,
        "subscriptionSet": [{"topic": text, "subString": text}],
        "mqTable": {queue: {"commitOffset": 1}},
        "statusTable": {text: {"pullTPS": 1.0}},
    }


async def _connected(
    address: str, answer: Callable[[Connection, Command], None], stack: AsyncExitStack
) -> Connection:
    host, port = split_address(address)
    connection = await TcpNetwork().connect(host, port, lambda: Connection(answer), SECONDS_MAX)
    stack.callback(connection.close)
    return connection


@contextmanager
def _living(live: Live) -> Iterator[None]:
    """Run it on a thread of its own, until the block ends."""
    ready, failure = threading.Event(), []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def run() -> None:
        try:
            async with AsyncExitStack() as stack:
                await live(stack)
                ready.set()
                await stop.wait()
        except BaseException as error:
            failure.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    try:
        assert ready.wait(SECONDS_MAX)
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(SECONDS_MAX)
        loop.close()
        if failure:
            raise failure[0]
