"""The parts of publishing: the table of writers, the journal of notes, and the publisher."""

import logging
from dataclasses import dataclass

from gantrymq.broker.handlers.publishing import PublishHandler
from gantrymq.broker.parts.feature import Feature
from gantrymq.broker.parts.shared import Shared
from gantrymq.broker.publishing.journal import SAVE_SECONDS, NoteJournal
from gantrymq.broker.publishing.publisher import EpochPublisher
from gantrymq.broker.publishing.writer_table import WriterTable
from gantrymq.broker.tables.registry import Topics
from gantrymq.broker.waiting.redirect import SystemTopicRedirect
from gantrymq.model import PUBLISH_TOPIC, READ, STAGE_TOPIC, WRITE, TopicConfig
from gantrymq.protocol.publishing import STAGE_QUEUES

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PublishingParts:
    handler: PublishHandler
    feature: Feature


def own_topics() -> list[TopicConfig]:
    """The stage topic, which no client may read, and the topic of notes, which none may write."""
    return [
        TopicConfig(topic_name=name, perm=perm, read_queue_nums=queues, write_queue_nums=queues)
        for name, perm, queues in ((STAGE_TOPIC, WRITE, STAGE_QUEUES), (PUBLISH_TOPIC, READ, 1))
    ]


def build_publishing(shared: Shared, redirect: SystemTopicRedirect) -> PublishingParts:
    config, store, ports = shared.config, shared.store, shared.ports
    writers, topics = WriterTable(), shared.registry.topics
    journal = NoteJournal(
        store,
        writers,
        disk=ports.disk,
        offload=ports.offload,
        clock=ports.clock,
        host=shared.host,
        path=f"{config.store_path_root_dir}/config/publishing.json",
    )
    limits = store.config

    def is_disk_full() -> bool:
        ratio = ports.disk.used_ratio(limits.commit_log_directory)
        return ratio >= limits.disk_force_ratio and not limits.judge_by_free_bytes

    publisher = EpochPublisher(
        store,
        topics,
        writers,
        journal,
        redirect,
        shared.stats,
        clock=ports.clock,
        is_disk_full=is_disk_full,
    )
    handler = PublishHandler(config, store, shared.registry, writers, journal, publisher)
    feature = Feature(
        opening=(lambda: _open(topics, journal, publisher),),
        saves=((SAVE_SECONDS, journal.save),),
        closing=(lambda: _close(journal, publisher),),
        before_delete=(publisher.may_delete,),
    )
    return PublishingParts(handler, feature)


async def _open(topics: Topics, journal: NoteJournal, publisher: EpochPublisher) -> None:
    """Create the topics and recover the epochs from the log, before the ports open."""
    for topic in own_topics():
        known = topics.get(topic.topic_name)
        if known is None or known.perm != topic.perm:
            topics.put(topic.topic_name, topic)
    await journal.recover()
    await publisher.recover()


async def _close(journal: NoteJournal, publisher: EpochPublisher) -> None:
    await publisher.close()
    try:
        await journal.save()
    except OSError as error:
        log.warning("the table of writers is not saved: %s; the next start reads more", error)
