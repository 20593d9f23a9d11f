"""Offsets: the progress of groups, and the first and last offset of queues."""

from gantrymq.broker.errors import BadRequest, GroupMissing, NothingFound
from gantrymq.broker.policy import Policy
from gantrymq.broker.tables.offset_resets import Resets
from gantrymq.broker.tables.registry import Registry
from gantrymq.protocol import calls as c
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.headers import messages as m
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store


class OffsetHandler:
    """QUERY_CONSUMER_OFFSET (14), UPDATE_CONSUMER_OFFSET (15), offsets of queues (29 to 32)."""

    def __init__(self, store: Store, registry: Registry, policy: Policy, resets: Resets) -> None:
        self._store, self._policy, self._resets = store, policy, resets
        self._offsets, self._groups = registry.offsets, registry.groups
        self._topics = registry.topics

    def query(self, connection: Connection, command: Command) -> None:
        """QUERY_CONSUMER_OFFSET (14): the progress of a group in a queue.

        Without progress the answer is 0 if the topic exists and the queue still has its first
        message, unless the request forbids it; otherwise QUERY_NOT_FOUND.
        """
        h = c.QUERY_CONSUMER_OFFSET.request.parse(command.ext)
        offset = self._offsets.get(h.consumer_group, h.topic, h.queue_id)
        if offset is None or offset < 0:
            first = self._store.queues.min_offset(h.topic, h.queue_id)
            unknown = self._topics.get(h.topic) is None
            if h.set_zero_if_not_found is False or first > 0 or unknown:
                raise NothingFound(
                    "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
                )
            offset = 0
        connection.reply(command, ext={"offset": str(offset)})

    def update(self, connection: Connection, command: Command) -> None:
        """UPDATE_CONSUMER_OFFSET (15): store progress. The group and the topic must exist."""
        h = c.UPDATE_CONSUMER_OFFSET.request.parse(command.ext)
        if self._groups.get(h.consumer_group) is None:
            raise GroupMissing(f"Group {h.consumer_group} not exist!")
        self._policy.topic(h.topic)
        taken = self._resets.commit(h.consumer_group, h.topic, h.queue_id, h.commit_offset)
        connection.reply(command, remark=None if taken else "Offset has been previously reset")

    def maximum(self, connection: Connection, command: Command) -> None:
        """GET_MAX_OFFSET (30): the offset that the next message of a queue will get."""
        h = c.GET_MAX_OFFSET.request.parse(command.ext)
        offset = self._store.queues.max_offset(h.topic, h.queue_id)
        connection.reply(command, ext={"offset": str(offset)})

    def minimum(self, connection: Connection, command: Command) -> None:
        """GET_MIN_OFFSET (31): the first offset that a queue still has."""
        h = c.GET_MIN_OFFSET.request.parse(command.ext)
        offset = self._store.queues.min_offset(h.topic, h.queue_id)
        connection.reply(command, ext={"offset": str(offset)})

    async def by_time(self, connection: Connection, command: Command) -> Command:
        """SEARCH_OFFSET_BY_TIMESTAMP (29): the offset of a store time (ms) in a queue."""
        h = c.SEARCH_OFFSET_BY_TIMESTAMP.request.parse(command.ext)
        boundary = (h.boundary_type or "LOWER").upper()
        if boundary not in ("LOWER", "UPPER"):
            raise BadRequest(f"boundaryType {h.boundary_type!r} is neither LOWER nor UPPER")
        offset = await self._store.reads.offset_by_time(h.topic, h.queue_id, h.timestamp, boundary)
        return response(command, ext=m.OffsetResponse(offset=offset).to_ext())

    async def earliest(self, connection: Connection, command: Command) -> Command:
        """GET_EARLIEST_MSG_STORETIME (32): the store time (ms) of a queue's first message."""
        h = c.GET_EARLIEST_MSG_STORETIME.request.parse(command.ext)
        at = await self._store.reads.earliest_store_ms(h.topic, h.queue_id)
        return response(command, ext=m.TimestampResponse(timestamp=at).to_ext())
