"""Queue locks of a group at the broker: only the client with the lock reads a queue in order."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.client.core.instance import Instance
from gantrymq.model import Queue
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import LockRequest, LockResponse
from gantrymq.protocol.headers.base import Nothing

log = logging.getLogger(__name__)

LOCK_TIMEOUT_SECONDS: Final = 1.0


class QueueLocks:
    """Locks, renews and unlocks queues of one group for one client."""

    def __init__(self, instance: Instance, group: str) -> None:
        self._instance, self._group = instance, group
        self._granted_on: dict[Queue, object | None] = {}

    async def lock(self, queues: Iterable[Queue]) -> dict[Queue, bool]:
        """Lock queues; returns whether each is ours, without those of a broker that is silent."""
        verdicts: dict[Queue, bool] = {}
        for answer in await asyncio.gather(
            *(self._lock_at(name, some) for name, some in _by_broker(queues).items())
        ):
            verdicts |= answer
        return verdicts

    async def _lock_at(self, broker_name: str, queues: list[Queue]) -> dict[Queue, bool]:
        try:
            _, answer = await self._instance.call(
                self._instance.routes.address_of(broker_name),
                calls.LOCK_BATCH_MQ,
                Nothing(),
                self._body(queues),
                timeout=LOCK_TIMEOUT_SECONDS,
            )
            held = fastjson.load_as(answer.body, LockResponse).lock_ok
        except GantryError as error:
            log.info("locks of %s at %s not known: %s", self._group, broker_name, error)
            return {}
        for queue in held:
            self._granted_on[queue] = self._connection(queue)
        return {queue: queue in held for queue in queues}

    def has_connection(self, queue: Queue) -> bool:
        """Whether the connection on which the lock was granted is still open.

        When it is lost the broker soon gives the lock to another member.
        """
        connection = self._connection(queue)
        return connection is not None and self._granted_on.get(queue) is connection

    def _connection(self, queue: Queue) -> object | None:
        """The open connection to the queue's broker; None without one."""
        try:
            address = self._instance.routes.address_of(queue.broker_name)
        except GantryError:
            return None
        return self._instance.connections.ready(address)

    async def unlock(self, queues: Iterable[Queue]) -> None:
        """Unlock queues, so that the next member need not wait until the locks expire."""
        await asyncio.gather(
            *(self._unlock_at(name, some) for name, some in _by_broker(queues).items())
        )

    async def _unlock_at(self, broker_name: str, queues: list[Queue]) -> None:
        try:
            await self._instance.call(
                self._instance.routes.address_of(broker_name),
                calls.UNLOCK_BATCH_MQ,
                Nothing(),
                self._body(queues),
                timeout=LOCK_TIMEOUT_SECONDS,
            )
        except GantryError as error:
            log.info("%s not unlocked at %s: %s", self._group, broker_name, error)

    def _body(self, queues: list[Queue]) -> bytes:
        return fastjson.dumps(
            LockRequest(
                client_id=self._instance.client_id,
                consumer_group=self._group,
                mq_set=queues,
                stops_when_lost=True,
            )
        )


def _by_broker(queues: Iterable[Queue]) -> dict[str, list[Queue]]:
    groups: dict[str, list[Queue]] = {}
    for queue in queues:
        groups.setdefault(queue.broker_name, []).append(queue)
    return groups
