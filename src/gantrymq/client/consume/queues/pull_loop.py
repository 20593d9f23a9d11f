"""The pull loop: one task for each process queue asks for the next messages, again and again.

A pull asks for what follows `progress.next_offset`. The broker holds it while there is nothing,
so the loop has no timer of its own: an answer is followed by the next pull at once.

What each outcome means:

| outcome | what follows |
|---|---|
| messages | they join the process queue and are offered to handlers; the next pull begins behind |
| as many messages as were asked for | the same, and the next pull asks for more (`flow_control`) |
| nothing, or nothing that fits the subscription | the next pull begins where the broker says |
| the offset is outside the queue | the process queue is given up and taken again at the right one |
| the broker is busy | a short pause |
| refused, or no answer | a pause; the route is asked again, and a heartbeat tells who we are |
| too many unfinished messages | no pull until half of them are finished (`flow_control`) |

What always holds: no outcome and no exception ends the loop, only the process queue that is
dropped; no offset is passed over that was neither delivered nor filtered; an ordered queue is
pulled only while its lock is held.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.client.consume.flow_control import hold_reason, next_pull_size, pull_size
from gantrymq.client.consume.membership.setup import Setup
from gantrymq.client.consume.queues.ordered_queue import OrderedProcessQueue
from gantrymq.client.consume.queues.process_queue import ProcessQueue
from gantrymq.client.consume.queues.pull_request import PullAnswer, PullStatus, pull_raw
from gantrymq.client.consume.queues.ready_queues import ReadyQueues
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerRefused
from gantrymq.client.messages.delivery import Delivery
from gantrymq.kernel import cut_records
from gantrymq.model import Queue
from gantrymq.protocol.codes import ResponseCode

log = logging.getLogger(__name__)

ERROR_SECONDS: Final = 3.0
BUSY_SECONDS: Final = 0.02
HELD_SECONDS: Final = 1.0
"""Pause between two looks at a queue or a consumer that is paused."""
FULL_SECONDS: Final = 0.05
"""Longest pause while a queue has too many unfinished messages."""

_BUSY_CODES = (ResponseCode.SYSTEM_BUSY, ResponseCode.FLOW_CONTROL)
_UNKNOWN_MEMBER_CODES = (
    ResponseCode.SUBSCRIPTION_NOT_EXIST,
    ResponseCode.SUBSCRIPTION_NOT_LATEST,
    ResponseCode.FILTER_DATA_NOT_EXIST,
    ResponseCode.FILTER_DATA_NOT_LATEST,
)
"""The broker does not know this member or its subscription: a heartbeat tells it."""

OnMoved = Callable[[ProcessQueue, int], None]


class PullLoop:
    """The pulls of a consumer's process queues, one task a queue."""

    def __init__(
        self,
        setup: Setup,
        ready: ReadyQueues,
        on_moved: OnMoved,
        on_unlocked: Callable[[ProcessQueue], None],
        crowded: Callable[[], bool],
    ) -> None:
        self._setup, self._ready = setup, ready
        self._on_moved, self._on_unlocked, self._crowded = on_moved, on_unlocked, crowded
        self._limits = setup.flow_limits
        self._loop = asyncio.get_running_loop()

    async def run(self, process_queue: ProcessQueue) -> None:
        """Pull until the process queue is dropped. No outcome and no exception ends the loop."""
        while not process_queue.dropped:
            process_queue.last_pull = self._loop.time()
            try:
                pause = await self._once(process_queue)
            except Exception:
                log.exception("pull of %s failed", process_queue.queue)
                pause = ERROR_SECONDS
            if pause:
                await asyncio.sleep(pause)

    async def _once(self, process_queue: ProcessQueue) -> float:
        """One pull; returns the seconds to wait before the next."""
        now = self._loop.time()
        if isinstance(process_queue, OrderedProcessQueue) and not process_queue.is_locked(now):
            self._on_unlocked(process_queue)
            return 0.0
        if process_queue.paused or self._ready.held:
            return HELD_SECONDS
        if self._crowded() or hold_reason(self._limits, process_queue.progress) is not None:
            await self._wait_for_room(process_queue)
            return 0.0
        try:
            pulled = await self._pull(process_queue)
        except BrokerRefused as error:
            return await self._refused(process_queue.queue, error)
        except GantryError as error:
            log.warning("pull of %s: %s; again in %g s", process_queue.queue, error, ERROR_SECONDS)
            if isinstance(error, TRANSPORT_ERRORS):
                await self._refresh_route(process_queue.queue)
            return ERROR_SECONDS
        if process_queue.dropped:
            return 0.0
        process_queue.broker_id = pulled.broker_id
        self._accept(process_queue, pulled)
        return self._setup.options.pull_interval_ms / 1000

    async def _wait_for_room(self, process_queue: ProcessQueue) -> None:
        process_queue.room.clear()
        process_queue.room_below = max(self._limits.messages // 2, 1)
        try:
            async with asyncio.timeout(FULL_SECONDS):
                await process_queue.room.wait()
        except TimeoutError:
            pass
        finally:
            process_queue.room_below = 0

    async def _pull(self, process_queue: ProcessQueue) -> PullAnswer:
        setup, options = self._setup, self._setup.options
        subscription = setup.subscriptions.get(process_queue.queue.topic)
        progress = process_queue.progress
        process_queue.pull_size = pull_size(
            self._limits, progress, options.pull_batch_size, process_queue.pull_size
        )
        return await pull_raw(
            setup.instance,
            setup.group,
            process_queue.queue,
            progress.next_offset,
            max_count=process_queue.pull_size,
            suspend=options.broker_suspend_ms / 1000,
            timeout=options.pull_timeout_ms / 1000,
            subscription=subscription,
            broker_id=process_queue.broker_id,
            # The request has the tags, so that a broker that just restarted needs no heartbeat.
            registered=subscription is not None and subscription.expression_type != "TAG",
        )

    async def _refused(self, queue: Queue, error: BrokerRefused) -> float:
        if error.code in _BUSY_CODES:
            return BUSY_SECONDS
        log.warning("pull of %s: %s; again in %g s", queue, error, ERROR_SECONDS)
        if error.code in _UNKNOWN_MEMBER_CODES:
            await self._setup.instance.heartbeat_now()
        return ERROR_SECONDS

    async def _refresh_route(self, queue: Queue) -> None:
        """Refresh the route: the broker may have moved, or only its slave may answer."""
        instance = self._setup.instance
        try:
            await instance.routes.refresh(queue.topic)
        except GantryError as error:
            log.info("route of %s not refreshed: %s", queue.topic, error)
        await instance.heartbeat_now()

    def _accept(self, process_queue: ProcessQueue, pulled: PullAnswer) -> None:
        if pulled.status is PullStatus.OFFSET_MOVED:
            self._on_moved(process_queue, pulled.next_offset)
            return
        asked, process_queue.pull_size = process_queue.pull_size, 0
        if pulled.status is PullStatus.FOUND:
            messages, complete = self._messages(process_queue, pulled.body)
            first = self._setup.options.pull_batch_size
            process_queue.pull_size = next_pull_size(first, asked, len(messages))
            now = self._loop.time()
            process_queue.stats.pulled(now, now - process_queue.last_pull, len(messages))
            process_queue.add(messages)
            if not complete:
                return
        process_queue.progress.skip_to(pulled.next_offset)

    def _messages(self, process_queue: ProcessQueue, body: bytes) -> tuple[list[Delivery], bool]:
        """The pulled messages that fit the subscription; False when a bad record ended them."""
        cuts, bad = cut_records(body)
        if bad is not None:
            if not cuts:
                raise bad
            log.error("pull of %s: %s; pulled again behind the good ones", process_queue.queue, bad)
        queue = process_queue.queue
        found = [Delivery(body, body_at, head, queue, process_queue) for _, body_at, head in cuts]
        subscription = self._setup.subscriptions.get(queue.topic)
        if subscription is not None and subscription.tags_set:
            # The broker compares only hashes of tags.
            wanted = frozenset(subscription.tags_set)
            found = [message for message in found if message.tags in wanted]
        if bad is not None:
            process_queue.progress.skip_to(cuts[-1][2].queue_offset + 1)
        return found, bad is None
