"""Copies a master's tables to its slave: topics, groups, offsets, delay offsets, request modes.

The log carries messages only, so the tables are asked for over the remoting port, as RocketMQ's
slaves do. A table with the version that the slave has already is left alone.

Offsets go both ways. While the master is away, consumers commit to the slave; these commits are
sent to the master before its offsets are taken over, so that nobody reads again what was done
meanwhile. A group that began meanwhile is made on the master first.
"""

import logging
from typing import Final

from gantrymq.base.disk import Disk
from gantrymq.base.errors import GantryError
from gantrymq.base.offload import Offload
from gantrymq.base.plurals import counted
from gantrymq.broker.copies.master_link import MasterLink, MasterRefused
from gantrymq.broker.tables.registry import (
    FORBIDDEN,
    DelayTable,
    GroupTable,
    OffsetTable,
    Registry,
)
from gantrymq.broker.tables.request_modes import ModeTable
from gantrymq.broker.waiting.timer.checkpoint import TimerCheck, save_check
from gantrymq.model import TopicConfig
from gantrymq.protocol import fastjson
from gantrymq.protocol.bodies import TopicTable
from gantrymq.protocol.codes import RequestCode as Code
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.messages import UpdateConsumerOffsetRequest
from gantrymq.protocol.pop import RequestModes
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

GONE_CODES: Final = (ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST)
COPY_SECONDS: Final = 1.0
"""RocketMQ's slaves ask every 10 s (4.9) or 60 s (5.x)."""


class TableCopy:
    """Takes over a master's tables, round by round."""

    def __init__(
        self,
        link: MasterLink,
        registry: Registry,
        store: Store,
        modes: ModeTable,
        disk: Disk,
        offload: Offload,
        timer_path: str,
    ) -> None:
        self._link, self._registry, self._store, self._modes = link, registry, store, modes
        self._disk, self._offload, self._timer_path = disk, offload, timer_path
        self._timer_check = b""
        self._topics_upto = -1
        """Where the log ended when the master last told its topics; -1 if it has not yet."""
        self._problem = ""

    async def run(self, *, follows: bool) -> bool:
        """One round; True if all was copied. An absent master is asked again in the next one.

        Only a slave that follows the master's log takes its tables: one that was refused belongs to
        another broker, and must neither get its topics nor send it offsets.
        """
        try:
            if not follows:
                raise MasterRefused("its log is not copied")
            await self._copy_all()
        except (GantryError, OSError) as error:
            self.adopt_stored_topics()
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("the master's tables are not copied: %s", error)
            return False
        if self._problem:
            log.info("the master's tables are copied again")
        self._problem = ""
        return True

    async def _copy_all(self) -> None:
        await self._copy_topics()
        await self._copy_groups()
        await self._return_offsets()
        await self._copy_offsets()
        await self._copy_delay_offsets()
        for step in (self._copy_modes, self._copy_timer_check):
            try:
                await step()
            except MasterRefused:
                continue  # RocketMQ 4.9 has no such table

    def adopt_stored_topics(self) -> None:
        """Make topics readable whose messages came, but whose settings did not.

        The log is copied at once and tables a little later, so a master that dies may leave a slave
        with messages of topics that it does not know. One whose messages are all older than the
        table was deleted by the master: its queues wait here for retention.
        """
        queues = self._store.queues
        for name in queues.topics():
            if self._registry.topics.get(name) is None and self._is_new(name):
                count = max(queues.ids(name)) + 1
                topic = TopicConfig(topic_name=name, read_queue_nums=count, write_queue_nums=count)
                self._registry.topics.put(name, topic)
                log.warning(
                    "topic %s is known by its messages only: %s", name, counted(count, "queue")
                )

    def _is_new(self, topic: str) -> bool:
        queues = self._store.queues
        found = [queues.get(topic, number) for number in queues.ids(topic)]
        return any(queue and queue.last_position() > self._topics_upto for queue in found)

    async def _ask(self, code: Code) -> bytes:
        return (await self._link.call(code)).body

    async def _copy_topics(self) -> None:
        end = self._store.log_max
        found = fastjson.load_as(await self._ask(Code.GET_ALL_TOPIC_CONFIG), TopicTable)
        await self._registry.topics.take_over(found.topic_config_table, found.data_version)
        self._topics_upto = end

    async def _copy_groups(self) -> None:
        found = await self._ask_groups()
        if await self._return_groups(found):
            found = await self._ask_groups()
        await self._registry.groups.take_over(
            found.subscription_group_table, found.data_version, {FORBIDDEN: found.forbidden_table}
        )

    async def _ask_groups(self) -> GroupTable:
        return fastjson.load_as(await self._ask(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG), GroupTable)

    async def _return_groups(self, found: GroupTable) -> bool:
        """Make groups on the master that consumers began here; True if there were any."""
        own = self._registry.offsets.committed_here or {}
        names = dict.fromkeys(group for group, _, _ in own)
        configs = [self._registry.groups.get(name) for name in names]
        new = [
            each
            for each in configs
            if each and each.group_name not in found.subscription_group_table
        ]
        for config in new:
            code = Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
            await self._link.call(code, body=fastjson.dumps(config))
        return bool(new)

    async def _return_offsets(self) -> None:
        """Send the master what consumers committed here."""
        own = self._registry.offsets.committed_here
        if not own:
            return
        for (group, topic, queue_id), offset in list(own.items()):
            header = UpdateConsumerOffsetRequest(
                consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset
            )
            try:
                await self._link.call(Code.UPDATE_CONSUMER_OFFSET, header.to_ext())
            except MasterRefused as error:
                if error.answer_code not in GONE_CODES:
                    raise
                log.warning("progress that was committed here is dropped: %s", error)
            if own.get((group, topic, queue_id)) == offset:
                del own[group, topic, queue_id]
        log.info("the master has the progress that was committed here while it was away")

    async def _copy_offsets(self) -> None:
        body = await self._ask(Code.GET_ALL_CONSUMER_OFFSET)
        if body:
            found = fastjson.load_as(body, OffsetTable)
            self._registry.offsets.take_over(found.offset_table)
            await self._registry.offsets.save()

    async def _copy_delay_offsets(self) -> None:
        body = await self._ask(Code.GET_ALL_DELAY_OFFSET)
        if body:
            found = fastjson.load_as(body, DelayTable)
            await self._registry.delays.take_over(found.offset_table)

    async def _copy_modes(self) -> None:
        body = await self._ask(Code.GET_ALL_MESSAGE_REQUEST_MODE)
        await self._modes.take_over(fastjson.load_as(body, RequestModes))

    async def _copy_timer_check(self) -> None:
        body = await self._ask(Code.GET_TIMER_CHECK_POINT)
        if body and body != self._timer_check:
            check = TimerCheck.decode(body)
            await self._offload.run(save_check, self._disk, self._timer_path, check)
            self._timer_check = body
