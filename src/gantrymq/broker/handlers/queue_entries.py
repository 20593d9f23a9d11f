"""Entries of consume queues, for operators who look for a message that does not arrive."""

from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import BadRequest
from gantrymq.broker.subscriptions.pull_filter import EVERYTHING, Filters, PullFilter
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.kernel import walk_records
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import ConsumeQueueBody, ConsumeQueueData
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.record import BLANK_BYTES
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store
from gantrymq.store.reading.reads import StoredEntry

ENTRIES_MAX = 1000
"""More are not sent at once: for each the group's filter is asked."""


class QueueEntryHandler:
    """QUERY_CONSUME_QUEUE (321)."""

    def __init__(self, store: Store, sessions: Sessions, filters: Filters) -> None:
        self._store, self._sessions, self._filters = store, sessions, filters

    async def query(self, connection: Connection, command: Command) -> Command:
        """QUERY_CONSUME_QUEUE (321): entries of a queue, and whether a group's filter takes them.

        RocketMQ says `eval` only where a bitmap stands beside the queue; here it is always true
        to the filter.
        """
        h = c.QUERY_CONSUME_QUEUE.request.parse(command.ext)
        topic = h.topic or ""
        if self._store.queues.get(topic, h.queue_id) is None:
            raise BadRequest(f"{h.queue_id}@{topic} is not exist!")
        body = ConsumeQueueBody(
            min_queue_index=self._store.queues.min_offset(topic, h.queue_id),
            max_queue_index=self._store.queues.max_offset(topic, h.queue_id),
        )
        wanted = self._describe_filter(body, h.consumer_group, topic) if h.consumer_group else None
        count = max(0, min(h.count, ENTRIES_MAX))
        entries = await self._store.reads.entries(topic, h.queue_id, h.index, count)
        if entries is None:
            remark = f"Index {h.index} of {h.queue_id}@{topic} is not exist!"
            return response(command, remark=remark)
        body.queue_data = [await self._row(entry, wanted) for entry in entries]
        return response(command, body=fastjson.dumps(body))

    def _describe_filter(self, body: ConsumeQueueBody, group: str, topic: str) -> PullFilter | None:
        online = self._sessions.consumers.get(group)
        subscription = online.subscriptions.get(topic) if online is not None else None
        if subscription is None:
            body.filter_data = f"{group}@{topic} is not online!"
            return None
        body.subscription_data = subscription
        body.filter_data = "null"
        try:
            wanted = self._filters.of_subscription(group, subscription)
        except GantryError as error:
            body.filter_data = str(error)
            return None
        if wanted.entry_filter is not None:
            body.filter_data = fastjson.dumps({"expression": subscription.sub_string}).decode()
        return wanted

    async def _row(self, entry: StoredEntry, wanted: PullFilter | None) -> ConsumeQueueData:
        row = ConsumeQueueData(
            physic_offset=entry.position, physic_size=entry.size, tags_code=entry.tag_code
        )
        if entry.unit is not None:
            unit = entry.unit
            row.bit_map = "".join(f"{byte:08b}"[::-1] for byte in unit.bitmap)
            row.extend_data_json = fastjson.dumps(
                {"tagsCode": unit.tag_code, "msgStoreTime": unit.store_ms}
            ).decode()
        if wanted is not None:
            row.eval = await self._takes(entry, wanted)
        return row

    async def _takes(self, entry: StoredEntry, wanted: PullFilter) -> bool:
        if wanted.codes is not None:
            return entry.tag_code in wanted.codes
        if wanted == EVERYTHING or wanted.entry_filter is None:
            return True
        record = await self._store.reads.message_at(entry.position)
        if record is None:
            return False
        walk = walk_records(record, entry.position, len(record) + BLANK_BYTES, False)
        return any(wanted.entry_filter.matches(properties) for *_, properties in walk.records)
