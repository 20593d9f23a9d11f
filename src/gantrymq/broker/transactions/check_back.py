"""The check-back: asks a producer what became of a half message."""

import logging
import random

from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.transactions.half import with_property
from gantrymq.broker.transactions.half_messages import HalfMessage
from gantrymq.kernel import encode_records, find_property
from gantrymq.protocol import properties
from gantrymq.protocol.calls import CHECK_TRANSACTION_STATE
from gantrymq.protocol.command import Command
from gantrymq.protocol.ids import offset_msg_id
from gantrymq.store.append import Append

log = logging.getLogger(__name__)


class CheckBack:
    """Sends check-backs; producers answer with END_TRANSACTION (37)."""

    def __init__(self, sessions: Sessions, rng: random.Random, store_host: bytes) -> None:
        self._sessions, self._rng, self._store_host = sessions, rng, store_host

    def ask(self, entry: HalfMessage, copy: Append) -> None:
        """Send CHECK_TRANSACTION_STATE (39) to any connected producer of the group."""
        live = [one for one in self._sessions.producers.get(entry.group, {}) if one.open]
        if not live:
            log.warning("no producer of %s is there to be asked", entry.group)
            return
        unique = find_property(copy.properties, properties.UNIQ_KEY.encode())
        msg_id = unique.decode("utf-8", "replace") if unique is not None else None
        record, _ = encode_records(
            [
                (
                    entry.topic.encode(),
                    entry.queue_id,
                    entry.offset,
                    copy.flag,
                    copy.sys_flag,
                    copy.born_ms,
                    copy.born_host,
                    copy.reconsume_times,
                    0,
                    copy.body,
                    with_property(copy.properties, properties.WAIT, "false"),
                )
            ],
            entry.physical,
            copy.store_ms,
            self._store_host,
        )
        header = CHECK_TRANSACTION_STATE.request(
            tran_state_table_offset=entry.offset,
            commit_log_offset=entry.physical,
            msg_id=msg_id,
            transaction_id=msg_id,
            offset_msg_id=offset_msg_id(self._store_host, entry.physical),
        )
        self._rng.choice(live).oneway(
            Command(code=CHECK_TRANSACTION_STATE.code, ext=header.to_ext(), body=record)
        )
