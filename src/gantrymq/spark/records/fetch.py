"""What the driver and the workers ask of brokers, as blocking calls.

Spark's Python processes are synchronous, so a private event loop turns only while one of these
calls waits. One request is always ahead: while Python decodes a reply, the next one arrives in
the operating system's buffers.

What always holds:

- Nothing here joins a group: readers leave no trace on the broker, and no rebalance is caused.
- A range is read from its first offset to its last without a hole, or an error says what is
  missing. That messages are gone only a master can tell: a slave may lag behind.
- A broker that is away is waited for as long as the option `patience` says; a task that Spark
  repeats reads the same range again.
"""

import asyncio
import os
import struct
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gantrymq.base.clock import elapsed_seconds
from gantrymq.base.errors import GantryError
from gantrymq.client.consume.queues.pull_request import PullAnswer, PullStatus, pull_raw
from gantrymq.client.core.errors import (
    TRANSPORT_ERRORS,
    BrokerRefused,
    BrokerUnknown,
    NoNameServer,
    NoRoute,
)
from gantrymq.client.core.instance import Instance, shared_instance
from gantrymq.model import Queue, Subscription
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.protocol.codes import ResponseCode
from gantrymq.spark.client import client_options
from gantrymq.spark.closeable import Closeable
from gantrymq.spark.options.client_security import UNSECURED, ClientSecurity

T = TypeVar("T")

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Small pull replies are gathered up to this size: Arrow batches of a few MiB are the quickest."""
PATIENCE_SECONDS: Final = 120.0
"""How long a broker may be away, for instance to restart, before the query fails."""
FIRST_SECONDS_MAX: Final = 3.0
"""Patience until the cluster has answered once: an address may be misspelt."""
PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX = 0.05, 2.0
IDLE_READERS_MAX: Final = 4
"""Connections that a worker keeps for the tasks that it will be given next."""

AWAY: Final = (*TRANSPORT_ERRORS, NoNameServer)
"""What another try may mend."""
BROKER_AWAY: Final = (*AWAY, NoRoute, BrokerUnknown)
"""The same where a queue is known to exist: a route without it means that its broker is away."""
BUSY_CODES: Final = (ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE)

_QUEUE_OFFSET = struct.Struct(">q")
_AT_QUEUE_OFFSET = 20


class DataLost(GantryError):
    """Messages that were to be read no longer exist."""

    def __init__(self, queue: Queue, start: int, end: int) -> None:
        super().__init__(
            f"queue {queue.queue_id} of topic {queue.topic} on {queue.broker_name} has lost its "
            f"messages {start} to {end - 1}: they expired or the queue was cut. To read what is "
            "left set failOnDataLoss=false"
        )
        self.queue, self.start, self.end = queue, start, end


class QueueCut(GantryError):
    """A queue ends before the offset up to which it was already read."""

    def __init__(self, queue: Queue, start: int, end: int) -> None:
        super().__init__(
            f"{queue.text} ends at {end}, but was read up to {start} already: its topic was made "
            "anew or its broker lost messages. To go on with what is there set failOnDataLoss=false"
        )


Lost = Callable[[Queue, int, int], None]
"""Told of messages from an offset up to another that are gone; raises, or lets them go."""


def fail(queue: Queue, start: int, end: int) -> None:
    """Raise DataLost."""
    raise DataLost(queue, start, end)


def skip(_queue: Queue, _start: int, _end: int) -> None:
    """Ignore the loss and read on."""


@dataclass(frozen=True, slots=True)
class Pull:
    """What a pull request asks for; `timeout` in seconds, None for no filter."""

    count: int = 4096
    size: int = 4 * 1024 * 1024
    timeout: float = 10.0
    tags: str | None = None
    sql: str | None = None

    @property
    def is_filtered(self) -> bool:
        return self.tags is not None or self.sql is not None

    def subscription(self, topic: str) -> Subscription | None:
        """The filter that the broker applies; None for all messages."""
        if self.sql is not None:
            return Subscription(topic=topic, sub_string=self.sql, expression_type="SQL92")
        return None if self.tags is None else Subscription(topic=topic, sub_string=self.tags)


def retry_patiently(
    work: Callable[[], T], mendable: tuple[type[GantryError], ...], patience: float
) -> T:
    """Call `work`, again after an error that another try may mend, for `patience` seconds."""
    give_up, pause = elapsed_seconds() + patience, PAUSE_SECONDS_FIRST
    while True:
        try:
            return work()
        except GantryError as error:
            busy = isinstance(error, BrokerRefused) and error.code in BUSY_CODES
            late = elapsed_seconds() + pause > give_up
            if late or not (busy or isinstance(error, mendable)):
                raise
        time.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)


class Reader(Closeable):
    """A connection to a cluster. Use it in a `with` block."""

    def __init__(
        self,
        namesrv: str,
        group: str,
        *,
        patience: float = PATIENCE_SECONDS,
        security: ClientSecurity = UNSECURED,
    ) -> None:
        self._options = client_options(namesrv, security)
        self.group, self.patience = group, patience
        self._runner = asyncio.Runner()
        self._instance: Instance | None = None
        self._has_answered = False

    def close(self) -> None:
        if self._instance is not None:
            self._run(self._instance.close())
            self._instance = None
        self._runner.close()

    def _run(self, work: Coroutine[Any, Any, T] | asyncio.Task[T]) -> T:
        # Not `Runner.run`: around its own handler for Ctrl-C it formats the task together with its
        # result, and to write 4 MiB of bytes as text takes longer than to pull them.
        return self._runner.get_loop().run_until_complete(work)

    async def _open(self) -> Instance:
        if self._instance is None:
            instance = shared_instance(self._options)
            await instance.start()
            self._instance = instance
        return self._instance

    def ask(
        self,
        question: Callable[[Instance], Awaitable[T]],
        mendable: tuple[type[GantryError], ...] = AWAY,
        begun: "asyncio.Task[T] | None" = None,
    ) -> T:
        """Run a question, again while the cluster does not answer, for `patience` seconds.

        `begun` is a first try that is already under way.
        """
        tries = [begun] if begun is not None else []

        async def once() -> T:
            return await question(await self._open())

        def work() -> T:
            return self._run(tries.pop() if tries else once())

        # A caller that asks about a queue has seen it; an address that never answered may be wrong.
        is_known = self._has_answered or mendable is BROKER_AWAY
        patience = self.patience if is_known else min(self.patience, FIRST_SECONDS_MAX)
        answer = retry_patiently(work, mendable, patience)
        self._has_answered = True
        return answer

    # messages

    def replies(
        self, wanted: OffsetRange, pull: Pull | None = None, lost: Lost = fail
    ) -> Iterator[bytes]:
        """The records of a range as the broker sends them, reply by reply.

        The next request is under way while the caller works on a reply. With a filter the last
        reply may hold records beyond the end of the range.
        """
        how, at = pull or Pull(), wanted.start
        excused = wanted.is_new
        ahead: asyncio.Task[PullAnswer] | None = None
        try:
            while at < wanted.end:
                found = self._pull(wanted, at, how, ahead)
                first = _first_there(found, at, how)
                if first > at and not excused:
                    lost(wanted.queue, at, min(first, wanted.end))
                excused = excused and found.status is not PullStatus.FOUND
                if found.status is not PullStatus.FOUND and found.next_offset <= at:
                    lost(wanted.queue, at, wanted.end)
                    return  # the queue ends here now: later messages are gone
                at = found.next_offset
                ahead = self._pull_ahead(wanted, at, how) if at < wanted.end else None
                if found.status is PullStatus.FOUND:
                    yield found.body
        finally:
            if ahead is not None:
                ahead.cancel()

    def _pull(
        self, wanted: OffsetRange, at: int, how: Pull, ahead: asyncio.Task[PullAnswer] | None
    ) -> PullAnswer:
        return self.ask(
            lambda instance: self._question(instance, wanted, at, how), BROKER_AWAY, ahead
        )

    async def _question(
        self, instance: Instance, wanted: OffsetRange, at: int, how: Pull
    ) -> PullAnswer:
        """Pull once. Only a master proves that messages are gone: a slave may lag behind."""
        queue = wanted.queue
        await instance.routes.get(queue.topic)
        is_master = instance.routes.has_master(queue.broker_name)
        found = await pull_raw(
            instance,
            self.group,
            queue,
            at,
            max_count=min(how.count, wanted.end - at),
            max_bytes=how.size,
            timeout=how.timeout,
            subscription=how.subscription(queue.topic),
        )
        has_passed = found.status is PullStatus.NO_MATCH and found.next_offset > at
        if not (is_master or has_passed or found.status is PullStatus.FOUND):
            raise BrokerUnknown(
                f"broker {queue.broker_name} has no master now, and its slave has no message {at} "
                f"of {queue.text}: try again when the master is back"
            )
        return found

    def _pull_ahead(self, wanted: OffsetRange, at: int, how: Pull) -> asyncio.Task[PullAnswer]:
        """Send the next request; its reply arrives in the operating system's buffers."""
        assert self._instance is not None
        task = self._runner.get_loop().create_task(self._question(self._instance, wanted, at, how))
        task.add_done_callback(_heard)
        self._run(asyncio.sleep(0))
        return task


