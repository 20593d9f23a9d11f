"""Progress on a broker that loses one of two first commits, as RocketMQ's 4.9 and 5.3 do."""

import asyncio
import random

from gantrymq.client.consume.membership.offset_store import RemoteOffsets
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.options import ClientOptions
from gantrymq.model import BrokerData, Queue, QueueData, Route
from gantrymq.protocol import fastjson
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import HandlerTable, Server
from gantrymq.testing.clock import LoopClock
from gantrymq.testing.loop import simulate
from gantrymq.testing.network import MemoryNetwork

HOST = "127.0.0.1"
OFFSETS = {Queue("T", "broker-a", number): number + 5 for number in range(4)}


class JavaLikeBroker:
    """Looks for a group's table, and makes one a moment later if there was none."""

    def __init__(self) -> None:
        self.network = MemoryNetwork(random.Random(1))
        self.table: dict[int, int] | None = None
        self.commits: list[int] = []
        self._server = Server(
            HandlerTable(
                slow={
                    RequestCode.UPDATE_CONSUMER_OFFSET: self._commit,
                    RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
                    RequestCode.HEART_BEAT: self._heartbeat,
                }
            ),
            self.network,
        )
        self.address = ""

    async def __aenter__(self) -> "JavaLikeBroker":
        self.address = f"{HOST}:{await self._server.start(HOST, 0)}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    async def member(self, seed: int = 1) -> Instance:
        instance = Instance(
            ClientOptions(namesrv=self.address, instance_name=f"member-{seed}"),
            network=self.network,
            clock=LoopClock(asyncio.get_running_loop()),
            rng=random.Random(seed),
        )
        await instance.start()
        return instance

    async def _commit(self, connection: Connection, command: Command) -> Command:
        queue_id, offset = int(command.ext["queueId"]), int(command.ext["commitOffset"])
        self.commits.append(queue_id)
        found = self.table
        await asyncio.sleep(0.001)
        if found is None:
            self.table = {queue_id: offset}
        else:
            found[queue_id] = offset
        return Command(code=0)

    async def _route(self, connection: Connection, command: Command) -> Command:
        broker = BrokerData(broker_addrs={"0": self.address}, broker_name="broker-a")
        queues = QueueData(broker_name="broker-a", perm=6, read_queue_nums=4, write_queue_nums=4)
        route = Route(broker_datas=[broker], queue_datas=[queues])
        return Command(code=0, body=fastjson.dumps(route))

    async def _heartbeat(self, connection: Connection, command: Command) -> Command:
        return Command(code=0)


def test_no_first_commit_of_a_member_is_lost() -> None:
    """
    After a member's first commit the broker has the offset of every queue.
    """

    async def main() -> dict[int, int] | None:
        async with JavaLikeBroker() as broker:
            instance = await broker.member()
            try:
                await RemoteOffsets(instance, "g").store(OFFSETS, wait=True)
            finally:
                await instance.close()
            return broker.table

    assert simulate(main) == {0: 5, 1: 6, 2: 7, 3: 8}


def test_what_two_members_lost_together_is_committed_again() -> None:
    """
    Two members begin at once and one offset is lost; the next turn brings it back.
    """

    async def main() -> list[int]:
        async with JavaLikeBroker() as broker:
            instances = [await broker.member(seed) for seed in (1, 2)]
            members = [RemoteOffsets(instance, "g") for instance in instances]
            shares = [{queue: OFFSETS[queue]} for queue in list(OFFSETS)[:2]]
            try:
                kept = []
                for _ in range(2):
                    turns = zip(members, shares, strict=True)
                    await asyncio.gather(*(one.store(part, wait=True) for one, part in turns))
                    kept.append(len(broker.table or ()))
            finally:
                for instance in instances:
                    await instance.close()
            return kept

    assert simulate(main) == [1, 2]


def test_what_has_not_moved_is_not_committed_for_ever() -> None:
    """
    The second turn commits all queues once more, the third only those that have moved.
    """

    async def main() -> list[int]:
        async with JavaLikeBroker() as broker:
            instance = await broker.member()
            offsets = RemoteOffsets(instance, "g")
            try:
                await offsets.store(OFFSETS, wait=True)
                await offsets.store(OFFSETS, wait=True)
                broker.commits.clear()
                await offsets.store({**OFFSETS, Queue("T", "broker-a", 2): 70}, wait=True)
            finally:
                await instance.close()
            return broker.commits

    assert simulate(main) == [2]
