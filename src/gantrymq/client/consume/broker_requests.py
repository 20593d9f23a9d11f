"""Requests that brokers send to a consumer: reset offsets, report status, consume one message."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from gantrymq.client.consume.handling.workers import Work
from gantrymq.client.consume.membership.offset_store import queue_key, queue_pairs
from gantrymq.client.consume.membership.setup import Setup
from gantrymq.client.consume.queues.process_queues import ProcessQueues
from gantrymq.client.consume.running_info import running_info
from gantrymq.client.messages.delivery import Delivery
from gantrymq.kernel import cut_records
from gantrymq.model import Queue
from gantrymq.protocol import fastjson
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)


class ServerRequests:
    """Answers requests about one group; returns None for another group of the same client."""

    def __init__(
        self,
        setup: Setup,
        process_queues: ProcessQueues,
        work: Callable[[], Work | None],
    ) -> None:
        self._setup, self._process_queues, self._work = setup, process_queues, work
        self._start_ms = setup.instance.clock.now_ms()
        self._removers: list[Callable[[], None]] = []

    def listen(self) -> None:
        on_request = self._setup.instance.on_request
        self._removers = [
            on_request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, self._reset),
            on_request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, self._status),
            on_request(RequestCode.GET_CONSUMER_RUNNING_INFO, self._running_info),
            on_request(RequestCode.CONSUME_MESSAGE_DIRECTLY, self._consume_directly),
        ]

    def stop(self) -> None:
        for remove in self._removers:
            remove()

    def _is_mine(self, command: Command, name: str) -> bool:
        return command.ext.get(name) == self._setup.group

    async def _reset(self, _: Connection, command: Command) -> Command | None:
        if not self._is_mine(command, "group"):
            return None
        table = fastjson.loads(command.body) if command.body else {}
        offsets = dict(queue_pairs(table.get("offsetTable")))
        log.warning("%s is reset: %s", self._setup.group, {str(q): o for q, o in offsets.items()})
        await self._process_queues.reset(offsets)
        return Command(code=0)

    async def _status(self, _: Connection, command: Command) -> Command | None:
        if not self._is_mine(command, "group"):
            return None
        topic = command.ext.get("topic")
        pairs = [
            (queue_key(queue), process_queue.progress.done)
            for queue, process_queue in self._process_queues.held.items()
            if not topic or queue.topic == topic
        ]
        body = fastjson.dump_object_keyed("messageQueueTable", pairs, consumerTable={})
        return Command(code=0, body=body)

    async def _running_info(self, _: Connection, command: Command) -> Command | None:
        if not self._is_mine(command, "consumerGroup"):
            return None
        loop, clock = asyncio.get_running_loop(), self._setup.instance.clock

        def wall_ms(at: float) -> int:
            return clock.now_ms() - int((loop.time() - at) * 1000) if at else 0

        process_queues = list(self._process_queues.held.values())
        body = running_info(
            self._setup,
            process_queues,
            self._process_queues.stats,
            self._start_ms,
            loop.time(),
            wall_ms,
        )
        return Command(code=0, body=body)

    async def _consume_directly(self, _: Connection, command: Command) -> Command | None:
        """Run the handler on one message and report the result; progress does not change."""
        if not self._is_mine(command, "consumerGroup"):
            return None
        work = self._work()
        if work is None:
            return Command(code=1, remark="this consumer has no handler to run the message with")
        cuts, bad = cut_records(command.body)
        if bad is not None or not cuts:
            return Command(code=1, remark=f"no message in the request: {bad}")
        _start, body_at, head = cuts[0]
        broker_name = command.ext.get("brokerName", "")
        owner = _DirectOwner()
        probe = Delivery(command.body, body_at, head, Queue("", broker_name, 0), owner)
        queue = Queue(probe.stored_topic, broker_name, head.queue_id)
        message = Delivery(command.body, body_at, head, queue, owner)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await work.run([message])
        result: dict[str, Any] = {
            "autoCommit": True,
            "consumeResult": "CR_SUCCESS" if owner.done else "CR_LATER",
            "order": self._setup.ordered,
            "spentTimeMills": int((loop.time() - started) * 1000),
        }
        return Command(code=0, body=fastjson.dumps(result))


class _DirectOwner:
    """The owner of a message outside of any process queue; records whether it was acked."""

    def __init__(self) -> None:
        self.done = False

    def acked(self, message: Delivery) -> None:
        self.done = True

    async def sent_back(self, message: Delivery, delay_level: int) -> None:
        self.done = False