def _heard(task: "asyncio.Task[PullAnswer]") -> None:
    """Read the error of a pull that is no longer awaited, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


def _first_there(found: PullAnswer, at: int, how: Pull) -> int:
    """The first offset from `at` on that the queue still had.

    With a filter the offset of the first record does not show it; the broker's own minimum does.
    """
    if found.status is PullStatus.OFFSET_MOVED:
        return found.next_offset
    if how.is_filtered:
        return max(at, found.min_offset)
    if found.status is PullStatus.FOUND:
        return int(_QUEUE_OFFSET.unpack_from(found.body, _AT_QUEUE_OFFSET)[0])
    return found.next_offset


def gather_records(replies: Iterator[bytes], size: int = BATCH_BYTES) -> Iterator[bytes]:
    """Join replies until they have at least half of `size` bytes."""
    parts: list[bytes] = []
    total = 0
    for reply in replies:
        parts.append(reply)
        total += len(reply)
        if total >= size // 2:
            yield b"".join(parts)
            parts, total = [], 0
    if parts:
        yield b"".join(parts)


# connections that outlive a task

_Key = tuple[int, str, str, ClientSecurity]
_idle: dict[_Key, Reader] = {}
"""By process, cluster, group and who it is: what was made before a fork is not the child's."""


@contextmanager
def borrow_reader(
    namesrv: str, group: str, patience: float, security: ClientSecurity
) -> Iterator[Reader]:
    """A reader that is kept for the next task of this process: workers outlive tasks."""
    key = (os.getpid(), namesrv, group, security)
    reader = _idle.pop(key, None) or Reader(namesrv, group, security=security)
    reader.patience = patience
    try:
        yield reader
    except BaseException:
        reader.close()
        raise
    _give_back(key, reader)


def _give_back(key: _Key, reader: Reader) -> None:
    spare = [_idle.pop(key, None)]
    _idle[key] = reader
    while len(_idle) > IDLE_READERS_MAX:
        spare.append(_idle.pop(next(iter(_idle))))
    for old in spare:
        if old is not None:
            old.close()
