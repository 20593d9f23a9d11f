"""Which topics and groups clients may use, and how topics and groups are created."""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

import msgspec

from gantrymq.base.background import Background
from gantrymq.base.plurals import counted
from gantrymq.broker.announce import Announcer
from gantrymq.broker.errors import BadRequest, GroupMissing, NotPermitted, TopicMissing
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.tables.registry import Registry
from gantrymq.model import (
    BENCHMARK_TOPIC,
    DEAD_PREFIX,
    HALF_TOPIC,
    INHERIT,
    OFFSET_MOVED_TOPIC,
    OP_HALF_TOPIC,
    READ,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    TEMPLATE_TOPIC,
    TIMER_TOPIC,
    UNSENDABLE_TOPICS,
    WRITE,
    GroupConfig,
    NameRefused,
    Queue,
    TopicConfig,
    check_group_name,
    check_topic_name,
    retry_topic,
)
from gantrymq.protocol.pop import revive_topic
from gantrymq.remoting.limits import Refusals

log = logging.getLogger(__name__)

SYSTEM_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)
FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


def boot_topics(config: BrokerConfig) -> list[TopicConfig]:
    """The topics that every broker has from its first start, as RocketMQ's broker does."""
    both = READ | WRITE

    def topic(name: str, queues: int, perm: int = both) -> TopicConfig:
        return TopicConfig(
            topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm
        )

    topics = [topic(SELF_TEST_TOPIC, 1)]
    if config.auto_create_topic_enable:
        topics.append(topic(TEMPLATE_TOPIC, config.default_topic_queue_nums, both | INHERIT))
    topics.append(topic(BENCHMARK_TOPIC, 1024))
    cluster_perm = both | INHERIT if config.cluster_topic_enable else INHERIT
    topics.append(topic(config.broker_cluster_name, 16, cluster_perm))
    broker_perm = both | INHERIT if config.broker_topic_enable else INHERIT
    topics.append(topic(config.broker_name, 1, broker_perm))
    topics.append(topic(OFFSET_MOVED_TOPIC, 1))
    topics.append(topic(SCHEDULE_TOPIC, len(config.delay_levels_ms)))
    if config.timer_wheel_enable:
        topics.append(topic(TIMER_TOPIC, 1))
    topics += [topic(HALF_TOPIC, 1), topic(OP_HALF_TOPIC, 1)]
    if config.trace_topic_enable:
        topics.append(topic(config.msg_trace_topic_name, 1))
    topics.append(topic(f"{config.broker_cluster_name}_REPLY_TOPIC", 1))
    topics.append(topic(revive_topic(config.broker_cluster_name), config.revive_queue_num))
    return topics


