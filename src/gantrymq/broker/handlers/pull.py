"""Pulls with long polling: a pull that finds no message waits until its queue grows."""

import asyncio
from collections.abc import Awaitable

import msgspec

from gantrymq.base.background import Background
from gantrymq.base.memory import memory_bytes
from gantrymq.base.watermark import Parked
from gantrymq.broker.errors import (
    BadRequest,
    NotPermitted,
    SubscriptionMissing,
    SubscriptionOld,
)
from gantrymq.broker.offset_moves import OffsetMoves
from gantrymq.broker.policy import Policy
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.stats import BrokerStats
from gantrymq.broker.subscriptions.pull_filter import EVERYTHING, NO_CLASSES, Filters, PullFilter
from gantrymq.broker.subscriptions.sessions import Sessions
from gantrymq.broker.tables.offset_resets import Resets
from gantrymq.kernel import pull_answer
from gantrymq.model import READ
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.command import ONEWAY_FLAG, Command
from gantrymq.protocol.headers.messages import (
    PULL_BY_CLASS,
    PULL_COMMITS,
    PULL_SUBSCRIBES,
    PULL_SUSPENDS,
    PullRequest,
)
from gantrymq.protocol.record import AT_PHYSICAL_OFFSET
from gantrymq.remoting.admission import OVERLOAD
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import Refusals
from gantrymq.store.append import ReadResult, ReadStatus
from gantrymq.store.engine import Store

EMPTY = frozenset({ReadStatus.NO_MATCHED_LOGIC_QUEUE, ReadStatus.NO_MESSAGE_IN_QUEUE})
SHORT_SECONDS = 1.0
"""How long a slave holds a pull for messages that it never had."""
OUT_OF_RANGE = EMPTY | {ReadStatus.OFFSET_OVERFLOW_BADLY, ReadStatus.OFFSET_TOO_SMALL}
CODES = {
    ReadStatus.FOUND: ResponseCode.SUCCESS,
    ReadStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    ReadStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    ReadStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    ReadStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    ReadStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    ReadStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}


class HeldPull:
    """One pull: the request, its connection, its filter, and its deadline (None: do not wait)."""

    __slots__ = (
        "command",
        "connection",
        "deadline",
        "group",
        "is_answered",
        "limit",
        "limit_bytes",
        "offset",
        "parked",
        "queue_id",
        "timer",
        "topic",
        "wanted",
    )

    def __init__(self, connection: Connection, command: Command, h: PullRequest) -> None:
        self.connection, self.command = connection, command
        self.group, self.topic, self.queue_id = h.consumer_group, h.topic, h.queue_id
        self.offset = h.queue_offset
        self.wanted = EVERYTHING
        self.limit = self.limit_bytes = 0
        self.deadline: float | None = None
        self.parked: Parked | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.is_answered = False


