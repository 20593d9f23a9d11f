"""Brokers that answer as a test tells them: real connections, scripted minds."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from gantrymq.client.core.instance import Instance
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.produce.producer import Producer
from gantrymq.model import BrokerData, QueueData, Route
from gantrymq.protocol import fastjson
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import HandlerTable, Server
from gantrymq.testing.clock import LoopClock
from gantrymq.testing.loop import VirtualLoop, simulate
from gantrymq.testing.network import MemoryNetwork

HOST = "127.0.0.1"
STORED = 0
SILENT = -1
"""In a plan: do not answer at all."""

T = Any


class Broker:
    """Answers sends by its plan, one code each, and with success when the plan is used up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.plan: list[int] = []
        self.pause = 0.0
        self.sends: list[Command] = []
        self.heartbeats: list[bytes] = []
        self.unregistered: list[dict[str, str]] = []
        self.address = ""

    async def send(self, connection: Connection, command: Command) -> Command | None:
        self.sends.append(command)
        code = self.plan.pop(0) if self.plan else STORED
        if self.pause:
            await asyncio.sleep(self.pause)
        if code == SILENT:
            return None
        if code not in (0, 10, 11, 12):
            return Command(code=code, remark=f"planned by {self.name}")
        ext = {
            "msgId": f"7F00000100002A9F{len(self.sends):016X}",
            "queueId": command.ext["e"],
            "queueOffset": str(len(self.sends) - 1),
        }
        return Command(code=code, ext=ext)

    async def heartbeat(self, connection: Connection, command: Command) -> Command:
        self.heartbeats.append(command.body)
        return Command(code=0)

    async def unregister(self, connection: Connection, command: Command) -> Command:
        self.unregistered.append(command.ext)
        return Command(code=0)

    def routes(self) -> HandlerTable:
        code = RequestCode
        return HandlerTable(
            slow={
                code.SEND_MESSAGE_V2: self.send,
                code.SEND_BATCH_MESSAGE: self.send,
                code.HEART_BEAT: self.heartbeat,
                code.UNREGISTER_CLIENT: self.unregister,
            }
        )


class World:
    """A name server and brokers named a, b, c ... on a network in memory."""

    def __init__(self, brokers: int = 3, queues: int = 4) -> None:
        self.network = MemoryNetwork(random.Random(1))
        self.brokers = [Broker(chr(ord("a") + number)) for number in range(brokers)]
        self.topics: dict[str, Route] = {}
        self.asked: list[str] = []
        self._queues = queues
        self._servers: list[Server] = []
        self.namesrv = ""

    async def start(self) -> None:
        for broker in self.brokers:
            broker.address = await self._serve(broker.routes())
        routes = HandlerTable(slow={RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route})
        self.namesrv = await self._serve(routes)
        self.topics["T"] = self.route()

    async def _serve(self, routes: HandlerTable) -> str:
        server = Server(routes, self.network)
        port = await server.start(HOST, 0)
        self._servers.append(server)
        return f"{HOST}:{port}"

    def route(self, *names: str, perm: int = 6) -> Route:
        """The route of a topic on these brokers, or on all."""
        chosen = [b for b in self.brokers if not names or b.name in names]
        return Route(
            broker_datas=[
                BrokerData(broker_addrs={"0": b.address}, broker_name=b.name) for b in chosen
            ],
            queue_datas=[
                QueueData(
                    broker_name=b.name,
                    perm=perm,
                    read_queue_nums=self._queues,
                    write_queue_nums=self._queues,
                )
                for b in chosen
            ],
        )

    async def _route(self, connection: Connection, command: Command) -> Command:
        topic = command.ext["topic"]
        self.asked.append(topic)
        found = self.topics.get(topic)
        if found is None:
            return Command(code=17, remark=f"no route info of {topic}")
        return Command(code=0, body=fastjson.dumps(found))

    def producer(self, *, hooks: Any = (), client: Any = None, **options: Any) -> Producer:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return Producer(
            self.namesrv,
            group="g",
            options=ProducerOptions(**options),
            client=client,
            hooks=hooks,
            network=self.network,
            clock=LoopClock(loop),
            rng=random.Random(7),
        )

    def tried(self) -> str:
        """How many sends each broker got: 'a1 b2 c0'."""
        return " ".join(f"{broker.name}{len(broker.sends)}" for broker in self.brokers)

    def plan(self, *codes: int) -> None:
        """Every broker answers with these codes first."""
        for broker in self.brokers:
            broker.plan = list(codes)

    def plan_together(self, *codes: int) -> None:
        """The next sends, whichever broker gets them, are answered with these codes."""
        shared = list(codes)
        for broker in self.brokers:
            broker.plan = shared

    def connections_of(self, instance: Instance) -> list[Connection]:
        """The brokers' ends of a client's connections."""
        return [
            connection
            for broker, server in zip(self.brokers, self._servers, strict=False)
            if broker.address in instance.connections.addresses
            for connection in server.connections
        ]

    async def stop(self) -> None:
        for server in self._servers:
            await server.stop()


def play(story: Callable[[World], Coroutine[Any, Any, T]], brokers: int = 3) -> T:
    """Run a story in a world of its own, in virtual time."""

    async def work() -> T:
        world = World(brokers)
        await world.start()
        try:
            return await story(world)
        finally:
            await world.stop()

    return simulate(work)