class Policy:
    """Checks whether topics and groups may be used; creates those that the settings allow."""

    def __init__(
        self,
        config: BrokerConfig,
        registry: Registry,
        announcer: Announcer,
        refusals: Refusals,
    ) -> None:
        self._config, self._registry, self._announcer = config, registry, announcer
        self._refusals = refusals
        self._saves = Background("the tables of topics and groups")

    # settings

    def settings_changed(self, keys: Collection[str]) -> None:
        """Create the topics that a new setting asks for, and announce changed permissions."""
        if not {"autoCreateTopicEnable", "traceTopicEnable"}.isdisjoint(keys):
            for topic in boot_topics(self._config):
                if self._registry.topics.get(topic.topic_name) is None:
                    self.put_topic(topic)
        if not {"namesrvAddr", "registerNameServerPeriod"}.isdisjoint(keys):
            self._announcer.announce_all()
        if "brokerPermission" in keys:
            self._registry.topics.renew_version()
            self._announcer.announce_all()

    # topics

    def sendable(self, name: str, template: str, queues: int) -> TopicConfig:
        """The topic to send to, created from the template if needed. Raises if that is not allowed.

        A broker without write permission refuses ordered topics only, as RocketMQ's does: the route
        keeps producers away from other topics, and messages that are already on their way are still
        stored.
        """
        topic = self._registry.topics.get(name)
        if topic is not None and topic.order and not self._config.broker_permission & WRITE:
            address = self._config.broker_ip1
            raise NotPermitted(f"the broker[{address}] sending message is forbidden")
        check_topic_name(name)
        if name in UNSENDABLE_TOPICS:
            raise NotPermitted(f"Sending message to topic[{name}] is forbidden.")
        if topic is None:
            topic = self._made_from_template(name, template, queues)
        if topic is None and name.startswith((RETRY_PREFIX, DEAD_PREFIX)):
            self.check_room_for_topics([name])
            topic = self.ensure_topic(name, 1)
        if topic is None:
            raise TopicMissing(f"topic[{name}] not exist, apply first please!{FAQ}")
        return topic

    def _made_from_template(self, name: str, template: str, queues: int) -> TopicConfig | None:
        """A new topic like the template; None if the template does not allow it."""
        source = self._registry.topics.get(template)
        if source is None or not source.perm & INHERIT:
            return None
        if template == TEMPLATE_TOPIC and not self._config.auto_create_topic_enable:
            return None
        self.check_room_for_topics([name])
        count = max(0, min(queues, source.write_queue_nums))
        made = TopicConfig(
            topic_name=name,
            read_queue_nums=count,
            write_queue_nums=count,
            perm=source.perm & ~INHERIT,
        )
        log.info("topic %s made from %s with %s", name, template, counted(count, "queue"))
        self.put_topic(made)
        return made

    def ensure_topic(self, name: str, queues: int) -> TopicConfig:
        """A retry or dead letter topic, created on first use."""
        topic = self._registry.topics.get(name)
        if topic is None:
            topic = TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
            self.put_topic(topic)
        return topic

    def put_topic(self, topic: TopicConfig) -> None:
        """Add or change a topic; it is saved and announced soon."""
        self._registry.topics.put(topic.topic_name, topic)
        self._save_soon(self._registry.topics.save)
        self._announcer.topic_changed(topic)

    def check_room_for_topics(self, names: Iterable[str]) -> None:
        """Raise if there would be too many topics with these.

        Topics that the broker makes for its groups are not asked for: a message that was sent back
        must go somewhere.
        """
        known = self._registry.topics.table
        new = [name for name in names if name not in known]
        if new and len(known) + len(new) > self._config.max_topics:
            raise self._refusals.reached("maxTopics", "no more topics", f"topic {new[0]}")

    def check_room_for_groups(self, names: Iterable[str]) -> None:
        """Raise if there would be too many groups with these."""
        known = self._registry.groups.table
        new = [name for name in names if name not in known]
        if new and len(known) + len(new) > self._config.max_groups:
            raise self._refusals.reached("maxGroups", "no more groups", f"group {new[0]}")

    def check_queues(self, count: int, who: str) -> None:
        """Raise if a topic may not have so many queues."""
        if count > self._config.max_queues_per_topic:
            what = f"{counted(count, 'queue')} for one topic"
            raise self._refusals.reached("maxQueuesPerTopic", what, who)

    async def change_topics(self, topics: Sequence[TopicConfig]) -> None:
        """Add or change topics for an operator: on disk and announced when this returns."""
        self.check_room_for_topics(topic.topic_name for topic in topics)
        await self._registry.topics.change_many({topic.topic_name: topic for topic in topics})
        await self._announcer.announce(topics)

    def topic(self, name: str) -> TopicConfig:
        """The topic; raises TopicMissing if there is none."""
        found = self._registry.topics.get(name)
        if found is None:
            raise TopicMissing(f"topic[{name}] not exist, apply first please!{FAQ}")
        return found

    def has_queue(self, queue: Queue) -> bool:
        """Whether there may be such a queue: a topic with fewer queues than before had others."""
        topic = self._registry.topics.get(queue.topic)
        return topic is not None and 0 <= queue.queue_id < self._config.max_queues_per_topic

    # groups

    def group(self, name: str) -> GroupConfig:
        """The group's settings; created with the defaults on first use if that is allowed."""
        found = self._registry.groups.get(name)
        if found is not None:
            return found
        if not self._config.auto_create_subscription_group:
            raise GroupMissing(f"subscription group [{name}] does not exist, apply first please!")
        try:
            check_group_name(name)
        except NameRefused as error:
            raise BadRequest(str(error)) from error
        self.check_room_for_groups([name])
        made = GroupConfig(group_name=name)
        self._registry.groups.put(name, made)
        self._save_soon(self._registry.groups.save)
        log.info("group %s made with the defaults", name)
        return made

    def check_readable(self, group: str, topic: str) -> None:
        """Raise if an operator has forbidden the group to read the topic."""
        forbidden = self._registry.forbidden
        if forbidden and forbidden.get(group, {}).get(topic, 0) & READ:
            raise NotPermitted(f"the consumer group[{group}] is forbidden for topic[{topic}]")

    def ensure_retry_topic(self, group: GroupConfig) -> TopicConfig:
        """The group's retry topic, with at least as many queues as the group asks for.

        The number of queues only grows, because consumers would not read the queues that are left
        out. RocketMQ keeps the first number and then stores messages in queues that consumers do
        not read.
        """
        topic = self.ensure_topic(retry_topic(group.group_name), group.retry_queue_nums)
        queues = group.retry_queue_nums
        if min(topic.read_queue_nums, topic.write_queue_nums) >= queues:
            return topic
        wider = msgspec.structs.replace(
            topic,
            read_queue_nums=max(topic.read_queue_nums, queues),
            write_queue_nums=max(topic.write_queue_nums, queues),
        )
        self.put_topic(wider)
        return wider

    # saving

    def _save_soon(self, save: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            try:
                await save()
            except OSError:
                log.exception("a table could not be saved; the next change tries again")

        self._saves.spawn(run())

    async def close(self) -> None:
        """Wait until every change made so far is on disk."""
        await self._saves.finish()
