"""A push consumer between start and close: a member of its group that pulls and hands out."""

import logging
from collections.abc import Sequence
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.client.consume.broker_requests import ServerRequests
from gantrymq.client.consume.handling.handler_registration import HandlerRegistration
from gantrymq.client.consume.handling.workers import Workers
from gantrymq.client.consume.membership.assignment_waiters import AssignmentWaiters
from gantrymq.client.consume.membership.one_host import check_one_host
from gantrymq.client.consume.membership.readiness import Readiness
from gantrymq.client.consume.membership.rebalance import RebalanceService
from gantrymq.client.consume.membership.send_back import SendBacks
from gantrymq.client.consume.membership.setup import Setup
from gantrymq.client.consume.membership.subscriptions import Subscriptions
from gantrymq.client.consume.push.consumer_end import ConsumerEnd
from gantrymq.client.consume.push.consumer_settings import ConsumerSettings
from gantrymq.client.consume.queues.process_queues import ProcessQueues
from gantrymq.client.consume.queues.ready_queues import ReadyQueues
from gantrymq.client.core.consumer_errors import ConsumerMisused
from gantrymq.client.core.errors import BrokerRefused
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.lifecycle import RunningPart
from gantrymq.client.spans import ConsumeSpans
from gantrymq.client.tracing import TraceWriter
from gantrymq.model import RETRY_PREFIX, Queue
from gantrymq.protocol.bodies import ConsumerData

log = logging.getLogger(__name__)

LOCK_RENEW_SECONDS: Final = 20.0
EXPIRE_SECONDS_MAX: Final = 60.0
"""How often at least messages are looked for whose handler takes too long."""


class RunningConsumer(RunningPart):
    """The parts of one started consumer; `open` joins the group, `close` leaves it."""

    def __init__(
        self,
        instance: Instance,
        settings: ConsumerSettings,
        subscriptions: Subscriptions,
        handler: HandlerRegistration,
        end: ConsumerEnd,
        tracing: TraceWriter | None,
    ) -> None:
        super().__init__(instance)
        self.pid = instance.pid
        self._settings, self._subscriptions, self._handler = settings, subscriptions, handler
        self._end, self._tracing = end, tracing
        group, options = settings.group, settings.options
        self.background = Background(f"consumer group {group}")
        spans = settings.spans
        self.ready = ReadyQueues(tracing if spans is None else ConsumeSpans(spans, tracing))
        self.workers = Workers(self.ready)
        self.waiters = AssignmentWaiters()
        self.readiness_logged = False
        """Whether a caller waited for messages already, so that what is missing was logged."""
        setup = Setup(
            instance,
            group,
            options,
            settings.ordered,
            self._assign,
            settings.begin_ms(instance.clock.now_ms()),
            subscriptions.table,
        )
        self._offsets = settings.offsets or setup.offset_store()
        self._rebalance = RebalanceService(instance, group, options.rebalance_interval_ms / 1000)
        send_back = None
        if not settings.broadcast:
            send_back = SendBacks(instance, group, settings.retries_max_for_brokers)
        self.process_queues = ProcessQueues(
            setup,
            self.ready,
            self._offsets,
            send_back,
            retries_max=settings.retries_max,
            spawn=self.background.spawn,
            wake=self._rebalance.wake,
        )
        self.process_queues.on_change.append(self.waiters.wake)
        self.readiness = Readiness(
            group, instance.routes, subscriptions.table, self.process_queues.unknown
        )
        self._requests = ServerRequests(setup, self.process_queues, lambda: handler.work)

    def _assign(self, mine: str, queues: Sequence[Queue], members: Sequence[str]) -> list[Queue]:
        """The strategy's assignment; a consumer with tracing records the members."""
        if self._tracing is not None:
            self._tracing.note_members(members)
        return self._settings.chosen_strategy(mine, queues, members)

    # life

    async def open(self) -> None:
        """Load the progress, join the group, start pulling; on an error leave nothing behind."""
        instance, settings, background = self.instance, self._settings, self.background
        await self._offsets.load()
        await self._start_once()
        instance.register_consumer(settings.group, self._consumer_data)
        self._requests.listen()
        self._subscriptions.start(instance, self._rebalance.wake)
        self._rebalance.start(self._step, background)
        persist_seconds = instance.options.persist_offset_interval_ms / 1000
        background.every(persist_seconds, self.process_queues.persist)
        expire_seconds = settings.options.consume_timeout_ms / 1000
        background.every(min(expire_seconds, EXPIRE_SECONDS_MAX), self._expire)
        if settings.ordered:
            background.every(LOCK_RENEW_SECONDS, self.process_queues.renew_locks)
        if self._handler.work is not None:
            self.workers.start(self._handler.work, settings.options.consume_thread_max)

    async def _start_once(self) -> None:
        once, instance, group = self._settings.once, self.instance, self._settings.group
        if once is None:
            return
        if self._settings.broadcast:
            raise ConsumerMisused("every member of a broadcasting group does all work: no `once`")
        if self._settings.one_host:
            await check_one_host(instance, group, self._subscriptions.table)
        await once.start(group, instance.clock, instance.rng, self.background)

    async def close(self) -> None:
        """Wait for handlers, store the progress, leave the group."""
        self.waiters.wake()
        self._requests.stop()
        self._rebalance.stop()
        self.process_queues.stop_pulls()
        self.ready.close()
        await self.workers.stop(self._settings.close_grace)
        await self.background.close()
        self._subscriptions.stop()
        await self.process_queues.close()
        if self._tracing is not None:
            await self._tracing.close()
        if self._settings.once is not None:
            await self._settings.once.close()
        await self.instance.unregister_consumer(self._settings.group)

    def fail(self, error: GantryError) -> None:
        """End the consumer by an error: callers that wait for messages get it."""
        log.error("consumer group %s: %s", self._settings.group, error)
        self._end.reach(error)
        self.ready.close()
        self.waiters.wake()

    # the group

    @property
    def assignment(self) -> list[Queue]:
        """The queues this member holds now, its group's retry queues left out."""
        held = self.process_queues.held
        return sorted(queue for queue in held if not queue.topic.startswith(RETRY_PREFIX))

    def _consumer_data(self) -> ConsumerData:
        options = self._settings.options
        return ConsumerData(
            consume_from_where=options.consume_from_where,
            consume_type="CONSUME_PASSIVELY",
            group_name=self._settings.group,
            message_model=options.message_model,
            subscription_data_set=list(self._subscriptions.table.values()),
        )

    async def _step(self) -> float | None:
        """One rebalance: announce subscriptions, take and give up queues."""
        group = self._settings.group
        try:
            await self._subscriptions.announce()
        except BrokerRefused as error:
            self.fail(error)
        except GantryError as error:
            log.warning("subscriptions of %s not announced: %s", group, error)
        if self._settings.one_host:
            try:
                await check_one_host(self.instance, group, self._subscriptions.table)
            except ConsumerMisused as error:
                self.fail(error)
                return None
        bearable = await self.process_queues.rebalance()
        self.readiness.look()
        return bearable

    async def _expire(self) -> None:
        seconds = self._settings.options.consume_timeout_ms / 1000
        await self.process_queues.expire(seconds, ordered_too=self._handler.work is None)

    def log_readiness(self) -> None:
        """A caller waits for messages: log what cannot be read, the first time."""
        if not self.readiness_logged:
            self.readiness_logged = True
            self.readiness.look(waits=True)
