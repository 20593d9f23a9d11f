"""Resetting the progress of a group, and asking its members for their offsets."""

import asyncio
import logging
from collections.abc import Callable, Mapping

import msgspec

from gantrymq.base.errors import GantryError
from gantrymq.broker.errors import BadRequest, GroupMissing, NotOnline, TopicMissing
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.subscriptions.sessions import ConsumerGroup, Sessions
from gantrymq.broker.tables.offset_resets import Resets
from gantrymq.broker.tables.registry import Registry
from gantrymq.model import TopicConfig
from gantrymq.protocol import calls as c
from gantrymq.protocol import fastjson
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command, response
from gantrymq.protocol.headers.resets import ConsumerStatusRequest, ResetRequest
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store

log = logging.getLogger(__name__)

ASK_SECONDS_MAX = 5.0
"""How long a member may take to tell where it is."""
NUDGE_SECONDS = 2.0
"""A member that has not pulled for so long after a reset is told: it may be stuck or full."""

WakePulls = Callable[[str, str, int, int], None]
"""Answer the held pulls of a group, topic and queue: go on at this offset."""


class ResetHandler:
    """INVOKE_BROKER_TO_RESET_OFFSET (222), INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223).

    With `useServerSideResetOffset` (5.x, and our default) the broker moves the progress itself, for
    running and stopped groups alike, and consumers learn of it by their next pull. Without it (4.9)
    the broker sends RESET_CONSUMER_CLIENT_OFFSET (220) and the members move the progress, so at
    least one must be online. For 223 the broker sends GET_CONSUMER_STATUS_FROM_CLIENT (221).
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        registry: Registry,
        sessions: Sessions,
        resets: Resets,
        wake: WakePulls,
    ) -> None:
        self._config, self._store, self._registry = config, store, registry
        self._sessions, self._resets, self._wake = sessions, resets, wake

    # reset

    async def reset(self, connection: Connection, command: Command) -> Command:
        """INVOKE_BROKER_TO_RESET_OFFSET (222): move a group's progress to a time or an offset."""
        h = c.INVOKE_BROKER_TO_RESET_OFFSET.request.parse(command.ext)
        log.warning("%s asks for a reset: %s", connection.address, h)
        topic = self._registry.topics.get(h.topic)
        if topic is None:
            raise TopicMissing(f"Topic {h.topic} does not exist")
        members = self._sessions.consumers.get(h.group)
        broadcasts = members is not None and members.message_model == "BROADCASTING"
        if self._config.use_server_side_reset_offset and not broadcasts:
            table = await self._move(topic, h)
        else:
            table = await self._ask_to_move(topic, h, command.language == "CPP")
        rows = [(self._key(h.topic, queue_id), offset) for queue_id, offset in table.items()]
        return response(command, body=fastjson.dump_object_keyed("offsetTable", rows))

    async def _move(self, topic: TopicConfig, h: ResetRequest) -> dict[int, int]:
        if self._registry.groups.get(h.group) is None:
            raise GroupMissing(f"Group {h.group} does not exist")
        if h.queue_id >= topic.read_queue_nums:
            raise BadRequest(f"queue {h.queue_id} is none of the {topic.read_queue_nums} there are")
        if h.queue_id >= 0 and h.offset >= 0:
            # An explicit offset counts without `isForce`: RocketMQ's tool never sets it here.
            table = {h.queue_id: self._checked(h)}
        else:
            queues = [h.queue_id] if h.queue_id >= 0 else range(topic.read_queue_nums)
            table = {queue_id: await self._place(h, queue_id) for queue_id in queues}
        if not table:
            raise BadRequest("No queues to reset.")
        for queue_id, offset in table.items():
            self._resets.move(h.group, h.topic, queue_id, offset)
            self._wake(h.group, h.topic, queue_id, offset)
        asyncio.get_running_loop().call_later(NUDGE_SECONDS, self._nudge, h)
        try:
            await self._registry.offsets.save()
        except OSError as error:
            raise BadRequest(f"moved, but not on disk yet: {error}") from error
        return table

    def _checked(self, h: ResetRequest) -> int:
        first = self._store.queues.min_offset(h.topic, h.queue_id)
        end = self._store.queues.max_offset(h.topic, h.queue_id)
        if not first <= h.offset <= end:
            raise BadRequest(f"Target offset {h.offset} not in consume queue range [{first}-{end}]")
        return h.offset

    async def _place(self, h: ResetRequest, queue_id: int) -> int:
        """The offset of the requested time; without force never ahead of the group's progress."""
        if h.timestamp < 0:
            place = self._store.queues.max_offset(h.topic, queue_id)
        else:
            place = await self._store.reads.offset_by_time(h.topic, queue_id, h.timestamp)
        read = self._registry.offsets.get(h.group, h.topic, queue_id)
        backwards = h.is_force or read is None or read < 0
        return max(0, place if backwards else min(place, read or 0))

    def _nudge(self, h: ResetRequest) -> None:
        """Send the reset to members that have not pulled since: they may be full or stuck."""
        table = self._resets.untold(h.group, h.topic)
        members = self._sessions.consumers.get(h.group)
        if table and members is not None:
            self._tell(members, h, table, as_list=False)

    async def _ask_to_move(
        self, topic: TopicConfig, h: ResetRequest, as_list: bool
    ) -> dict[int, int]:
        """As 4.9 does: the members drop their queues, wait 10 s and commit the new offsets."""
        for queue_id in range(topic.write_queue_nums):
            if self._registry.offsets.get(h.group, h.topic, queue_id) is None:
                raise BadRequest(f"THe consumer group <{h.group}> not exist")
        table = {n: await self._place(h, n) for n in range(topic.write_queue_nums)}
        members = self._sessions.consumers.get(h.group)
        if members is None or not members.members:
            raise NotOnline(
                f"Consumer not online, so can not reset offset, Group: {h.group} "
                f"Topic: {h.topic} Timestamp: {h.timestamp}"
            )
        self._tell(members, h, table, as_list=as_list)
        return table

    def _tell(
        self, members: ConsumerGroup, h: ResetRequest, table: Mapping[int, int], *, as_list: bool
    ) -> None:
        """Send RESET_CONSUMER_CLIENT_OFFSET (220) to every member; C++ clients read a list."""
        rows = [(self._key(h.topic, queue_id), offset) for queue_id, offset in table.items()]
        keyed = fastjson.dump_object_keyed("offsetTable", rows)
        listed = fastjson.dumps({"offsetTable": [{**key, "offset": at} for key, at in rows]})
        ext = {
            name: value
            for name, value in h.to_ext().items()
            if name in ("group", "topic", "timestamp", "isForce")
        }
        for connection, client in list(members.members.items()):
            body = listed if as_list or client.language == "CPP" else keyed
            connection.oneway(
                Command(code=RequestCode.RESET_CONSUMER_CLIENT_OFFSET, ext=ext, body=body)
            )

    def _key(self, topic: str, queue_id: int) -> dict[str, object]:
        name = self._config.broker_name
        return {"brokerName": name, "queueId": queue_id, "topic": topic}

    # offsets of members

    async def status(self, connection: Connection, command: Command) -> Command:
        """INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223): the offsets that each member reports.

        Members that do not answer are left out.
        """
        h = c.INVOKE_BROKER_TO_GET_CONSUMER_STATUS.request.parse(command.ext)
        members = self._sessions.consumers.get(h.group)
        if members is None or not members.members:
            raise BadRequest(f"No Any Consumer online in the consumer group: [{h.group}]")
        wanted = {
            client.client_id: member
            for member, client in members.members.items()
            if h.client_addr in (None, "", client.client_id)
        }
        answers = await asyncio.gather(*(_ask(member, h) for member in wanted.values()))
        table = {
            client_id: msgspec.Raw(answer)
            for client_id, answer in zip(wanted, answers, strict=True)
            if answer is not None
        }
        body = {"consumerTable": table, "messageQueueTable": {}}
        return response(command, body=fastjson.dumps(body))


async def _ask(member: Connection, h: ConsumerStatusRequest) -> bytes | None:
    """One member's offsets by queue, as JSON; None if it does not answer with such a table."""
    ext = c.INVOKE_BROKER_TO_GET_CONSUMER_STATUS.request(topic=h.topic, group=h.group).to_ext()
    ask = Command(code=RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ext=ext)
    try:
        answer = await member.call(ask, ASK_SECONDS_MAX)
        table = fastjson.loads(answer.body) if answer.code == 0 and answer.body else None
    except GantryError as error:
        log.info("%s did not tell where it is: %s", member.address, error)
        return None
    queues = table.get("messageQueueTable") if isinstance(table, dict) else None
    if not isinstance(queues, dict):
        return None
    parts = (fastjson.dumps(key) + b":" + fastjson.dumps(queues[key]) for key in queues)
    return b"{" + b",".join(parts) + b"}"
