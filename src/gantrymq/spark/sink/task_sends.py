"""Where a task's sends go: into the stage of an epoch, or straight to their topics.

Several sends are under way at once, each retried until a broker has stored it.
"""

import asyncio
from collections.abc import Awaitable, Callable

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.core.errors import BrokerRefused, ClientError, NoRoute
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.routes import publish_queues
from gantrymq.client.produce.publishing import BUSY, MENDABLE, STORED, Publisher
from gantrymq.model import Queue
from gantrymq.protocol import batch, calls
from gantrymq.protocol.headers.messages import SendRequestV2
from gantrymq.protocol.publishing import Share, Stretch
from gantrymq.spark.options.sink_options import SinkOptions
from gantrymq.spark.sink.encode import SendBatch

PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX = 0.05, 2.0


class SendSlots:
    """At most `width` sends at once; the first that fails for good ends the task."""

    def __init__(self, width: int) -> None:
        self._width = asyncio.Semaphore(width)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    async def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait until fewer than `width` sends are under way, then start one."""
        await self._width.acquire()
        self._check()

        async def run() -> None:
            try:
                await work()
            except Exception as error:
                self._failure = self._failure or error
            finally:
                self._width.release()

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait until every send is known to be stored."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure


class EpochStage:
    """Sends into the stage topic; keeps the place of each, in the order of the rows."""

    def __init__(self, publisher: Publisher, options: SinkOptions) -> None:
        self._publisher, self._timeout = publisher, options.send_timeout_ms / 1000
        self._places: list[tuple[str, list[Stretch | None]]] = []

    def take(
        self, queue: Queue, messages: SendBatch, *, timed: bool, free: bool
    ) -> Callable[[], Awaitable[None]]:
        place: list[Stretch | None] = [None]
        self._places.append((queue.broker_name, place))

        async def send() -> None:
            place[0] = await self._publisher.stage(
                queue, bytes(messages.body), messages.count, messages.last_id, timeout=self._timeout
            )

        return send

    @property
    def shares(self) -> dict[str, Share]:
        """The staged stretches, by broker."""
        found: dict[str, Share] = {}
        for broker, (stretch,) in self._places:
            assert stretch is not None, "all sends were awaited"
            found.setdefault(broker, []).append(stretch)
        return found


class DirectSends:
    """Sends straight into topics: at least once, because a send without an answer is repeated.

    Messages that must go to one queue are sent there one after the other: otherwise a send that is
    retried would be stored behind later ones.
    """

    def __init__(self, instance: Instance, options: SinkOptions) -> None:
        self._instance, self._options = instance, options
        self._turns: dict[Queue, asyncio.Lock] = {}
        self._broken: set[Queue] = set()
        """Queues where a send failed for good: the task fails, and nothing may follow."""

    def take(
        self, queue: Queue, messages: SendBatch, *, timed: bool, free: bool
    ) -> Callable[[], Awaitable[None]]:
        async def send() -> None:
            if free:
                await pieces()
                return
            async with self._turns.setdefault(queue, asyncio.Lock()):
                if queue not in self._broken:
                    self._broken.add(queue)
                    await pieces()
                    self._broken.remove(queue)

        async def pieces() -> None:
            if timed:
                for item in batch.decode(bytes(messages.body)):
                    await self._try(queue, item, item.body, free=free)
            else:
                await self._try(queue, None, bytes(messages.body), free=free)

        return send

    async def _try(self, queue: Queue, item: batch.Item | None, body: bytes, *, free: bool) -> None:
        pause, tries = PAUSE_SECONDS_FIRST, 0
        while True:
            try:
                await self._send(queue, item, body)
                return
            except GantryError as error:
                busy = isinstance(error, BrokerRefused) and error.code in BUSY
                tries += 1
                if not (busy or isinstance(error, MENDABLE)):
                    raise
                if tries > self._options.retries:
                    raise ClientError(
                        f"{queue} cannot be written to after "
                        f"{counted(tries, 'try', 'tries')}: {error}"
                    ) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
            if free:
                queue = await self._elsewhere(queue)

    async def _send(self, queue: Queue, item: batch.Item | None, body: bytes) -> None:
        """Send a batch, or one message alone if `item` is given: batches cannot carry delays."""
        header = SendRequestV2(
            producer_group=self._options.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            born_timestamp=self._instance.clock.now_ms(),
            flag=item.flag if item else 0,
            properties=item.properties.decode() if item else "",
            reconsume_times=0,
            unit_mode=False,
            batch=item is None,
            bname=queue.broker_name,
        )
        await self._instance.routes.get(queue.topic)
        await self._instance.call(
            self._instance.routes.address_of(queue.broker_name),
            calls.SEND_BATCH_MESSAGE if item is None else calls.SEND_MESSAGE_V2,
            header,
            body,
            timeout=self._options.send_timeout_ms / 1000,
            expect=STORED,
        )

    async def _elsewhere(self, queue: Queue) -> Queue:
        """A queue of the topic on another broker; the same queue if there is none."""
        try:
            route = await self._instance.routes.refresh(queue.topic)
        except (NoRoute, *MENDABLE):
            return queue
        queues = publish_queues(route, queue.topic)
        others = [each for each in queues if each.broker_name != queue.broker_name]
        return others[queue.queue_id % len(others)] if others else queue
