"""Receiving by POP: which brokers are asked, in which order, and what a cancelled caller leaves."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.client.consume.pop.pop_requests import PopClient, Popped, PopSource
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerUnknown, Closed, NoRoute
from gantrymq.client.core.lifecycle import RunningPart
from gantrymq.model import READ, Subscription

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 0.2
"""Before asking again when a broker was full, away, or had nothing after all."""
SPARE_MS: Final = 1_000
"""A kept message with less invisible time than this is not handed out any more."""
UNAVAILABLE = (*TRANSPORT_ERRORS, NoRoute, BrokerUnknown)


@dataclass(frozen=True, slots=True)
class PopSettings:
    """What a simple consumer asks brokers for."""

    group: str
    invisible_ms: int
    ordered: bool
    init_mode: int
    """Where a group without progress begins: at the first message or behind the last."""


@dataclass(slots=True, eq=False)
class Receiver(RunningPart):
    """What a started simple consumer pops messages with."""

    settings: PopSettings
    subscriptions: dict[str, Subscription]
    pops: PopClient
    kept: deque[Popped] = field(default_factory=deque)
    """Messages popped by a loop that was left, or by a receive that was cancelled."""
    _turn: int = 0
    """Which source the next receive begins with."""
    _closed: bool = False

    async def receive(self, count: int, wait: float) -> list[Popped]:
        """Up to `count` messages; waits up to `wait` seconds for the first."""
        deadline = asyncio.get_running_loop().time() + wait
        attempt = f"{self.instance.rng.getrandbits(64):016x}" if self.settings.ordered else None
        return await _ReceiveCall(self, count, deadline, attempt).run()

    def take_kept(self, count: int) -> list[Popped]:
        """Up to `count` kept messages that are invisible for long enough."""
        found: list[Popped] = []
        oldest = self.instance.clock.now_ms() + SPARE_MS
        while self.kept and len(found) < count:
            message = self.kept.popleft()
            if message.due_ms > oldest:
                found.append(message)
        return found

    async def pop(
        self, source: PopSource, count: int, wait: float, attempt: str | None
    ) -> list[Popped]:
        """Pop; if the caller is cancelled meanwhile, the messages are kept for the next receive."""
        wanted = self.subscriptions.get(source.topic)
        if wanted is None:
            return []
        settings = self.settings
        request = self.pops.pop(
            source,
            wanted,
            count,
            settings.invisible_ms,
            wait,
            init_mode=settings.init_mode,
            attempt=attempt,
        )
        answered: asyncio.Future[list[Popped]] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                found = await request
            except asyncio.CancelledError:
                if not answered.done():
                    answered.set_exception(
                        Closed(f"simple consumer of {settings.group!r} is closed")
                    )
                raise
            except GantryError as error:
                if not answered.done():
                    answered.set_exception(error)
                return
            if not answered.done():
                answered.set_result(found)
            elif self._closed:
                await _give_back(found)
            else:
                self.kept.extend(found)

        self.instance.spawn(run())
        return await answered

    async def sources(self) -> list[PopSource]:
        """Every pair of topic and broker; each call begins with the next one."""
        found = []
        for topic in list(self.subscriptions):
            route = await self.instance.routes.get(topic)
            masters = {data.broker_name for data in route.broker_datas if data.master is not None}
            found += [
                PopSource(topic, data.broker_name)
                for data in route.queue_datas
                if data.perm & READ and data.broker_name in masters
            ]
        if not found:
            raise NoRoute(", ".join(self.subscriptions), "no broker may be read")
        self._turn += 1
        first = self._turn % len(found)
        return found[first:] + found[:first]

    async def refresh_routes(self) -> None:
        """Refresh the routes after a broker did not answer."""
        for topic in list(self.subscriptions):
            try:
                await self.instance.routes.refresh(topic)
            except GantryError as error:
                log.info("route of %s: %s", topic, error)

    async def close(self) -> None:
        """Give kept messages back to the brokers, and those of pops that are under way."""
        self._closed = True
        await _give_back(list(self.kept))


async def _give_back(messages: Sequence[Popped]) -> None:
    for message in messages:
        try:
            await message.retry()
        except GantryError as error:
            log.info("%s comes back when its time is over: %s", message.msg_id, error)


class _ReceiveCall:
    """One receive: pop from every source, then wait for the first one that has messages."""

    def __init__(
        self, receiver: Receiver, count: int, deadline: float, attempt: str | None
    ) -> None:
        self._receiver, self._count, self._attempt = receiver, count, attempt
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
                await self._receiver.refresh_routes()
            await asyncio.sleep(min(PAUSE_SECONDS, self._left))
        if self._failures:
            raise self._failures[0]
        return []

    async def _round(self) -> list[Popped]:
        try:
            sources = await self._receiver.sources()
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
            return await self._receiver.pop(source, self._count, wait, self._attempt)
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
            return (
                source if await self._receiver.pops.has_news(source, wait, self._attempt) else None
            )
        except UNAVAILABLE as error:
            self._failures.append(error)
            await asyncio.sleep(min(PAUSE_SECONDS, self._left))
            return None
