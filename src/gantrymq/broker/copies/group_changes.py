"""Topics and groups of a raft group: every change goes through the log before it is acknowledged.

The leader writes a record for each change; members apply it where it stands among the messages. So
a new leader has all topics and groups that anybody was told of, and a topic that was deleted and
made again has no old messages on any member. The records are in no queue and in no index.

Tables are copied as a whole besides (`table_copy`), which brings a new member what is older than
its log.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from gantrymq.broker.tables.registry import NotSaved, Registry, SavedTable
from gantrymq.model import GroupConfig, TopicConfig
from gantrymq.protocol.record import TRANSACTION_ROLLBACK, decode_record
from gantrymq.store.append import Append
from gantrymq.store.engine import Store
from gantrymq.store.writing.dispatch import CHANGES_TOPIC

log = logging.getLogger(__name__)


class TopicChange(msgspec.Struct, frozen=True, tag="topic", rename="camel"):
    """A topic was made or changed, or with None deleted."""

    name: str
    config: TopicConfig | None


class GroupChange(msgspec.Struct, frozen=True, tag="group", rename="camel"):
    """The same of a consumer group."""

    name: str
    config: GroupConfig | None


Change = TopicChange | GroupChange


class GroupChanges:
    """Writes changes as the leader, and applies them as any member."""

    def __init__(self, store: Store, registry: Registry, leads: Callable[[], bool]) -> None:
        self._store, self._registry, self._leads = store, registry, leads
        self._is_saved = True

    def begin(self) -> None:
        """Apply the changes of every record that is dispatched from now on."""
        self._store.apply_changes(self._apply)
        self._store.upkeep.checkpointer.before = self.save

    def lead(self) -> None:
        """Write a record for every change of the tables."""
        self._registry.topics.journal = partial(self._write, TopicChange)
        self._registry.groups.journal = partial(self._write, GroupChange)

    def follow(self) -> None:
        """Write no more records."""
        self._registry.topics.journal = self._registry.groups.journal = None

    async def save(self) -> None:
        """Save the tables: the next start applies only records behind the checkpoint."""
        if not self._is_saved:
            self._is_saved = True
            try:
                await self._registry.save()
            except OSError:
                self._is_saved = False
                raise

    def _write(self, kind: type[Change], name: str, config: Any) -> asyncio.Future[None]:
        """Done when the change is committed; NotSaved if that is not known."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.add_done_callback(lambda future: future.exception())  # nobody may be waiting

        def stored(append: Append) -> None:
            if append.status.is_stored:
                done.set_result(None)
            else:
                text = f"{name} may not be changed, the raft group has not agreed: {append.error}"
                done.set_exception(NotSaved(text))

        body = msgspec.json.encode(kind(name, config))
        self._store.put(
            Append(CHANGES_TOPIC.decode(), 0, body, sys_flag=TRANSACTION_ROLLBACK, reply=stored)
        )
        return done

    def _apply(self, record: bytes) -> None:
        change = msgspec.json.decode(decode_record(record).body, type=Change)
        if isinstance(change, TopicChange):
            if change.config is None:
                self._registry.offsets.delete_topic(change.name)
                self._store.delete_topic(change.name)
            self._set(self._registry.topics, change.name, change.config)
        else:
            self._set(self._registry.groups, change.name, change.config)

    def _set(self, table: SavedTable[Any], name: str, config: Any) -> None:
        """The leader's table has the change already, and perhaps a later one."""
        if not self._leads():
            table.apply(name, config)
            self._is_saved = False
