"""The pending sends of one producer: choose a queue, transmit, settle, retry.

This is the ordinary way, which every send can go; `turn_sends` has the way of plain ones. A send
that has to wait (for a route or a connection) waits in a list, in order.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.base.network import ConnectFailed
from gantrymq.client.core.connections import BrokerConnection
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerRefused, BrokerUnknown, NoMaster
from gantrymq.client.core.instance import Instance
from gantrymq.client.core.options import ProducerOptions
from gantrymq.client.sending.latency_fault import TABLES, FaultTable
from gantrymq.client.sending.pending_send import PendingSend, SendTarget
from gantrymq.client.sending.publications import Publications
from gantrymq.client.sending.send_answers import failure_of, result_of
from gantrymq.client.sending.send_policy import STATUS_BY_CODE
from gantrymq.client.sending.send_request import PreparedMessage, is_unusual
from gantrymq.client.sending.send_window import SendWindow
from gantrymq.client.sending.trace_sink import TraceSink
from gantrymq.client.sending.wait_list import Waitlist
from gantrymq.model import SendResult
from gantrymq.protocol.calls import SEND_BATCH_MESSAGE, SEND_MESSAGE_V2, SEND_REPLY_MESSAGE_V2
from gantrymq.protocol.codes import NOT_LEADER
from gantrymq.protocol.command import Command, encode
from gantrymq.remoting.pending_call import CallTimeout

LOOK_AGAIN_SECONDS: Final = 0.1
"""How often name servers are asked for a new master while sends wait for one."""
REACHED_NOBODY: Final = (ConnectFailed, BrokerUnknown, NoMaster)
RETRYABLE: Final = (*TRANSPORT_ERRORS, BrokerUnknown)
_REPLY_MARK: Final = "MSG_TYPE\x01reply\x02"


class PendingSends:
    """Takes prepared messages to their results."""

    def __init__(
        self,
        instance: Instance,
        group: str,
        options: ProducerOptions,
        trace: TraceSink | None = None,
    ) -> None:
        self._instance, self._trace = instance, trace
        self._connections, self._routes = instance.connections, instance.routes
        self._loop = asyncio.get_running_loop()
        self._settled: asyncio.Future[SendResult] = self._loop.create_future()
        self._settled.cancel()
        self._faults = (
            FaultTable(TABLES[options.latency_table], self._loop.time)
            if options.latency_fault
            else None
        )
        self._publications = Publications(instance, group, options, self._faults)
        self._by_topic = self._publications.by_topic
        self._for_route: Waitlist[PendingSend] = Waitlist(self.post, self._fail)
        self._for_connection: Waitlist[PendingSend] = Waitlist(self._transmit_again, self._fail)
        self._for_master: Waitlist[PendingSend] = Waitlist(self.post, self._fail)
        """Sends that reached no broker: each had no master, or it was gone."""
        self.window = SendWindow(options.window_messages, options.window_bytes)
        self.before_others: Callable[[], None] = lambda: None
        """Lets the plain sends of this turn leave, which no other send must overtake."""

    def add(self, pending: PendingSend) -> None:
        """Count a message in the window and send it."""
        self.window.enter(len(pending.prepared.body))
        self.post(pending)

    @property
    def is_plain(self) -> bool:
        """Whether sends may be plain: no latency faults, hooks or trace, and none waits."""
        waiting = self._for_route or self._for_connection or self._for_master
        return not (self._faults or self._instance.hooks or self._trace or waiting)

    def has_plain_way(self, topic: str) -> bool:
        """Whether a plain send to this topic can be written at once."""
        publication = self._by_topic.get(topic)
        if publication is None or publication.version != self._routes.version:
            return False
        if publication.unusual or not self.is_plain:
            return False
        target = publication.targets[(publication.cursor + 1) % len(publication.targets)]
        return target.has_plain_way

    def next_targets(self, topic: str, count: int) -> list[SendTarget]:
        """The queues of the next plain sends to a topic; its route may have changed meanwhile."""
        publication = self._publications.get(topic)
        return [] if publication is None else publication.next_targets(count)

    def stored(self, connection: BrokerConnection, count: int, size: int) -> None:
        """Note that a broker has stored so many messages of so many bytes."""
        if self._connections.silent:
            self._connections.heard(connection)
        self.window.leave(size, count)

    def post(self, pending: PendingSend) -> None:
        """Choose a queue and transmit; wait for the route first if the topic is unknown."""
        self.before_others()
        topic, publications = pending.prepared.topic, self._publications
        publication = self._by_topic.get(topic)
        if publication is None or publication.version != self._routes.version:
            publication = publications.get(topic)
        if topic in self._for_master:
            self._for_master.add(topic, pending, lambda: self._look_again(topic))
            return  # it must not overtake those that wait
        if publication is None or topic in self._for_route:
            self._for_route.add(topic, pending, lambda: publications.find_route(topic))
            return
        try:
            pending.target = publications.choose(pending, publication)
        except GantryError as error:
            self._fail(pending, error)
            return
        self._transmit(pending, pending.target)

    # transmitting

    def _transmit(self, pending: PendingSend, target: SendTarget) -> None:
        if not target.address:
            error = BrokerUnknown(f"broker {target.queue.broker_name!r} is in no route")
            self._fail(pending, error)
            return
        connection = self._connections.ready(target.address)
        waitlist = self._for_connection
        if connection is None or target.address in waitlist:
            address = target.address
            waitlist.add(address, pending, lambda: self._connections.get(address))
            return
        self._write(pending, target, connection)

    def _transmit_again(self, pending: PendingSend) -> None:
        """Transmit a send that waited for its connection."""
        target = pending.target
        assert target is not None
        connection = self._connections.ready(target.address)
        if connection is None:
            address = target.address
            self._for_connection.add(address, pending, lambda: self._connections.get(address))
        else:
            self._write(pending, target, connection)

    def _write(
        self, pending: PendingSend, target: SendTarget, connection: BrokerConnection
    ) -> None:
        target.connection = connection
        if self._faults is not None:
            pending.started = self._loop.time()
        prepared = pending.prepared
        if self._instance.hooks or is_unusual(prepared.topic):
            self._write_shown(pending, target, connection)
        else:
            connection.write(target.frames.frame(prepared, connection.expect(pending)))

    def _write_shown(
        self, pending: PendingSend, target: SendTarget, connection: BrokerConnection
    ) -> None:
        """Write the same request as a command, which hooks can see, change and stop."""
        command = self._command(pending.prepared, target)
        try:
            self._instance.before_request(target.address, command)
        except GantryError as error:
            pending.target = None  # the failure is not the broker's
            self._fail(pending, error)
            return
        if self._instance.hooks:
            pending.request = command
        command.opaque = connection.expect(pending)
        connection.write(encode(command))

    def _command(self, prepared: PreparedMessage, target: SendTarget) -> Command:
        call = SEND_BATCH_MESSAGE if prepared.batch else SEND_MESSAGE_V2
        if _REPLY_MARK in prepared.properties:
            call = SEND_REPLY_MESSAGE_V2
        header = target.frames.header(prepared)
        return Command(
            code=call.code, ext=header.to_ext(), body=prepared.body, codec=self._instance.codec
        )

    # settling

    def settle(self, pending: PendingSend, answer: Command | GantryError) -> None:
        """Handle the answer to a send, or the error in place of it."""
        target = pending.target
        assert target is not None
        if isinstance(answer, GantryError):
            if target.connection is not None and isinstance(answer, CallTimeout):
                self._connections.unheard(target.connection)
            self._fail(pending, answer)
            return
        if self._connections.silent and target.connection is not None:
            self._connections.heard(target.connection)
        if pending.request is not None:
            self._instance.after_response(target.address, pending.request, answer)
        status = STATUS_BY_CODE.get(answer.code)
        if status is None:
            self._fail(pending, BrokerRefused(answer.code, answer.remark, target.address))
            return
        if self._faults is not None:
            latency_ms = (self._loop.time() - pending.started) * 1000
            self._faults.record(target.queue.broker_name, latency_ms)
        try:
            result = result_of(status, pending.prepared.msg_id, target, answer)
        except GantryError as error:
            self._fail(pending, error)
            return
        if self._trace is not None:
            self._trace.sent(pending.prepared, target.address, result, answer)
        if pending.when_stored_less and answer.code and self._may_retry(pending):
            pending.stored = result
            pending.tried += (target.queue.broker_name,)
            self.post(pending)
            return
        self.window.leave(len(pending.prepared.body))
        if not pending.future.done():
            pending.future.set_result(result)

    def _fail(self, pending: PendingSend, error: GantryError) -> None:
        """Retry if the error allows it, else fail the caller's future."""
        if pending.target is not None:
            broker_name = pending.target.queue.broker_name
            pending.tried += (broker_name,)
            if self._faults is not None:
                latency_ms = (self._loop.time() - pending.started) * 1000
                self._faults.record(broker_name, latency_ms, failed=True)
        if isinstance(error, BrokerRefused):
            worth_it = error.code in pending.retry_codes
        else:
            worth_it = isinstance(error, RETRYABLE)
        if self._waits_for_master(pending, error):
            topic = pending.prepared.topic
            pending.tried = tuple(dict.fromkeys(pending.tried))
            self._for_master.add(topic, pending, lambda: self._look_again(topic))
            return
        if worth_it and self._may_retry(pending):
            self.post(pending)
            return
        self.window.leave(len(pending.prepared.body))
        # The error's traceback refers to this send: drop the future, which refers to the error.
        future, pending.future = pending.future, self._settled
        if future.done():
            return
        if pending.stored is not None:
            future.set_result(pending.stored)
        else:
            future.set_exception(failure_of(pending, error))

    def _waits_for_master(self, pending: PendingSend, error: GantryError) -> bool:
        """Whether a send that reached no master waits for one: there is no other broker to try.

        It was not sent, so the wait costs no try and breaks no order; its deadline ends it.
        """
        if isinstance(error, BrokerRefused):
            missed = (error.remark or "").startswith(NOT_LEADER)
        else:
            missed = isinstance(error, REACHED_NOBODY)
        if not missed or pending.future.done():
            return False
        if pending.deadline <= self._loop.time() + LOOK_AGAIN_SECONDS:
            return False
        if isinstance(error, NoMaster):
            return True
        publication = self._by_topic.get(pending.prepared.topic)
        if publication is None or pending.target is None:
            return False
        untried = (
            target
            for target in publication.targets
            if target.queue.broker_name not in pending.tried
        )
        return pending.tries_left <= 1 or next(untried, None) is None

    async def _look_again(self, topic: str) -> None:
        """Ask name servers who the master is by now."""
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
        with suppress(GantryError):
            await self._routes.refresh(topic)

    def _may_retry(self, pending: PendingSend) -> bool:
        if pending.tries_left <= 1 or pending.deadline <= self._loop.time():
            return False
        if pending.future.done():
            return False  # the caller gave up: do not retry
        pending.tries_left -= 1
        return True

    # without an answer

    async def oneway(self, pending: PendingSend) -> None:
        """Write the message without waiting for an answer."""
        topic = pending.prepared.topic
        await self._publications.find_route(topic)
        publication = self._publications.get(topic)
        if publication is None:
            raise BrokerUnknown(f"topic {topic!r} has no queue to write to")
        target = self._publications.choose(pending, publication)
        if not target.address:
            raise BrokerUnknown(f"broker {target.queue.broker_name!r} is in no route")
        connection = await self._connections.get(target.address)
        self.before_others()
        # A one-way message has no answer, so only the socket limits the rate.
        await connection.drained()
        command = self._command(pending.prepared, target)
        self._instance.before_request(target.address, command)
        connection.oneway(command)

    async def close(self) -> None:
        """Wait until no send is pending."""
        await self.window.idle()
        await self._for_route.close()
        await self._for_connection.close()
        await self._for_master.close()
