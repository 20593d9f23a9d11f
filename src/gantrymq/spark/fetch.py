"""What the driver and the workers ask of brokers, as blocking calls.

Spark's Python processes are synchronous, so a private event loop turns only while one of these
calls waits. Nothing here joins a group or stores progress: readers leave no trace on the broker.
"""

import asyncio
import struct
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.client.errors import (
    TRANSPORT_ERRORS,
    BrokerRefused,
    BrokerUnknown,
    NoNameServer,
    NoRoute,
)
from gantrymq.client.instance import Instance, shared_instance
from gantrymq.client.options import ClientOptions
from gantrymq.client.pulling import Pulled, PullStatus, pull_raw
from gantrymq.client.queue_offsets import max_offset, min_offset
from gantrymq.client.routes import subscribe_queues
from gantrymq.model import Queue, Route
from gantrymq.protocol.codes import ResponseCode
from gantrymq.spark.plan import Offsets, Range

T = TypeVar("T")

PULL_BYTES_MAX: Final = 4 * 1024 * 1024
BATCH_BYTES: Final = 4 * 1024 * 1024
"""Small pull replies are gathered up to this size: Arrow batches of a few MiB are the quickest."""
PATIENCE_SECONDS: Final = 20.0
"""How long a broker may be away, for instance to restart, before the query fails."""
PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX = 0.05, 2.0

AWAY: Final = (*TRANSPORT_ERRORS, NoNameServer)
"""What another try may mend."""
BUSY_CODES: Final = (ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE)

_QUEUE_OFFSET = struct.Struct(">q")
_AT_QUEUE_OFFSET = 20


class DataLost(GantryError):
    """Messages that were to be read are not there any more."""

    def __init__(self, queue: Queue, start: int, end: int) -> None:
        super().__init__(
            f"queue {queue.queue_id} of topic {queue.topic} on {queue.broker_name} has lost its "
            f"messages {start} to {end - 1}: they expired or the queue was cut. To read what is "
            "left set failOnDataLoss=false"
        )
        self.queue, self.start, self.end = queue, start, end


class Reader:
    """A connection to a cluster. Use it in a `with` block."""

    def __init__(self, namesrv: str, group: str, *, patience: float = PATIENCE_SECONDS) -> None:
        self._options = ClientOptions(namesrv=namesrv)
        self._group, self._patience = group, patience
        self._runner = asyncio.Runner()
        self._instance: Instance | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._instance is not None:
            self._run(self._instance.close())
            self._instance = None
        self._runner.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        # Not `Runner.run`: around its own handler for Ctrl-C it formats the task together with its
        # result, and to write 4 MiB of bytes as text takes longer than to pull them.
        return self._runner.get_loop().run_until_complete(work)

    async def _open(self) -> Instance:
        if self._instance is None:
            instance = shared_instance(self._options)
            await instance.start()
            self._instance = instance
        return self._instance

    def _ask(
        self,
        question: Callable[[Instance], Awaitable[T]],
        mendable: tuple[type[GantryError], ...] = AWAY,
    ) -> T:
        """Run a question, again while the cluster does not answer and patience lasts."""

        async def once() -> T:
            return await question(await self._open())

        give_up, pause = time.monotonic() + self._patience, PAUSE_SECONDS_FIRST
        while True:
            try:
                return self._run(once())
            except GantryError as error:
                busy = isinstance(error, BrokerRefused) and error.code in BUSY_CODES
                late = time.monotonic() + pause > give_up
                if late or not (busy or isinstance(error, mendable)):
                    raise
            time.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    # the driver

    def bounds(self, topics: Sequence[str]) -> tuple[Offsets, Offsets]:
        """The first and the next offset of every queue that may be read."""

        async def find(instance: Instance) -> tuple[Offsets, Offsets]:
            routes = [await _fresh_route(instance, topic) for topic in topics]
            queues = [
                queue
                for topic, route in zip(topics, routes, strict=True)
                for queue in subscribe_queues(route, topic)
            ]
            lows = await asyncio.gather(*(min_offset(instance, queue) for queue in queues))
            highs = await asyncio.gather(*(max_offset(instance, queue) for queue in queues))
            floor = [max(0, low) for low in lows]  # a queue nobody wrote to answers -1
            return dict(zip(queues, floor, strict=True)), dict(zip(queues, highs, strict=True))

        return self._ask(find)

    # the workers

    def replies(self, wanted: Range, count_max: int, *, strict: bool) -> Iterator[bytes]:
        """The records of a range as the broker sends them, reply by reply.

        With `strict` a message that is not there any more is an error; without, it is left out.
        """
        at, skips = wanted.start, wanted.is_new or not strict
        while at < wanted.end:
            found = self._pull(wanted.queue, at, min(count_max, wanted.end - at))
            first = _first_offset(found)
            if first > at and not skips:
                raise DataLost(wanted.queue, at, min(first, wanted.end))
            if found.status is PullStatus.FOUND:
                yield found.body
                skips = not strict
            elif found.next_offset <= at:
                if strict:
                    raise DataLost(wanted.queue, at, wanted.end)
                return  # the queue ends here now: what was behind is gone
            at = found.next_offset

    def _pull(self, queue: Queue, at: int, count: int) -> Pulled:
        return self._ask(
            lambda instance: pull_raw(
                instance, self._group, queue, at, max_count=count, max_bytes=PULL_BYTES_MAX
            ),
            # The queue is known to exist, so a route without it only means that its broker is away.
            (*AWAY, NoRoute, BrokerUnknown),
        )


async def _fresh_route(instance: Instance, topic: str) -> Route:
    """The route of now; the one known before while its brokers or the name server are away."""
    try:
        return await instance.routes.refresh(topic)
    except (NoRoute, NoNameServer):
        known = instance.routes.cached(topic)
        if known is None:
            raise
        return known


def _first_offset(found: Pulled) -> int:
    """The queue offset of the first record, or where the broker says reading goes on."""
    if found.status is PullStatus.FOUND:
        return int(_QUEUE_OFFSET.unpack_from(found.body, _AT_QUEUE_OFFSET)[0])
    return found.next_offset


def gathered(replies: Iterator[bytes], size: int = BATCH_BYTES) -> Iterator[bytes]:
    """Join replies until they have about `size` bytes."""
    parts: list[bytes] = []
    total = 0
    for reply in replies:
        parts.append(reply)
        total += len(reply)
        if total >= size:
            yield b"".join(parts)
            parts, total = [], 0
    if parts:
        yield b"".join(parts)
