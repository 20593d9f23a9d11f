"""Sends dead letters again, each as a new message and only once."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple, TextIO

from gantrymq.base.errors import GantryError
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.messages import message_query
from gantrymq.client.core.errors import ClientError, NoRoute
from gantrymq.client.core.heartbeat import INNER_PRODUCER
from gantrymq.client.core.instance import Instance
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue, retry_topic
from gantrymq.protocol import calls, properties
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.compression import COMPRESSED, TYPE_MASK
from gantrymq.protocol.headers.messages import SendRequestV2

log = logging.getLogger(__name__)

RATE_DEFAULT: Final = 100.0
FAILURES_IN_A_ROW_MAX: Final = 5
"""After so many failures in a row a bulk resend ends: a broker or name server is down."""
STORED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
)

Target = Literal["retry", "topic"]

LEFT_BEHIND = frozenset(
    {
        *properties.FAILURE,
        properties.DELAY,
        properties.REAL_TOPIC,
        properties.REAL_QUEUE,
        properties.WAIT,
        properties.CLUSTER,
        properties.MSG_REGION,
        properties.TRACE_ON,
        properties.DEAD_ORIGIN_TOPIC,
        properties.DEAD_ORIGIN_MESSAGE_ID,
        properties.TRANSACTION_PREPARED,
        properties.PRODUCER_GROUP,
        properties.TIMER_DELIVER_MS,
        properties.TIMER_DELAY_SEC,
        properties.TIMER_DELAY_MS,
        properties.TIMER_OUT_MS,
        properties.TIMER_ROLL_TIMES,
        properties.TIMER_DELETE_UNIQ_KEY,
        properties.POP_CHECKPOINT,
        properties.FIRST_POP_TIME,
    }
)
"""Properties that a resent message does not keep: of delays, redirects, retries and failures."""


class Resent(NamedTuple):
    """The queue and offset at which a resent letter was stored."""

    dead_id: str
    queue: Queue
    offset: int


@dataclass
class ResendSummary:
    """The counts of a bulk resend."""

    resent: int = 0
    skipped: int = 0
    """They had been resent before."""
    failed: dict[str, str] = field(default_factory=dict)
    """Dead id to what went wrong; the same call tries them again."""


class Resender:
    """Sends the dead letters of one group again."""

    def __init__(self, admin: Admin, group: str) -> None:
        self._admin, self._group = admin, group
        self._done: dict[str, None] = {}
        """What this object resent: the broker's index may be a moment behind."""

    @property
    def _instance(self) -> Instance:
        return self._admin.instance

    async def one(
        self,
        message: Received,
        origin: str,
        *,
        to: Target,
        again: bool,
        body: bytes | None = None,
        changes: Mapping[str, str | None] | None = None,
    ) -> Resent | None:
        """Send one letter; returns None when it was resent before."""
        if to not in ("retry", "topic"):
            raise ClientError(f"a letter is resent to `retry` or to its `topic`, not to {to!r}")
        if not origin:
            raise ClientError(f"{message!r} does not tell which topic it came from")
        target = retry_topic(self._group) if to == "retry" else origin
        dead_id = message.offset_msg_id
        if not again and (dead_id in self._done or await self._has_arrived(message, target)):
            return None
        resent = await self._send(message, origin, target, body, changes or {})
        self._done[dead_id] = None
        return resent

    async def _has_arrived(self, message: Received, target: str) -> bool:
        """Whether the target topic has a copy of this letter.

        Retries of the copy have the same RESENT_FROM property, so one is among the newest records.
        """
        if properties.UNIQ_KEY not in message.properties:
            return False
        try:
            found = await message_query.by_key(self._instance, target, message.msg_id, unique=True)
        except NoRoute:
            return False
        dead_id = message.offset_msg_id
        return any(copy.properties.get(properties.RESENT_FROM) == dead_id for copy in found)

    async def _send(
        self,
        message: Received,
        origin: str,
        target: str,
        body: bytes | None,
        changes: Mapping[str, str | None],
    ) -> Resent:
        instance = self._instance
        queue = await self._queue(target, message.queue.broker_name)
        flags = message.sys_flag & (COMPRESSED | TYPE_MASK) if body is None else 0
        header = SendRequestV2(
            producer_group=INNER_PRODUCER,
            topic=target,
            queue_id=queue.queue_id,
            sys_flag=flags,
            born_timestamp=message.born_ms,
            flag=message.flag,
            reconsume_times=0,
            properties=properties.fitted(_new_properties(message, origin, target, changes)),
            unit_mode=False,
            batch=False,
        )
        answer, _ = await instance.call(
            instance.routes.address_of(queue.broker_name),
            calls.SEND_MESSAGE_V2,
            header,
            message.stored_body if body is None else body,
            expect=STORED,
        )
        place = Queue(target, queue.broker_name, answer.queue_id)
        return Resent(message.offset_msg_id, place, answer.queue_offset)

    async def _queue(self, target: str, broker_name: str) -> Queue:
        """A queue of the target, on the letter's own broker if it has one there."""
        instance = self._instance
        try:
            route = await instance.routes.get(target)
        except NoRoute as error:
            raise ClientError(f"{target} does not exist: nothing would read the letter") from error
        queues = instance.routes.publish_queues(route, target)
        if not queues:
            raise ClientError(f"{target} has no queue that may be written to")
        near = [queue for queue in queues if queue.broker_name == broker_name]
        return instance.rng.choice(near or queues)

    async def many(
        self,
        letters: AsyncIterator[tuple[Received, str]],
        *,
        to: Target,
        rate: float,
        progress: Path | None,
        again: bool,
    ) -> ResendSummary:
        """Send letters again, at most `rate` a second."""
        if rate <= 0:
            raise ClientError(f"a rate is above 0, not {rate:g}")
        summary, in_a_row = ResendSummary(), 0
        with _Progress(progress) as noted:
            async for message, origin in letters:
                dead_id = message.offset_msg_id
                if not again and dead_id in noted.known:
                    summary.skipped += 1
                    continue
                try:
                    resent = await self.one(message, origin, to=to, again=again)
                except GantryError as error:
                    log.warning("%r not resent: %s", message, error)
                    summary.failed[dead_id] = str(error)
                    in_a_row += 1
                    if in_a_row >= FAILURES_IN_A_ROW_MAX:
                        raise ClientError(
                            f"{in_a_row} letters in a row were not resent, {summary.resent} were: "
                            f"{error}"
                        ) from error
                    continue
                in_a_row = 0
                noted.note(dead_id)
                if resent is None:
                    summary.skipped += 1
                else:
                    summary.resent += 1
                    await asyncio.sleep(1 / rate)
        return summary


