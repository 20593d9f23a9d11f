"""Heartbeats: tell brokers that a client is alive, and the subscriptions of its groups."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gantrymq.base.errors import GantryError
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import ConsumerData, Heartbeat, ProducerData
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.clients import UnregisterClientRequest

if TYPE_CHECKING:
    from gantrymq.client.core.instance import Instance

log = logging.getLogger(__name__)

INNER_PRODUCER: Final = "CLIENT_INNER_PRODUCER"
"""The group RocketMQ's consumers send their own messages with; brokers expect to see it."""
UNREGISTER_SECONDS_MAX: Final = 1.0

Provider = Callable[[], ConsumerData]


class HeartbeatGroups:
    """The groups of one client id, from which heartbeats are built."""

    def __init__(self) -> None:
        self._producers: dict[str, int] = {}
        self._consumers: dict[str, Provider] = {}
        self._promised: set[str] = set()

    def promise_consumer(self, group: str) -> None:
        """Reserve this group for a consumer that will be added soon."""
        self._promised.add(group)

    def add_producer(self, group: str) -> None:
        self._producers[group] = self._producers.get(group, 0) + 1

    def drop_producer(self, group: str) -> bool:
        """Remove one producer of the group; True when it was the last."""
        left = self._producers.get(group, 0) - 1
        if left > 0:
            self._producers[group] = left
            return False
        return self._producers.pop(group, None) is not None

    @property
    def any_producer(self) -> str | None:
        """A producer group that heartbeats name; None without one."""
        return next(iter(self._producers), INNER_PRODUCER if self._consumers else None)

    def add_consumer(self, group: str, provider: Provider) -> None:
        if group in self._consumers:
            raise GantryError(
                f"consumer group {group!r} is already in this client; a second member needs "
                "another instance_name"
            )
        self._consumers[group] = provider

    def drop_consumer(self, group: str) -> bool:
        self._promised.discard(group)
        return self._consumers.pop(group, None) is not None

    def has_consumer(self, group: str) -> bool:
        return group in self._consumers or group in self._promised

    @property
    def any_consumer(self) -> bool:
        return bool(self._consumers)

    @property
    def empty(self) -> bool:
        return not self._consumers and not self._producers

    def body(self, client_id: str) -> Heartbeat:
        producers = list(self._producers)
        if self._consumers and INNER_PRODUCER not in producers:
            producers.append(INNER_PRODUCER)
        return Heartbeat(
            client_id=client_id,
            consumer_data_set=[provider() for provider in self._consumers.values()],
            producer_data_set=[ProducerData(group_name=group) for group in producers],
        )


class Heartbeats:
    """Sends heartbeats: to masters only, or to every broker when there is a consumer."""

    def __init__(self, instance: "Instance", groups: HeartbeatGroups) -> None:
        self._instance, self._groups = instance, groups
        self.versions: dict[str, int] = {}
        """Address to the version its broker announced; SQL filters need a broker that has them."""
        self.introduced: dict[str, None] = {}
        """Brokers that got a heartbeat; after a lost connection they need another one."""
        self._under_way: dict[asyncio.Task[None], None] = {}

    def targets(self) -> list[str]:
        return self._instance.routes.all_addresses(masters_only=not self._groups.any_consumer)

    async def send_all(self) -> None:
        """Send a heartbeat to all targets at once; failures are only logged."""
        if not self._groups.empty:
            await self._send(self.targets())

    async def send_again(self, address: str) -> None:
        """Send a heartbeat to a broker that forgot this client when the connection was lost."""
        if not self._groups.empty and address in self.targets():
            await self._send([address])

    async def send_new(self) -> None:
        """Send a heartbeat to brokers that have not answered one yet."""
        if not self._groups.empty:
            await self._send([a for a in self.targets() if a not in self.versions])

    async def introduce_again(self) -> None:
        """Make brokers register this client's connection again.

        RocketMQ's broker drops it when any producer group leaves the client, and heartbeats of the
        remaining groups do not restore it: replies to requests would be lost from then on.
        """
        group = self._groups.any_producer
        if group is not None:
            await self.unregister(producer_group=group)
            await self.send_all()

    async def _send(self, addresses: list[str]) -> None:
        body = fastjson.dumps(self._groups.body(self._instance.client_id))
        # A task of its own: the caller may be cancelled, but `unregister` must wait for the
        # answers to heartbeats that were sent.
        task = self._instance.spawn(self._send_to(addresses, body))
        self._under_way[task] = None
        task.add_done_callback(lambda task: self._under_way.pop(task, None))
        await asyncio.shield(task)

    async def _send_to(self, addresses: list[str], body: bytes) -> None:
        await asyncio.gather(*(self._send_one(address, body) for address in addresses))

    async def _send_one(self, address: str, body: bytes) -> None:
        instance = self._instance
        timeout = instance.options.call_timeout_ms / 1000
        try:
            _, answer = await instance.call(
                address, calls.HEART_BEAT, Nothing(), body, timeout=timeout
            )
        except GantryError as error:
            self.versions.pop(address, None)
            level = logging.WARNING if isinstance(error, BrokerRefused) else logging.INFO
            log.log(level, "heartbeat to %s failed: %s", address, error)
        else:
            self.versions[address] = answer.version
            self.introduced[address] = None

    def keep(self, addresses: list[str]) -> None:
        """Forget brokers that are not at these addresses."""
        for table in (self.versions, self.introduced):
            for address in [a for a in table if a not in addresses]:
                del table[address]

    async def unregister(
        self, *, producer_group: str | None = None, consumer_group: str | None = None
    ) -> None:
        """Tell every broker that a group has left this client."""
        if self._under_way:
            # Brokers handle heartbeats and unregistrations concurrently: a heartbeat that is not
            # answered yet could register the group again after it left.
            await asyncio.wait(list(self._under_way), timeout=UNREGISTER_SECONDS_MAX)
        header = UnregisterClientRequest(
            client_id=self._instance.client_id,
            producer_group=producer_group,
            consumer_group=consumer_group,
        )

        async def tell(address: str) -> None:
            try:
                await self._instance.call(
                    address, calls.UNREGISTER_CLIENT, header, timeout=UNREGISTER_SECONDS_MAX
                )
            except GantryError as error:
                log.debug("unregister at %s: %s", address, error)

        await asyncio.gather(*(tell(address) for address in list(self.versions)))