class PullHandler:
    """PULL_MESSAGE and LITE_PULL_MESSAGE."""

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        resets: Resets,
        policy: Policy,
        sessions: Sessions,
        filters: Filters,
        stats: BrokerStats,
        moves: OffsetMoves,
        refusals: Refusals,
    ) -> None:
        self._config, self._store, self._resets, self._moves = config, store, resets, moves
        self._policy, self._sessions, self._filters = policy, sessions, filters
        self._stats, self._refusals = stats, refusals
        self._memory_bytes = memory_bytes()
        self._held: dict[HeldPull, None] = {}
        self._background = Background("pulls that read from disk")

    def pull(self, connection: Connection, command: Command) -> None:
        """PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361): answer at once, or hold the pull.

        A held pull is answered when its queue grows, or at its deadline.
        """
        h = PullRequest.parse(command.ext)
        pull = HeldPull(connection, command, h)
        self._check(h)
        pull.wanted = self._wanted(h)
        config = self._config
        pull.limit = max(1, min(h.max_msg_nums, config.max_transfer_count_on_message_in_memory))
        pull.limit_bytes = config.max_transfer_bytes_on_message_in_memory
        if h.max_msg_bytes is not None and h.max_msg_bytes > 0:
            pull.limit_bytes = min(pull.limit_bytes, h.max_msg_bytes)
        if h.sys_flag & PULL_COMMITS and not config.is_slave:
            self._resets.commit(h.consumer_group, h.topic, h.queue_id, h.commit_offset)
        now = connection.loop.time()
        place = self._resets.redirect(h.consumer_group, h.topic, h.queue_id, h.queue_offset, now)
        if place is not None:
            self._send_to(pull, place)
            return
        if h.sys_flag & PULL_SUSPENDS and not command.flag & ONEWAY_FLAG:
            wait_ms = h.suspend_timeout_millis
            if not config.long_polling_enable:
                wait_ms = config.short_polling_time_mills
            pull.deadline = now + wait_ms / 1000
        self._serve(pull)

    # progress that was reset

    def redirect(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Answer the held pulls of a queue whose progress was reset: they go on at `offset`."""
        wanted = (group, topic, queue_id)
        for pull in list(self._held):
            if wanted == (pull.group, pull.topic, pull.queue_id) and pull.offset != offset:
                self._resets.redirect(*wanted, pull.offset, pull.connection.loop.time())
                self._send_to(pull, offset)

    def _send_to(self, pull: HeldPull, offset: int) -> None:
        """Answer OFFSET_MOVED with the offset to go on at."""
        self._let_go(pull)
        pull.is_answered = True
        if pull.command.flag & ONEWAY_FLAG:
            return
        first = self._store.queues.min_offset(pull.topic, pull.queue_id)
        end = self._store.queues.max_offset(pull.topic, pull.queue_id)
        head = pull_answer(
            pull.command.codec,
            ResponseCode.PULL_OFFSET_MOVED,
            pull.command.opaque,
            "OFFSET_RESET",
            0,
            offset,
            first,
            end,
            0,
        )
        pull.connection.reply_frame(head)

    # checks

    def _check(self, h: PullRequest) -> None:
        if not self._config.broker_permission & READ:
            raise NotPermitted(
                f"the broker[{self._config.broker_ip1}] pulling message is forbidden"
            )
        group = self._policy.group(h.consumer_group)
        if not group.consume_enable:
            raise NotPermitted(f"subscription group no permission, {h.consumer_group}")
        topic = self._policy.topic(h.topic)
        if not topic.perm & READ:
            raise NotPermitted(f"the topic[{h.topic}] pulling message is forbidden")
        self._policy.check_readable(h.consumer_group, h.topic)
        if not 0 <= h.queue_id < topic.read_queue_nums:
            raise BadRequest(
                f"queueId[{h.queue_id}] is illegal, topic:[{h.topic}] "
                f"topicConfig.readQueueNums:[{topic.read_queue_nums}] "
                f"consumer group:[{h.consumer_group}]"
            )

    def _wanted(self, h: PullRequest) -> PullFilter:
        """The filter: the request's own expression, or the subscription from heartbeats."""
        if h.sys_flag & PULL_BY_CLASS:
            raise BadRequest(NO_CLASSES)
        if h.sys_flag & PULL_SUBSCRIBES:
            return self._filters.of_request(
                h.consumer_group, h.topic, h.expression_type, h.subscription or ""
            )
        group = self._sessions.consumers.get(h.consumer_group)
        if group is None:
            raise SubscriptionMissing(
                f"the consumer's group info not exist, group: {h.consumer_group}"
            )
        if group.message_model == "BROADCASTING":
            config = self._policy.group(h.consumer_group)
            if not config.consume_broadcast_enable:
                raise NotPermitted(
                    f"the consumer group[{h.consumer_group}] can not consume by broadcast way"
                )
        subscription = group.subscriptions.get(h.topic)
        if subscription is None:
            raise SubscriptionMissing(
                f"the consumer's subscription not exist, group: {h.consumer_group}, "
                f"topic: {h.topic}"
            )
        if subscription.sub_version < h.sub_version:
            raise SubscriptionOld("the consumer's subscription not latest")
        return self._filters.of_subscription(h.consumer_group, subscription)

    # serving

    def _serve(self, pull: HeldPull) -> None:
        if pull.connection.is_crowded:
            # Many pulls of one peer may find the same large messages: one answer after the other.
            pull.connection.when_drained(lambda: self._serve_drained(pull))
            return
        try:
            outcome = self._store.reads.pull(
                pull.topic, pull.queue_id, pull.offset, pull.limit, pull.limit_bytes, *pull.wanted
            )
        except OSError as error:  # must not reach the send that woke this pull
            self._fail(pull, error)
            return
        if isinstance(outcome, ReadResult):
            self._settle(pull, outcome)
        else:
            self._background.spawn(self._serve_cold(pull, outcome))

    def _serve_drained(self, pull: HeldPull) -> None:
        if not pull.is_answered:
            self._serve(pull)

    async def _serve_cold(self, pull: HeldPull, outcome: Awaitable[ReadResult]) -> None:
        begun = pull.connection.loop.time()
        try:
            pulled = await outcome
        except OSError as error:
            self._fail(pull, error)
            return
        took_ms = int((pull.connection.loop.time() - begun) * 1000)
        self._stats.wait_for_disk(pull.topic, pull.group, pull.queue_id, took_ms)
        self._settle(pull, pulled)

    def _fail(self, pull: HeldPull, error: OSError) -> None:
        self._let_go(pull)
        pull.is_answered = True
        remark = f"reading the store failed: {error}"
        pull.connection.reply(pull.command, ResponseCode.SYSTEM_ERROR, remark=remark)

    def _settle(self, pull: HeldPull, pulled: ReadResult) -> None:
        """Answer; or hold the pull if it found no message that it wants and time is left."""
        if pull.is_answered:  # its deadline passed while a worker read
            return
        if self._config.is_slave and pulled.status in OUT_OF_RANGE:
            self._settle_on_slave(pull, pulled)
            return
        status = pulled.status
        self._resets.note_pull(pull.group, pull.topic, pull.queue_id, pulled.next_offset)
        if status in EMPTY:
            code = ResponseCode.PULL_OFFSET_MOVED if pull.offset else ResponseCode.PULL_NOT_FOUND
        else:
            code = CODES[status]
        woken = pull.timer is not None
        at_end = pulled.next_offset >= pulled.max_offset
        unwanted = status is ReadStatus.NO_MATCHED_MESSAGE and woken and at_end
        if unwanted or (code == ResponseCode.PULL_NOT_FOUND and at_end):
            if unwanted:
                pull.offset = pulled.next_offset
            if pull.deadline is not None and pull.connection.open:
                self._hold(pull)
                return
        self._answer(pull, code, pulled)

    def _settle_on_slave(self, pull: HeldPull, pulled: ReadResult) -> None:
        """Never move a consumer to another offset: this log may begin later and end earlier than
        the master's. Hold the pull; for an offset before the beginning only shortly, as the
        consumer should ask the master."""
        loop, at = pull.connection.loop, pull.offset
        if pull.deadline is not None and pull.connection.open:
            if at < pulled.max_offset:
                pull.deadline = min(pull.deadline, loop.time() + SHORT_SECONDS)
            self._hold(pull)
        else:
            pulled = msgspec.structs.replace(pulled, next_offset=at)
            self._answer(pull, ResponseCode.PULL_NOT_FOUND, pulled)

    def _hold(self, pull: HeldPull) -> None:
        assert pull.deadline is not None
        loop = pull.connection.loop
        if pull.timer is None:
            if loop.time() >= pull.deadline:
                pull.deadline = None
                self._serve(pull)
                return
            if not self._has_place(pull):
                return
            pull.timer = loop.call_at(pull.deadline, self._expire, pull)
            self._held[pull] = None
            pull.connection.polls_held += 1
        arrivals = self._store.queues.arrivals(pull.topic, pull.queue_id)
        if arrivals.value <= pull.offset:
            pull.parked = arrivals.park(pull.offset + 1, lambda: self._wake(pull))

    def _has_place(self, pull: HeldPull) -> bool:
        """Whether one more pull may be held; if not, it is answered: its client asks again later.

        Clients that get "no message" ask again at once, but wait a while when a broker is busy.
        """
        connection, config = pull.connection, self._config
        if len(self._held) >= config.max_pull_polling_size:
            key = "maxPullPollingSize"
        elif connection.polls_held >= config.max_polling_size_per_connection:
            key = "maxPollingSizePerConnection"
        else:
            return True
        error = self._refusals.reached(key, f"{OVERLOAD}too many pulls wait", connection.address)
        pull.is_answered = True
        connection.reply(pull.command, error.code, remark=str(error))
        return False

    def _wake(self, pull: HeldPull) -> None:
        pull.parked = None
        if pull.wanted.entry_filter is not None:
            # Many pulls may wait at one queue, and each reads: serve one a turn of the loop.
            pull.connection.loop.call_soon(self._serve_woken, pull)
        else:
            self._serve_woken(pull)

    def _serve_woken(self, pull: HeldPull) -> None:
        if pull in self._held and pull.connection.open:
            self._serve(pull)
        else:
            self._let_go(pull)

    def _expire(self, pull: HeldPull) -> None:
        self._let_go(pull)
        if pull.connection.open:
            pull.deadline = None
            self._serve(pull)

    def _let_go(self, pull: HeldPull) -> None:
        if self._held.pop(pull, self) is None:
            pull.connection.polls_held -= 1
        if pull.timer is not None:
            pull.timer.cancel()
        if pull.parked is not None:
            pull.parked.cancel()
            pull.parked = None

    def _answer(self, pull: HeldPull, code: int, pulled: ReadResult) -> None:
        self._let_go(pull)
        pull.is_answered = True
        if code == ResponseCode.SUCCESS:
            self._stats.get(pull.topic, pull.group, pulled.count, len(pulled.body))
        else:
            self._stats.get_missed += 1
        if code == ResponseCode.PULL_OFFSET_MOVED:
            place = pull.group, pull.topic, pull.queue_id
            self._moves.note(*place, pull.offset, pulled.next_offset)
        if pull.command.flag & ONEWAY_FLAG:
            return
        head = pull_answer(
            pull.command.codec,
            code,
            pull.command.opaque,
            pulled.status.name,
            self._suggested_member(pull.group, pulled),
            pulled.next_offset,
            pulled.min_offset,
            pulled.max_offset,
            len(pulled.body),
        )
        if pulled.body:
            pull.connection.reply_with_body(head, pulled.body)
        else:
            pull.connection.reply_frame(head)

    def _suggested_member(self, group: str, pulled: ReadResult) -> int:
        """The member of this broker's name that the group should pull from next: 0 is the master.

        A group that is far behind would push newer messages out of the master's memory.
        """
        if not self._config.slave_read_enable:
            return 0
        settings = self._policy.group(group)
        if pulled.status is ReadStatus.FOUND:
            position = int.from_bytes(pulled.body[AT_PHYSICAL_OFFSET : AT_PHYSICAL_OFFSET + 8])
            behind = self._store.log_max - position
            if behind * 100 > self._memory_bytes * self._config.access_message_in_memory_max_ratio:
                return settings.which_broker_when_consume_slowly
        return settings.broker_id

    # end of held pulls

    @property
    def held(self) -> int:
        return len(self._held)

    async def close(self) -> None:
        """Wait for the pulls that read from disk."""
        await self._background.finish()

    def release_all(self) -> None:
        """Answer every held pull, because the broker stops."""
        for pull in list(self._held):
            self._expire(pull)

    def release(self, group: str) -> None:
        """Answer the held pulls of a group: its next pull is checked for permission again."""
        for pull in [held for held in self._held if held.group == group]:
            self._expire(pull)

    def forget(self, connection: Connection) -> None:
        """Drop the held pulls of a closed connection."""
        if not connection.polls_held:
            return
        for pull in [held for held in self._held if held.connection is connection]:
            self._let_go(pull)
