"""The simple consumer: pops messages of any queue and acknowledges each by itself."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import timedelta
from typing import Final

from gantrymq.base import arguments
from gantrymq.base.clock import WallClock
from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.base.network import Network
from gantrymq.client.consume.membership.setup import check_group
from gantrymq.client.consume.membership.subscriptions import Subscriptions
from gantrymq.client.consume.pop.pop_requests import PopClient, Popped, PopSource
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerUnknown, Closed, NoRoute
from gantrymq.client.core.instance import Hook, Instance
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle
from gantrymq.client.core.options import ClientOptions, with_namesrv
from gantrymq.model import READ
from gantrymq.protocol.bodies import ConsumerData
from gantrymq.protocol.headers.pop import INIT_MAX, INIT_MIN
from gantrymq.protocol.pop import POP_MESSAGES_MAX

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 0.2
"""Before asking again when a broker was full, away, or had nothing after all."""
SPARE_MS: Final = 1_000
"""What is left in the stash with less time than this is not handed out any more."""
UNAVAILABLE = (*TRANSPORT_ERRORS, NoRoute, BrokerUnknown)


class SimpleConsumer(Lifecycle):
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
        self._invisible_ms = _milliseconds(invisible)
        self._ordered = arguments.yes_or_no("ordered", ordered)
        first = arguments.yes_or_no("from_first", from_first)
        self._init_mode = INIT_MIN if first else INIT_MAX
        super().__init__(
            f"simple consumer of {self.group!r}",
            with_namesrv(client, namesrv),
            ClientPorts(network, clock, rng),
            hooks,
            consumer_group=self.group,
        )
        self._subscriptions = Subscriptions(self.group, retries=False)
        self._stash: deque[Popped] = deque()
        self._turn = 0
        self._keeper: PopClient

    # life

    async def _open(self, instance: Instance) -> None:
        self._keeper = PopClient(instance, self.group)
        instance.register_consumer(self.group, self._consumer_data)
        self._subscriptions.start(instance, lambda: None)

    def _consumer_data(self) -> ConsumerData:
        return ConsumerData(
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            consume_type="CONSUME_POP",
            group_name=self.group,
            message_model="CLUSTERING",
            subscription_data_set=list(self._subscriptions.table.values()),
        )

    async def _shut(self) -> None:
        """Leave the group. A message that is not finished is delivered again after its time."""
        self._subscriptions.stop()
        await self._give_back(list(self._stash))
        await self._instance.unregister_consumer(self.group)

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
        self._check_open()
        if not 1 <= max <= POP_MESSAGES_MAX:
            raise ConsumerMisused(f"receive takes 1 to {POP_MESSAGES_MAX} messages, not {max}")
        if not self._subscriptions.table:
            raise ConsumerMisused("nothing is subscribed: call subscribe() first")
        if stashed := self._from_stash(max):
            return stashed
        await self._subscriptions.announce()
        deadline = asyncio.get_running_loop().time() + wait
        attempt = f"{self._instance.rng.getrandbits(64):016x}" if self._ordered else None
        return await _ReceiveCall(self, max, deadline, attempt).run()

    def _from_stash(self, count: int) -> list[Popped]:
        """Messages popped by a loop that was left, or by a receive that was cancelled."""
        found: list[Popped] = []
        oldest = self._instance.clock.now_ms() + SPARE_MS
        while self._stash and len(found) < count:
            message = self._stash.popleft()
            if message.due_ms > oldest:
                found.append(message)
        return found

    def keep(self, messages: Sequence[Popped]) -> None:
        """Keep popped messages for the next receive; `close` gives them back to the broker."""
        self._stash.extendleft(reversed(messages))

    async def ack_many(self, messages: Iterable[Popped]) -> None:
        """Acknowledge several messages, one request a broker."""
        self._check_open()
        await self._keeper.ack_many(dict.fromkeys(messages))

    async def __aiter__(self) -> AsyncIterator[Popped]:
        """Messages one by one, until the consumer is closed. Acknowledge each."""
        while self._state != "closed":
            try:
                found = self._from_stash(1) or await self.receive()
            except Closed:
                return
            # The rest is kept for the next loop, which leaves out messages whose time is over.
            self.keep(found[1:])
            for message in found[:1]:
                yield message

    # one request

    async def pop(
        self, source: PopSource, count: int, wait: float, attempt: str | None
    ) -> list[Popped]:
        """Pop; if the caller is cancelled meanwhile, the messages go to the next receive."""
        wanted = self._subscriptions.table.get(source.topic)
        if wanted is None:
            return []
        request = self._keeper.pop(
            source,
            wanted,
            count,
            self._invisible_ms,
            wait,
            init_mode=self._init_mode,
            attempt=attempt,
        )
        answered: asyncio.Future[list[Popped]] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                found = await request
            except asyncio.CancelledError:
                if not answered.done():
                    answered.set_exception(Closed(f"simple consumer of {self.group!r} is closed"))
                raise
            except GantryError as error:
                if not answered.done():
                    answered.set_exception(error)
                return
            if not answered.done():
                answered.set_result(found)
            elif self._state == "open":
                self._stash.extend(found)
            else:
                await self._give_back(found)

        self._instance.spawn(run())
        return await answered

    async def _give_back(self, messages: list[Popped]) -> None:
        for message in messages:
            try:
                await message.retry()
            except GantryError as error:
                log.info("%s comes back when its time is over: %s", message.msg_id, error)

    async def sources(self) -> list[PopSource]:
        """Every pair of topic and broker; each call begins with the next one."""
        found = []
        for topic in list(self._subscriptions.table):
            route = await self._instance.routes.get(topic)
            masters = {data.broker_name for data in route.broker_datas if data.master is not None}
            found += [
                PopSource(topic, data.broker_name)
                for data in route.queue_datas
                if data.perm & READ and data.broker_name in masters
            ]
        if not found:
            raise NoRoute(", ".join(self._subscriptions.table), "no broker may be read")
        self._turn += 1
        first = self._turn % len(found)
        return found[first:] + found[:first]

    async def has_news(self, source: PopSource, wait: float, attempt: str | None) -> bool:
        return await self._keeper.has_news(source, wait, attempt)

    async def refresh(self) -> None:
        """Refresh the routes after a broker did not answer."""
        for topic in list(self._subscriptions.table):
            try:
                await self._instance.routes.refresh(topic)
            except GantryError as error:
                log.info("route of %s: %s", topic, error)


class _ReceiveCall:
    """One receive: pop from every source, then wait for the first one that has messages."""

    def __init__(
        self, consumer: SimpleConsumer, count: int, deadline: float, attempt: str | None
    ) -> None:
        self._consumer, self._count, self._attempt = consumer, count, attempt
        self._deadline = deadline
        self._failures: list[GantryError] = []

    @property
    def _left(self) -> float:
        return max(0.0, self._deadline - asyncio.get_running_loop().time())

    async def run(self) -> list[Popped]:
        """Return messages, or [] after the deadline; raises if the last round had failures."""
        while True:
            self._failures.clear()
            found = await self._round()
            if found:
                return found
            if not self._left:
                break
            if self._failures:
                await self._consumer.refresh()
            await asyncio.sleep(min(PAUSE_SECONDS, self._left))
        if self._failures:
            raise self._failures[0]
        return []

    async def _round(self) -> list[Popped]:
        try:
            sources = await self._consumer.sources()
        except UNAVAILABLE as error:
            self._failures.append(error)
            return []
        if len(sources) == 1:
            return await self._pop(sources[0], self._left)
        for source in sources:
            if found := await self._pop(source, 0.0):
                return found
        return await self._first_news(sources)

    async def _pop(self, source: PopSource, wait: float) -> list[Popped]:
        try:
            return await self._consumer.pop(source, self._count, wait, self._attempt)
        except UNAVAILABLE as error:
            self._failures.append(error)
            return []

    async def _first_news(self, sources: list[PopSource]) -> list[Popped]:
        """Ask all sources at once, and pop from the first that has messages."""
        wait = self._left
        if not wait:
            return []
        asked = {asyncio.ensure_future(self._news(source, wait)): source for source in sources}
        try:
            for done in asyncio.as_completed(asked):
                source = await done
                if source is not None and (found := await self._pop(source, 0.0)):
                    return found
        finally:
            for question in asked:
                question.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        return []

    async def _news(self, source: PopSource, wait: float) -> PopSource | None:
        try:
            return source if await self._consumer.has_news(source, wait, self._attempt) else None
        except UNAVAILABLE as error:
            self._failures.append(error)
            await asyncio.sleep(min(PAUSE_SECONDS, self._left))
            return None


def _milliseconds(invisible: timedelta | float) -> int:
    seconds = invisible.total_seconds() if isinstance(invisible, timedelta) else float(invisible)
    if not 0 < seconds < 1e9:
        raise ConfigError(f"invisible is a time above 0, not {invisible!r}")
    return max(1, int(seconds * 1000))
