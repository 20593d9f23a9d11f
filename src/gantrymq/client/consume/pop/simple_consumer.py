"""The simple consumer: pops messages of any queue and acknowledges each by itself."""

import random
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import timedelta

from gantrymq.base import arguments
from gantrymq.base.clock import WallClock
from gantrymq.base.errors import ConfigError
from gantrymq.base.network import Network
from gantrymq.client.consume.membership.setup import check_group
from gantrymq.client.consume.membership.subscriptions import Subscriptions
from gantrymq.client.consume.pop.pop_requests import PopClient, Popped
from gantrymq.client.consume.pop.receiver import PopSettings, Receiver
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.errors import Closed
from gantrymq.client.core.instance import Hook, Instance
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle
from gantrymq.client.core.options import ClientOptions, with_namesrv
from gantrymq.protocol.bodies import ConsumerData
from gantrymq.protocol.headers.pop import INIT_MAX, INIT_MIN
from gantrymq.protocol.pop import POP_MESSAGES_MAX


class SimpleConsumer(Lifecycle[Receiver]):
    """Pops messages; one that is not finished within `invisible` is delivered again.

        async with SimpleConsumer("localhost:9876", group="billing", invisible=30) as consumer:
            consumer.subscribe("orders")
            for message in await consumer.receive():
                ...
                await message.ack()

    There is no assignment: any number of members may pop from one queue, and a slow message holds
    up no other. Needs GantryMQ or RocketMQ 5 brokers.
    """

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        invisible: timedelta | float = 60.0,
        ordered: bool = False,
        from_first: bool = False,
        client: ClientOptions | None = None,
        hooks: Sequence[Hook] = (),
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.group = check_group(group)
        if not isinstance(invisible, timedelta):
            arguments.seconds("invisible", invisible)
        self._settings = PopSettings(
            self.group,
            _milliseconds(invisible),
            arguments.yes_or_no("ordered", ordered),
            INIT_MIN if arguments.yes_or_no("from_first", from_first) else INIT_MAX,
        )
        super().__init__(
            f"simple consumer of {self.group!r}",
            with_namesrv(client, namesrv),
            ClientPorts(network, clock, rng),
            hooks,
            consumer_group=self.group,
        )
        self._subscriptions = Subscriptions(self.group, retries=False)

    # life

    async def _open(self, instance: Instance) -> Receiver:
        instance.register_consumer(self.group, self._consumer_data)
        self._subscriptions.start(instance, lambda: None)
        pops = PopClient(instance, self.group)
        return Receiver(instance, self._settings, self._subscriptions.table, pops)

    def _consumer_data(self) -> ConsumerData:
        return ConsumerData(
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            consume_type="CONSUME_POP",
            group_name=self.group,
            message_model="CLUSTERING",
            subscription_data_set=list(self._subscriptions.table.values()),
        )

    async def _shut(self, running: Receiver) -> None:
        """Leave the group. A message that is not finished is delivered again after its time."""
        self._subscriptions.stop()
        await running.close()
        await running.instance.unregister_consumer(self.group)

    # what to read

    def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        """Read a topic: all of it, some tags (`a || b`), or what an SQL92 condition picks."""
        self._subscriptions.subscribe(topic, tags, sql)

    def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic."""
        self._subscriptions.unsubscribe(topic)

    # messages

    async def receive(self, max: int = 16, wait: float = 15.0) -> list[Popped]:  # noqa: A002
        """Up to `max` messages (32 at most); waits up to `wait` seconds for the first."""
        receiver = self._running
        if not 1 <= max <= POP_MESSAGES_MAX:
            raise ConsumerMisused(f"receive takes 1 to {POP_MESSAGES_MAX} messages, not {max}")
        if not self._subscriptions.table:
            raise ConsumerMisused("nothing is subscribed: call subscribe() first")
        if kept := receiver.take_kept(max):
            return kept
        await self._subscriptions.announce()
        return await receiver.receive(max, wait)

    def keep(self, messages: Sequence[Popped]) -> None:
        """Keep popped messages for the next receive; `close` gives them back to the broker."""
        if self._started is not None:
            self._started.kept.extendleft(reversed(messages))

    async def ack_many(self, messages: Iterable[Popped]) -> None:
        """Acknowledge several messages, one request a broker."""
        await self._running.pops.ack_many(dict.fromkeys(messages))

    async def __aiter__(self) -> AsyncIterator[Popped]:
        """Messages one by one, until the consumer is closed. Acknowledge each."""
        while not self._closed:
            try:
                found = self._running.take_kept(1) or await self.receive()
            except Closed:
                return
            # The rest is kept for the next loop, which leaves out messages whose time is over.
            self.keep(found[1:])
            for message in found[:1]:
                yield message


def _milliseconds(invisible: timedelta | float) -> int:
    seconds = invisible.total_seconds() if isinstance(invisible, timedelta) else float(invisible)
    if not 0 < seconds < 1e9:
        raise ConfigError(f"invisible is a time above 0, not {invisible!r}")
    return max(1, int(seconds * 1000))
