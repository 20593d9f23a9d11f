"""Administration of messages: searches, offsets of queues, and what waits."""

from gantrymq.client.admin.admin_base import AdminBase
from gantrymq.client.admin.messages import message_query, waiting_messages
from gantrymq.client.admin.messages.message_query import FOREVER_MS, QUERY_MESSAGES_MAX
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.messages.received import Received
from gantrymq.model import Queue
from gantrymq.protocol.waiting import WaitingTable


class MessageAdmin(AdminBase):
    """Finds stored messages."""

    async def waiting(
        self, topic: str | None = None, *, count: int = 100, from_ms: int = 0
    ) -> dict[str, WaitingTable]:
        """Waiting messages by broker: figures by system topic and topic, and those due first."""
        masters = await self.masters()
        return await waiting_messages.waiting(self.instance, masters, topic, count, from_ms)

    async def min_offset(self, queue: Queue) -> int:
        """The offset of the oldest message that is still stored."""
        return await queue_offsets.min_offset(self.instance, queue)

    async def max_offset(self, queue: Queue) -> int:
        """The offset that the next message will get."""
        return await queue_offsets.max_offset(self.instance, queue)

    async def search_offset(self, queue: Queue, timestamp_ms: int) -> int:
        """The offset of the first message stored at that time or later."""
        return await queue_offsets.search_offset(self.instance, queue, timestamp_ms)

    async def message(self, msg_id: str, *, topic: str | None = None) -> Received:
        """A message by its id; the topic is needed for an id that the producer gave."""
        return await message_query.by_id(self.instance, msg_id, topic)

    async def query(
        self,
        topic: str,
        key: str,
        *,
        count_max: int = QUERY_MESSAGES_MAX,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
    ) -> list[Received]:
        """The messages of a topic that carry a key, oldest first."""
        return await message_query.by_key(
            self.instance, topic, key, count_max=count_max, begin_ms=begin_ms, end_ms=end_ms
        )
