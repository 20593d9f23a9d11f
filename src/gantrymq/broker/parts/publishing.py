"""Publishing, put together: the ledger of epochs, its journal, and the press."""

import logging
from dataclasses import dataclass

from gantrymq.base.clock import WallClock
from gantrymq.base.disk import Disk
from gantrymq.base.offload import Offload
from gantrymq.broker.handlers.publishing import PublishHandler
from gantrymq.broker.publishing.journal import NoteJournal
from gantrymq.broker.publishing.ledger import WriterTable
from gantrymq.broker.publishing.publisher import EpochPublisher
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.tables.registry import Registry, Topics
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.model import PUBLISH_TOPIC, READ, STAGE_TOPIC, WRITE, TopicConfig
from gantrymq.protocol.publishing import STAGE_QUEUES
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Publishing:
    """What the broker's parts list needs of it."""

    handler: PublishHandler
    journal: NoteJournal
    press: EpochPublisher
    topics: Topics

    async def open(self) -> None:
        """The topics, and what the log says about epochs, before anybody can ask."""
        for topic in own_topics():
            known = self.topics.get(topic.topic_name)
            if known is None or known.perm != topic.perm:
                self.topics.put(topic.topic_name, topic)
        await self.journal.recover()
        await self.press.recover()

    async def close(self) -> None:
        await self.press.close()
        try:
            await self.journal.save()
        except OSError as error:
            log.warning("the ledger of epochs is not saved: %s; the next start reads more", error)


def own_topics() -> list[TopicConfig]:
    """Where writers stage, which nobody may read, and the notes, which nobody may write."""
    return [
        TopicConfig(topic_name=name, perm=perm, read_queue_nums=queues, write_queue_nums=queues)
        for name, perm, queues in ((STAGE_TOPIC, WRITE, STAGE_QUEUES), (PUBLISH_TOPIC, READ, 1))
    ]


def publishing(
    config: BrokerConfig,
    store: Store,
    registry: Registry,
    redirect: SystemTopicRedirect,
    stats: BrokerStats,
    *,
    disk: Disk,
    offload: Offload,
    clock: WallClock,
    host: bytes,
) -> Publishing:
    ledger = WriterTable()
    journal = NoteJournal(
        store, ledger, disk=disk, offload=offload, clock=clock, host=host,
        path=f"{config.store_path_root_dir}/config/publishing.json",
    )  # fmt: skip
    limits = store.config

    def is_disk_full() -> bool:
        ratio = disk.used_ratio(limits.commit_log_directory)
        return ratio >= limits.disk_force_ratio and not limits.judge_by_free_bytes

    press = EpochPublisher(
        store, registry.topics, ledger, journal, redirect, stats,
        clock=clock, is_disk_full=is_disk_full,
    )  # fmt: skip
    store.ask_before_delete(press.may_delete)
    handler = PublishHandler(config, store, registry, ledger, journal, press)
    return Publishing(handler, journal, press, registry.topics)
