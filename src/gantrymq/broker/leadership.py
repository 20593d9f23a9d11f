"""A broker of a raft group serves as a master while its member leads, else as a slave.

As RocketMQ's brokers do: the leader has brokerId 0, the follower n0 has 1, n1 has 2. A change of
role ends everything of the old one first. Clients see closed connections, ask for the route and go
on; the term goes to name servers as the version of the topics' state, by which they tell a new
leader from one that does not know yet that it was replaced.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from gantrymq.broker.serving import OpenBroker, Serving, serve
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.replication.group.node import Position, RaftNode

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0


def config_of(position: Position, config: BrokerConfig) -> BrokerConfig:
    """The settings of a member in its position."""
    if position.leads:
        return msgspec.structs.replace(config, broker_role="SYNC_MASTER", broker_id=0)
    number = config.group_identity.number + 1
    return msgspec.structs.replace(config, broker_role="SLAVE", broker_id=number)


def _is_same_role(one: Position, other: Position) -> bool:
    """Whether a broker can go on serving: a slave follows whoever leads, a master one term."""
    return one.leads == other.leads and (not one.leads or one.term == other.term)


class RoleOfMember:
    """Serves in whatever role the group gives."""

    def __init__(
        self,
        opened: OpenBroker,
        node: RaftNode,
        config: BrokerConfig,
        on_role: Callable[[Serving], None],
    ) -> None:
        """`on_role` is called with each role once it serves."""
        self._opened, self._node, self._config, self._on_role = opened, node, config, on_role
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stopping = False

    async def run(self) -> None:
        """Serve in one role after the other until `stop`."""
        while not self._stopping:
            try:
                await self._serve(self._node.position)
            except Exception:
                if not self.started.done():
                    raise
                log.exception("%s could not serve; trying again", self._node.identity.me)
                await asyncio.sleep(AGAIN_SECONDS)

    async def _serve(self, position: Position) -> None:
        self._config = config_of(position, self._config)
        if position.leads:
            _mark_term(self._opened, position.term)
        async with serve(self._opened, self._config) as serving:
            self._on_role(serving)
            if not self.started.done():
                self.started.set_result(None)
            while not self._stopping and _is_same_role(self._node.position, position):
                await self._node.wait_moved()

    def stop(self) -> None:
        """End the role; nothing is interrupted."""
        self._stopping = True
        self._node.interrupt()


@asynccontextmanager
async def serve_by_leadership(
    opened: OpenBroker, node: RaftNode, config: BrokerConfig, on_role: Callable[[Serving], None]
) -> AsyncIterator[None]:
    """Serve until the block is left; it is entered when the first role serves."""
    role = RoleOfMember(opened, node, config, on_role)
    task = asyncio.get_running_loop().create_task(role.run())
    done, _ = await asyncio.wait([task, role.started], return_when=asyncio.FIRST_COMPLETED)
    if task in done:
        await task
    try:
        yield
    finally:
        role.stop()
        await task


def _mark_term(opened: OpenBroker, term: int) -> None:
    """Let the version of the topics say in which term this leader was elected."""
    topics = opened.registry.topics
    topics.renew_version()
    topics.version = msgspec.structs.replace(topics.version, state_version=term)
