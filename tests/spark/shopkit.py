"""A shop's messages for reports: traced and untraced, failed, dead, doubled, lost and delayed."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gantrymq import Admin, Consumer, ConsumerOptions, Delivery, Message, Producer, Queue
from gantrymq.model import TRACE_TOPIC
from gantrymq.protocol import properties, trace

FROM_FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
WAIT_SECONDS_MAX = 20.0


@dataclass
class Shop:
    """What was done, for a test to compare with."""

    topic: str
    billing: str
    """Traces; failures die at once."""
    mailing: str
    """Does not trace; has read some queues only, as far as `read` says."""
    sent: list[str] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    read: int = 0
    lost: str = ""
    doubled: str = ""
    delayed: str = ""


async def open_shop(namesrv: str, topic: str, count: int = 40) -> Shop:
    """Send and consume; every fourth order has no price and dies."""
    shop = Shop(topic, f"{topic}-billing", f"{topic}-mailing")
    async with Admin(namesrv) as admin:
        await admin.create_topic(topic, queues=4)
    async with Producer(namesrv, group=f"{topic}-shop", trace=True) as producer:
        for number in range(count):
            body = "" if number % 4 == 3 else str(number)
            order = Message(
                topic, f"price={body}", tags="paid", keys=[f"order-{number}", f"buyer-{number % 3}"]
            )
            shop.sent.append((await producer.send(order)).msg_id)
            if not body:
                shop.dead.add(shop.sent[-1])
        later = await producer.send(Message(topic, "later", delay=3600))
        shop.delayed = later.msg_id
    await consume(namesrv, topic, shop.billing, count, traced=True)
    shop.read = count // 2
    await consume(namesrv, topic, shop.mailing, shop.read, traced=False)
    return shop


async def consume(namesrv: str, topic: str, group: str, count: int, *, traced: bool) -> None:
    """Let a group handle so many messages; what has no price dies at once if it traces."""
    done, enough = 0, asyncio.Event()
    async with Consumer(
        namesrv, group=group, options=FROM_FIRST, trace=traced, max_retries=0
    ) as consumer:

        @consumer.handler
        async def handle(message: Delivery) -> None:
            nonlocal done
            if done >= count:
                await asyncio.sleep(3600)  # in hand when the group goes away
            done += 1
            if done == count:
                enough.set()
            if traced and message.body.endswith(b"="):
                raise ValueError("an order without a price")

        consumer.subscribe(topic)
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            await enough.wait()


class Member:
    """A member of a group that handles whatever it gets, in a thread of its own, until closed."""

    def __init__(
        self, namesrv: str, group: str, topic: str, *, traced: bool, idle: bool = False
    ) -> None:
        self.handled = 0
        self._share = _no_queue if idle else None
        self._joined, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._work(namesrv, group, topic, traced))
        )
        self._thread.start()
        assert self._joined.wait(WAIT_SECONDS_MAX)

    async def _work(self, namesrv: str, group: str, topic: str, traced: bool) -> None:
        self._loop = asyncio.get_running_loop()
        async with Consumer(
            namesrv, group=group, options=FROM_FIRST, trace=traced, strategy=self._share
        ) as consumer:

            @consumer.handler
            async def handle(message: Delivery) -> None:
                self.handled += 1

            consumer.subscribe(topic)
            self._joined.set()
            await self._stop.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(WAIT_SECONDS_MAX)
        assert not self._thread.is_alive()


def _no_queue(mine: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
    return []


async def lose(namesrv: str, shop: Shop) -> None:
    """A producer wrote down that a message was stored, which is nowhere."""
    shop.lost = "C0A80001" * 4
    record = trace.Pub(
        msg_id=shop.lost, at_ms=await _now(namesrv), group="shop", topic=shop.topic, cost_ms=1
    )
    await _send(namesrv, [Message(TRACE_TOPIC, trace.encode(record), keys=[shop.lost])])


async def double(namesrv: str, shop: Shop) -> None:
    """A message is stored once more, with its id, as a producer does that had no answer."""
    shop.doubled = shop.sent[0]
    again = Message(shop.topic, "price=0", properties={properties.UNIQ_KEY: shop.doubled})
    await _send(namesrv, [again])


async def pass_by(namesrv: str, shop: Shop, count: int = 2) -> list[str]:
    """The traced group is moved past messages that it never got."""
    async with Producer(namesrv, group="shop") as producer:
        results = [
            await producer.send(Message(shop.topic, f"unseen {number}")) for number in range(count)
        ]
    async with Admin(namesrv) as admin:
        await admin.reset(shop.billing, shop.topic, "last", force=True)
    return [result.msg_id for result in results]


async def _now(namesrv: str) -> int:
    async with Admin(namesrv) as admin:
        return admin.instance.clock.now_ms()


async def _send(namesrv: str, messages: Iterable[Message]) -> None:
    async with Producer(namesrv, group="shop") as producer:
        for message in messages:
            await producer.send(message)