def _new_properties(
    message: Received, origin: str, target: str, changes: Mapping[str, str | None]
) -> dict[str, str]:
    """The properties of the new message: the user's, the ids, and where it comes from."""
    changed = {**message.properties, **changes}
    found = {name: text for name, text in changed.items() if text and name not in LEFT_BEHIND}
    if target == origin:
        for name in (properties.RETRY_TOPIC, properties.ORIGIN_MESSAGE_ID):
            found.pop(name, None)
    else:
        found[properties.RETRY_TOPIC] = origin
    found[properties.RESENT_FROM] = message.offset_msg_id
    return found


class _Progress:
    """A file with the dead id of every letter that was resent; without a path it is empty."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        self.known: frozenset[str] = frozenset()

    def __enter__(self) -> "_Progress":
        if self._path is not None:
            try:
                text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
                self.known = frozenset(text.split())
                self._file = self._path.open("a", encoding="utf-8")
                if text and not text.endswith("\n"):
                    self._file.write("\n")  # the last line was cut off: begin a new one
            except (OSError, ValueError) as error:
                raise ClientError(f"progress file {self._path}: {error}") from error
        return self

    def note(self, dead_id: str) -> None:
        if self._file is not None:
            self._file.write(f"{dead_id}\n")
            self._file.flush()

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
