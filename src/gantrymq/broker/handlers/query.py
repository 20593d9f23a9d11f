"""Finding messages by offset message id and by key."""

from gantrymq.access.accounts import Permission
from gantrymq.access.guard import Require, nothing_required
from gantrymq.broker.errors import BadRequest
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.protocol import calls as c
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.record import decode_record
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store


class QueryHandler:
    """VIEW_MESSAGE_BY_ID and QUERY_MESSAGE."""

    def __init__(self, config: BrokerConfig, store: Store, require: Require) -> None:
        self._config, self._store, self._require = config, store, require

    async def view(self, connection: Connection, command: Command) -> Command:
        """VIEW_MESSAGE_BY_ID (33): the record at a log offset."""
        h = c.VIEW_MESSAGE_BY_ID.request.parse(command.ext)
        record = await self._store.reads.message_at(h.offset)
        if record is None:
            raise BadRequest(f"can not find message by the offset, {h.offset}")
        if self._require is not nothing_required:
            self._require(connection, command, decode_record(record).topic, Permission.SUB)
        return response(command, body=record)

    async def by_key(self, connection: Connection, command: Command) -> Command:
        """QUERY_MESSAGE (12): records of a topic that have a key, within a time range."""
        h = c.QUERY_MESSAGE.request.parse(command.ext)
        wanted = self._config.default_query_max_num if h.unique_key_query else h.max_num
        found = await self._store.reads.query(
            h.topic,
            h.key,
            max(1, min(wanted, self._config.max_msgs_num_batch)),
            h.begin_timestamp,
            h.end_timestamp,
        )
        ext = c.QUERY_MESSAGE.response(
            index_last_update_timestamp=found.last_update_ms if found.records else 0,
            index_last_update_phyoffset=found.last_update_offset,
        ).to_ext()
        if not found.records:
            remark = "can not find message, maybe time range not correct"
            return response(command, ResponseCode.QUERY_NOT_FOUND, ext=ext, remark=remark)
        return response(command, ext=ext, body=b"".join(found.records))
