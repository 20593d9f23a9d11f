"""A broker that answers as a test tells it: real frames on the cluster's network, a scripted mind.

For answers that a healthy broker on its own never gives: a slave that is missing, a broker that is
busy, slow or silent.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

from peer import Peer

from gantrymq.model import TopicConfig
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import ConsumerIdList, RegisterBrokerBody, TopicTable
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import HandlerTable, Server
from gantrymq.testing.cluster import HOST, Cluster

SILENT = -1
"""In a plan: no answer at all."""
STORED = (0, 10, 11, 12)
FOUND_NOTHING, NO_MATCH, MOVED = 19, 20, 21


class Puppet:
    """Answers sends and pulls by its plans, code by code.

    Beyond the plan sends are stored and pulls are held for ever.
    """

    def __init__(self, name: str, address: str = "") -> None:
        self.name, self.address = name, address
        self.plan: list[int] = []
        self.pause = 0.0
        self.sends: list[Command] = []
        self.pulls: list[Command] = []
        self.pulled_at: list[float] = []
        self.pull_plan: list[tuple[int, int]] = []
        """Code and next offset of each answer."""
        self.progress = 0
        """What the group has stored."""
        self.connections: dict[Connection, None] = {}
        self._members: dict[str, None] = {}
        self.server: Server

    def routes(self) -> HandlerTable:
        return HandlerTable(
            slow={
                310: self._send, 320: self._send, 11: self._pull, 34: self._heartbeat,
                35: self._leave, 38: self._group, 14: self._read, 15: self._store, 30: self._offset,
                31: self._offset,
            }
        )  # fmt: skip

    async def _send(self, connection: Connection, command: Command) -> Command | None:
        self.sends.append(command)
        self.connections[connection] = None
        code = self.plan.pop(0) if self.plan else 0
        if self.pause:
            await asyncio.sleep(self.pause)
        if code == SILENT:
            return None
        if code not in STORED:
            return Command(code=code, remark=f"planned by {self.name}")
        count = len(self.sends)
        ext = {
            "msgId": f"7F00000100002A9F{count:016X}", "queueId": command.ext["e"],
            "queueOffset": str(count - 1),
        }  # fmt: skip
        return Command(code=code, ext=ext)

    async def _pull(self, connection: Connection, command: Command) -> Command | None:
        self.pulls.append(command)
        self.pulled_at.append(asyncio.get_running_loop().time())
        if not self.pull_plan:
            return None
        code, offset = self.pull_plan.pop(0)
        ext = {"nextBeginOffset": str(offset), "minOffset": "0", "maxOffset": "1000",
               "suggestWhichBrokerId": "0"}  # fmt: skip
        planned = code in (FOUND_NOTHING, NO_MATCH, MOVED)
        return Command(code=code, ext=ext if planned else {}, remark=f"planned by {self.name}")

    async def _heartbeat(self, connection: Connection, command: Command) -> Command:
        self._members[fastjson.loads(command.body)["clientID"]] = None
        return Command(code=0)

    async def _leave(self, connection: Connection, command: Command) -> Command:
        self._members.pop(command.ext["clientID"], None)
        return Command(code=0)

    async def _group(self, connection: Connection, command: Command) -> Command:
        members = ConsumerIdList(consumer_id_list=list(self._members))
        return Command(code=0, body=fastjson.dumps(members))

    async def _read(self, connection: Connection, command: Command) -> Command:
        return Command(code=0, ext={"offset": str(self.progress)})

    async def _store(self, connection: Connection, command: Command) -> Command:
        self.progress = int(command.ext["commitOffset"])
        return Command(code=0)

    async def _offset(self, connection: Connection, command: Command) -> Command:
        return Command(code=0, ext={"offset": "0"})

    @property
    def pauses(self) -> list[float]:
        """The seconds between one pull and the next."""
        return [after - before for before, after in pairwise(self.pulled_at)]


@asynccontextmanager
async def puppets(
    cluster: Cluster, *names: str, topics: Sequence[str] = ("orders",), queues: int = 2
) -> AsyncIterator[list[Puppet]]:
    """Brokers of these names, known to the cluster's name server; each has the topics."""
    made, lines = [], []
    configs = {
        topic: TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
        for topic in (*topics, "SELF_TEST_TOPIC")  # a first registration never has one topic only
    }
    body = fastjson.dumps(RegisterBrokerBody(topics=TopicTable(topic_config_table=configs)))
    for name in names:
        puppet = Puppet(name)
        puppet.server = Server(puppet.routes(), cluster.network)
        puppet.address = f"{HOST}:{await puppet.server.start(HOST, 0)}"
        line = await Peer.to_namesrv(cluster)
        answer = await line.call(
            103, body, brokerName=name, brokerAddr=puppet.address, clusterName="DefaultCluster",
            haServerAddr=puppet.address, brokerId=0, compressed="false",
            bodyCrc32=zlib.crc32(body) & 0x7FFF_FFFF,
        )  # fmt: skip
        assert 0 == answer.code, answer.remark
        made.append(puppet)
        lines.append(line)
    try:
        yield made
    finally:
        for puppet, line in zip(made, lines, strict=True):
            for connection in puppet.server.connections:
                connection.abort()  # what it left without an answer is not waited for
            await puppet.server.stop()
            line.close()
