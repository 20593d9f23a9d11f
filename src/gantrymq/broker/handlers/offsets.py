"""Offsets: how far a group is, and how far a queue reaches."""

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
    """14, 15 and 29 to 32."""

    def __init__(self, store: Store, registry: Registry, policy: Policy, resets: Resets) -> None:
        self._store, self._policy, self._resets = store, policy, resets
        self._offsets, self._groups = registry.offsets, registry.groups
        self._topics = registry.topics

    def query(self, connection: Connection, command: Command) -> None:
        """A group's progress; a new group on a young queue starts at its first message."""
        h = c.QUERY_CONSUMER_OFFSET.request.parse(command.ext)
        offset = self._offsets.get(h.consumer_group, h.topic, h.queue_id)
        if offset is None or offset < 0:
            first = self._store.min_offset(h.topic, h.queue_id)
            unknown = self._topics.get(h.topic) is None
            if h.set_zero_if_not_found is False or first > 0 or unknown:
                raise NothingFound(
                    "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
                )
            offset = 0
        connection.reply(command, ext={"offset": str(offset)})

    def update(self, connection: Connection, command: Command) -> None:
        """Store a group's progress; of a group or topic nobody knows there is none to store."""
        h = c.UPDATE_CONSUMER_OFFSET.request.parse(command.ext)
        if self._groups.get(h.consumer_group) is None:
            raise GroupMissing(f"Group {h.consumer_group} not exist!")
        self._policy.topic(h.topic)
        taken = self._resets.commit(h.consumer_group, h.topic, h.queue_id, h.commit_offset)
        connection.reply(command, remark=None if taken else "Offset has been previously reset")

    def maximum(self, connection: Connection, command: Command) -> None:
        h = c.GET_MAX_OFFSET.request.parse(command.ext)
        offset = self._store.max_offset(h.topic, h.queue_id)
        connection.reply(command, ext={"offset": str(offset)})

    def minimum(self, connection: Connection, command: Command) -> None:
        h = c.GET_MIN_OFFSET.request.parse(command.ext)
        offset = self._store.min_offset(h.topic, h.queue_id)
        connection.reply(command, ext={"offset": str(offset)})

    async def by_time(self, connection: Connection, command: Command) -> Command:
        h = c.SEARCH_OFFSET_BY_TIMESTAMP.request.parse(command.ext)
        boundary = (h.boundary_type or "LOWER").upper()
        if boundary not in ("LOWER", "UPPER"):
            raise BadRequest(f"boundaryType {h.boundary_type!r} is neither LOWER nor UPPER")
        offset = await self._store.offset_by_time(h.topic, h.queue_id, h.timestamp, boundary)
        return response(command, ext=m.OffsetResponse(offset=offset).to_ext())

    async def earliest(self, connection: Connection, command: Command) -> Command:
        h = c.GET_EARLIEST_MSG_STORETIME.request.parse(command.ext)
        at = await self._store.earliest_store_ms(h.topic, h.queue_id)
        return response(command, ext=m.TimestampResponse(timestamp=at).to_ext())
