"""Checks whether a group may pop a topic; the same for every POP request."""

from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import InvalidParameter, NotPermitted
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.model import READ, STORED_TOPIC_BYTES_MAX, TopicConfig
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.base import Header
from gantrymq.protocol.pop import pop_retry_topic
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.server import Hot

INVISIBLE_MS_MAX = 100 * 365 * 24 * 3_600_000
"""A hundred years: who asks for longer means for ever, and due times have to fit their fields."""


class PopChecks:
    """Refuses with the codes and texts of RocketMQ."""

    def __init__(self, config: BrokerConfig, policy: Policy) -> None:
        self._config, self._policy = config, policy

    def allowed(self, topic: str, group: str, queue_id: int, client: str) -> TopicConfig:
        """The topic; raises if the group may not read it."""
        if not self._config.broker_permission & READ:
            raise NotPermitted(f"the broker[{self._config.broker_ip1}] pop message is forbidden")
        found = self._policy.topic(topic)
        if not found.perm & READ:
            raise NotPermitted(f"the topic[{topic}] peeking message is forbidden")
        if queue_id >= found.read_queue_nums:
            raise InvalidParameter(illegal_queue(queue_id, found, client))
        settings = self._policy.group(group)
        if not settings.consume_enable:
            raise NotPermitted(f"subscription group no permission, {group}")
        self._policy.check_readable(group, topic)
        return found

    def retryable(self, topic: str, group: str) -> None:
        """Raise if the name of the retry topic would be too long to store."""
        name = pop_retry_topic(group, topic, self._config.enable_retry_topic_v2)
        if len(name) > STORED_TOPIC_BYTES_MAX:
            raise InvalidParameter(
                f"group[{group}] cannot pop topic[{topic}]: its retry topic {name} would have "
                f"{len(name)} characters, {STORED_TOPIC_BYTES_MAX} is the most"
            )


def illegal_queue(queue_id: int, topic: TopicConfig, client: str) -> str:
    return (
        f"queueId[{queue_id}] is illegal, topic:[{topic.topic_name}] "
        f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[{client}]"
    )


def with_fields(blank: Header, handle: Hot) -> Hot:
    """Put the answer's fields into refusals, too, as RocketMQ does: clients read them."""
    fields = blank.to_ext()

    def answer(connection: Connection, command: Command) -> None:
        try:
            handle(connection, command)
        except GantryError as error:
            connection.reply(command, error.code, ext=fields, remark=str(error))

    return answer
