"""Ending transactions, and resuming check-backs that the broker gave up."""

import logging
from functools import partial

from gantrymq.access.accounts import Permission
from gantrymq.access.guard import Require
from gantrymq.base.errors import GantryError, ProtocolError
from gantrymq.broker.errors import BadRequest
from gantrymq.broker.handlers.send_answers import CODES
from gantrymq.broker.stored_copies import copy_of, stored
from gantrymq.broker.transactions.half import HALF_QUEUE, with_property
from gantrymq.broker.transactions.half_messages import HalfMessage, HalfMessageTable
from gantrymq.broker.transactions.transaction_end import TransactionEnd
from gantrymq.model import CHECK_MAX_TOPIC, HALF_TOPIC
from gantrymq.protocol import calls as c
from gantrymq.protocol import properties
from gantrymq.protocol.command import ONEWAY_FLAG, Command, response
from gantrymq.protocol.ids import parse_offset_msg_id
from gantrymq.protocol.record import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK, decode_record
from gantrymq.remoting.connection import Connection
from gantrymq.store.append import Append
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

UNKNOWN = 0
VERDICTS = (UNKNOWN, TRANSACTION_COMMIT, TRANSACTION_ROLLBACK)


class TransactionHandler:
    """END_TRANSACTION (37), RESUME_CHECK_HALF_MESSAGE (323) and CHECK_HALF_MESSAGE (40111)."""

    def __init__(
        self,
        store: Store,
        half_messages: HalfMessageTable,
        end: TransactionEnd,
        require: Require,
    ) -> None:
        self._store, self._half_messages, self._end = store, half_messages, end
        self._require = require

    def end(self, connection: Connection, command: Command) -> None:
        """END_TRANSACTION (37): a producer commits or rolls back a half message.

        The request is usually one-way: if it fails, a check-back asks for the decision again.
        """
        verdict, group, physical, offset = _read_end(command.ext)
        if verdict == UNKNOWN:
            connection.reply(command)
            return
        try:
            entry = self._undecided(group, physical, offset)
            self._require(connection, command, entry.topic, Permission.PUB)
        except GantryError as error:
            log.info("end of a transaction from %s refused: %s", connection.address, error)
            raise
        on_end = None if command.flag & ONEWAY_FLAG else partial(_answer, connection, command)
        if verdict == TRANSACTION_COMMIT:
            self._end.commit(entry, physical, on_end)
        else:
            self._end.rollback(entry, on_end)

    def _undecided(self, group: str, physical: int, offset: int) -> HalfMessage:
        """The half message that the request names. Raises if it is not open for a decision."""
        entry = self._half_messages.find(physical)
        if entry is None:
            raise BadRequest(
                f"Find prepared transaction message failed: nothing undecided at {physical}"
            )
        if entry.group != group:
            raise BadRequest("The producer group wrong")
        if not entry.stands_at(physical, offset):
            raise BadRequest("The transaction state table offset wrong")
        if entry.deciding:
            raise BadRequest(f"the transaction at {physical} is being decided already")
        return entry

    async def resume(self, connection: Connection, command: Command) -> Command:
        """RESUME_CHECK_HALF_MESSAGE (323): resume check-backs of a message that was given up."""
        h = c.RESUME_CHECK_HALF_MESSAGE.request.parse(command.ext)
        place = parse_offset_msg_id(h.msg_id or "")
        record = await self._store.reads.message_at(place.offset)
        if record is None:
            raise BadRequest(f"there is no message at {h.msg_id}")
        message = decode_record(record)
        if message.topic != CHECK_MAX_TOPIC:
            raise BadRequest(f"{h.msg_id} is no message of {CHECK_MAX_TOPIC}")
        again = with_property(message.raw_properties, properties.CHECK_TIMES, "0")
        copy = await stored(self._store, copy_of(message, HALF_TOPIC, HALF_QUEUE, again))
        if not copy.status.is_stored:
            raise BadRequest(f"{copy.status.name}: {copy.error}")
        found = message.properties
        queue = found.get(properties.REAL_QUEUE, "0")
        self._half_messages.hold(
            copy,
            found.get(properties.REAL_TOPIC, ""),
            int(queue) if queue.isdigit() else 0,
            found.get(properties.PRODUCER_GROUP, ""),
        )
        return response(command)

    async def check(self, connection: Connection, command: Command) -> Command:
        """CHECK_HALF_MESSAGE (40111): check back now, and count the checks anew."""
        h = c.CHECK_HALF_MESSAGE.request.parse(command.ext)
        entry = self._half_messages.find(parse_offset_msg_id(h.msg_id).offset)
        if entry is None or entry.deciding or entry.topic != h.topic:
            raise BadRequest(f"{h.msg_id} is no half message for {h.topic} without a decision")
        self._half_messages.check_now(entry)
        return response(command)


def _read_end(ext: dict[str, str]) -> tuple[int, str, int, int]:
    """Verdict, group, log offset and queue offset; parsed by hand because the request is hot."""
    try:
        verdict, group = int(ext["commitOrRollback"]), ext["producerGroup"]
        physical, offset = int(ext["commitLogOffset"]), int(ext["tranStateTableOffset"])
    except (KeyError, ValueError) as error:
        raise ProtocolError(f"END_TRANSACTION: a field is missing or no number: {error}") from error
    if verdict not in VERDICTS:
        raise BadRequest(f"commitOrRollback is 0, 8 or 12, not {verdict}")
    return verdict, group, physical, offset


def _answer(connection: Connection, command: Command, append: Append) -> None:
    if append.status.is_stored:
        connection.reply(command)
    else:
        connection.reply(command, CODES[append.status], remark=append.error or append.status.name)
