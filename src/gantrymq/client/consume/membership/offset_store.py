"""Where a group's progress is kept: on the broker, or in a file beside a broadcasting consumer."""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.client.core.instance import Instance
from gantrymq.model import Queue
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.messages import (
    QueryConsumerOffsetRequest,
    UpdateConsumerOffsetRequest,
)

log = logging.getLogger(__name__)

LOCAL_DIRECTORY = "~/.rocketmq_offsets"
FILE_NAME = "offsets.json"


class OffsetStore(Protocol):
    """Stores the progress of a group, one offset a queue. An own store has these four methods."""

    async def load(self) -> None:
        """Called once, before anything is read."""

    async def read(self, queue: Queue) -> int | None:
        """The stored progress; None when the group never stored any."""

    async def store(self, offsets: dict[Queue, int], *, wait: bool) -> None:
        """Store offsets. With `wait` return when they are stored, or raise; else log a failure."""

    def forget(self, queue: Queue) -> None:
        """Drop what is cached of a queue that this member gave up."""


class RemoteOffsets:
    """Progress on the broker, so that any member of the group can continue."""

    def __init__(self, instance: Instance, group: str, *, skip_young_queues: bool = False) -> None:
        self._instance, self._group = instance, group
        self._set_zero = False if skip_young_queues else None
        self._turn = asyncio.Lock()
        self._stored: dict[Queue, int] = {}
        self._begun: set[tuple[str, str]] = set()

    async def load(self) -> None:
        """Nothing to do: `read` asks the broker for each queue."""

    async def read(self, queue: Queue) -> int | None:
        await self._instance.routes.get(queue.topic)
        found, answer = await self._instance.call(
            self._instance.routes.address_of(queue.broker_name, any_id=True),
            calls.QUERY_CONSUMER_OFFSET,
            QueryConsumerOffsetRequest(
                consumer_group=self._group,
                topic=queue.topic,
                queue_id=queue.queue_id,
                set_zero_if_not_found=self._set_zero,
            ),
            expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        if answer.code == ResponseCode.QUERY_NOT_FOUND or found.offset < 0:
            return None
        return found.offset

    async def store(self, offsets: dict[Queue, int], *, wait: bool) -> None:
        """Commit one set of offsets at a time: a broker may handle two commits of a queue in any
        order, and the older one last would move progress back."""
        async with self._turn:
            await self._store(offsets, wait)

    async def _store(self, offsets: dict[Queue, int], wait: bool) -> None:
        changed = {q: offset for q, offset in offsets.items() if self._stored.get(q) != offset}
        first = self._first_commits(changed)
        await self._store_together(first, wait)
        await self._store_together({q: changed[q] for q in changed if q not in first}, wait)
        # Another member may have begun at the same moment: what was stored beside a first commit
        # is committed once more with the next set.
        begun = {_table(queue) for queue in first}
        self._begun |= begun
        for queue in changed:
            if _table(queue) in begun:
                self._stored.pop(queue, None)

    def _first_commits(self, changed: dict[Queue, int]) -> dict[Queue, int]:
        """One queue of each topic and broker where this member has committed nothing yet.

        RocketMQ (4.9 and 5.3) makes a group's table of a topic at its first commit. Of two that
        come together each makes one, and the offset in the table that was replaced is lost.
        """
        alone = {_table(queue): queue for queue in changed if _table(queue) not in self._begun}
        return {queue: changed[queue] for queue in alone.values()}

    async def _store_together(self, offsets: dict[Queue, int], wait: bool) -> None:
        results = await asyncio.gather(
            *(self._store_one(queue, offset) for queue, offset in offsets.items()),
            return_exceptions=True,
        )
        for (queue, offset), error in zip(offsets.items(), results, strict=True):
            if error is None:
                self._stored[queue] = offset
            elif wait or not isinstance(error, GantryError):
                raise error
            else:
                log.warning("progress of %s in %s not stored: %s", self._group, queue, error)

    async def _store_one(self, queue: Queue, offset: int) -> None:
        instance = self._instance
        header = UpdateConsumerOffsetRequest(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
        )
        await instance.routes.get(queue.topic)
        address = instance.routes.address_of(queue.broker_name, any_id=True)
        try:
            await instance.call(address, calls.UPDATE_CONSUMER_OFFSET, header)
        except BrokerRefused as error:
            if error.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            # The broker learns of a new group by its heartbeat: send one, then commit again.
            await instance.heartbeat_now()
            await instance.call(address, calls.UPDATE_CONSUMER_OFFSET, header)

    def forget(self, queue: Queue) -> None:
        self._stored.pop(queue, None)


def _table(queue: Queue) -> tuple[str, str]:
    """Where a broker keeps the offsets of a group's queues together: by topic, on each broker."""
    return queue.topic, queue.broker_name


class LocalOffsets:
    """Progress of a broadcasting client in a file of RocketMQ's format, with a `.bak` file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[Queue, int] = {}

    @classmethod
    def of(cls, instance: Instance, group: str, directory: str | None = None) -> "LocalOffsets":
        """The file of a group. With the default instance name its path is the same for every
        process, as in RocketMQ, so that a restarted consumer finds its progress again."""
        ip, _, name = instance.client_id.partition("@")
        if instance.options.instance_name == "DEFAULT":
            name = "DEFAULT"
        root = Path(directory or LOCAL_DIRECTORY).expanduser()
        return cls(root / f"{ip}@{name}" / group / FILE_NAME)

    async def load(self) -> None:
        for path in (self._path, Path(f"{self._path}.bak")):
            try:
                self._offsets = parse_offsets(path.read_bytes())
                return
            except FileNotFoundError:
                continue
            except (OSError, ProtocolError) as error:
                log.warning("offsets in %s not usable: %s", path, error)

    async def read(self, queue: Queue) -> int | None:
        return self._offsets.get(queue)

    async def store(self, offsets: dict[Queue, int], *, wait: bool) -> None:
        merged = {**self._offsets, **offsets}
        if merged == self._offsets:
            return
        self._offsets = merged
        try:
            save_with_backup(self._path, format_offsets(merged))
        except OSError as error:
            if wait:
                raise GantryError(f"progress not stored in {self._path}: {error}") from error
            log.warning("progress not stored in %s: %s", self._path, error)

    def forget(self, queue: Queue) -> None:
        """Nothing to do: no other client writes this file."""


def parse_offsets(data: bytes) -> dict[Queue, int]:
    """Parse the table by queue; a key is an object, or its JSON as a string."""
    if not data.strip():
        raise ProtocolError("the file is empty")
    table = fastjson.loads(data)
    rows = table.get("offsetTable") if isinstance(table, dict) else None
    return dict(queue_pairs(rows))


def queue_pairs(rows: Any) -> Iterable[tuple[Queue, int]]:
    """Queue and offset of each row: of an object-keyed map, or of a list of flat rows."""
    try:
        if isinstance(rows, dict):
            for key, offset in rows.items():
                fields = fastjson.loads(key) if isinstance(key, str) else key
                yield _queue(fields), int(offset)
        elif isinstance(rows, list):
            for row in rows:
                yield _queue(row), int(row["offset"])
        elif rows is not None:
            raise ProtocolError(f"a table of queues is an object or a list, not {rows!r}")
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"a table of queues has a bad row: {error!r}") from error


def _queue(fields: Any) -> Queue:
    return Queue(str(fields["topic"]), str(fields["brokerName"]), int(fields["queueId"]))


def format_offsets(offsets: dict[Queue, int]) -> bytes:
    pairs = [(queue_key(queue), offset) for queue, offset in sorted(offsets.items())]
    return fastjson.dump_object_keyed("offsetTable", pairs)


def queue_key(queue: Queue) -> dict[str, Any]:
    """A queue as Java's fastjson writes it: names in alphabetical order."""
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


def save_with_backup(path: Path, data: bytes) -> None:
    """Replace a file in one step, keeping its predecessor as `.bak`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(f"{path}.tmp")
    fresh.write_bytes(data)
    if path.exists():
        Path(f"{path}.bak").write_bytes(path.read_bytes())
    fresh.replace(path)
