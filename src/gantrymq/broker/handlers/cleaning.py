"""Deletion at once of what nobody can read any more."""

import logging

from gantrymq.base.plurals import counted
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.tables.registry import Registry
from gantrymq.model import is_system_topic
from gantrymq.protocol.command import Command, response
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)


class CleaningHandler:
    """Expired queues (306), topics without settings (316) and expired log files (329)."""

    def __init__(self, config: BrokerConfig, store: Store, registry: Registry) -> None:
        self._config, self._store, self._registry = config, store, registry

    async def expired_queues(self, connection: Connection, command: Command) -> Command:
        """CLEAN_EXPIRED_CONSUMEQUEUE (306): let every queue begin where the log begins.

        Files before that are deleted. A queue without a message left keeps its end: RocketMQ
        deletes it, and its next message gets offset 0, which groups have passed long ago.
        """
        await self._store.upkeep.trim_queues()
        return response(command)

    async def unused_topics(self, connection: Connection, command: Command) -> Command:
        """CLEAN_UNUSED_TOPIC (316): delete queues of topics that have no settings.

        Copies are left alone: settings of a new topic reach a slave after its first messages, and a
        raft group deletes queues where the end of their topic stands in its log.
        """
        if self._config.enable_d_leger_commit_log:
            return response(command, remark="a raft group deletes queues together with the topic")
        if self._config.is_slave:
            return response(command, remark="a slave has the topics of its master: clean there")
        known = self._registry.topics.table
        unused = [
            topic
            for topic in self._store.queues.topics()
            if topic not in known and not is_system_topic(topic)
        ]
        for topic in unused:
            self._store.delete_topic(topic)
            log.info("topic %s has no settings: its queues are deleted", topic)
        return response(command, remark=_said("topic", unused) if unused else None)

    async def expired_files(self, connection: Connection, command: Command) -> Command:
        """DELETE_EXPIRED_COMMITLOG (329): delete log files that are over fileReservedTime now.

        At other times than deleteWhen, too; all other rules of retention hold.
        """
        count = await self._store.upkeep.delete_expired()
        return response(command, remark=f"{counted(count, 'log file')} deleted" if count else None)


def _said(what: str, names: list[str]) -> str:
    return f"{counted(len(names), what)} cleaned: {', '.join(names[:10])}"
