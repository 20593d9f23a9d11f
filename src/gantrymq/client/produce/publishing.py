"""Exactly-once publishing: the messages of an epoch become visible together, and only once.

A writer stages the messages of an epoch in the stage topic, which consumers do not read, then
publishes the epoch. To repeat a decided epoch changes nothing: the first decision is carried out,
and retention deletes what was staged again. Needs GantryMQ brokers; RocketMQ's refuse.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar
from zlib import crc32

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError
from gantrymq.base.network import Network
from gantrymq.client.core.errors import (
    TRANSPORT_ERRORS,
    BrokerRefused,
    BrokerUnknown,
    ClientError,
    NoNameServer,
)
from gantrymq.client.core.instance import Hook, Instance
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle, RunningPart
from gantrymq.client.core.options import ClientOptions, with_namesrv
from gantrymq.model import STAGE_TOPIC, Queue
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.bodies import ClusterInfo
from gantrymq.protocol.codes import ResponseCode
from gantrymq.protocol.headers.base import Nothing
from gantrymq.protocol.headers.messages import SendRequestV2
from gantrymq.protocol.publishing import (
    STAGE_QUEUES,
    EpochDecision,
    EpochRequest,
    PublishProgress,
    Share,
    Stretch,
    WriterRequest,
    WriterState,
)

log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 30.0
"""How long a broker may be away, or stand still, before an epoch is given up for now."""
CALL_SECONDS: Final = 15.0
GROUP: Final = "gantry-publisher"
PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX = 0.05, 2.0
STORED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
)
BUSY: Final = (ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE)

MENDABLE: Final = (*TRANSPORT_ERRORS, NoNameServer, BrokerUnknown)
"""Errors after which a request is repeated."""

T = TypeVar("T")
Shares = Mapping[str, Sequence[Stretch]]
"""What was staged, by broker name and in order."""


class NotSupported(ClientError):
    """The broker cannot publish epochs: it is RocketMQ's, or an older one."""


class CoordinatorAway(ClientError):
    """The coordinator, which keeps a writer's decisions, is not in the cluster."""


class EpochResult(NamedTuple):
    """The result of publishing an epoch."""

    messages: int
    """How many this call has published; 0 when an earlier one had done everything."""
    is_repeat: bool
    """Whether the epoch was decided before: what was staged this time is not used."""


class Publisher(Lifecycle[RunningPart]):
    """One writer's epochs. Use it in an `async with` block.

    The id names the writer for ever: a restarted writer must have the same id, and two running
    writers must not.
    """

    def __init__(
        self,
        namesrv: str | None,
        writer: str,
        *,
        client: ClientOptions | None = None,
        patience: float = PATIENCE_SECONDS,
        hooks: Iterable[Hook] = (),
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.writer, self._patience = writer, patience
        ports = ClientPorts(network, clock, rng)
        super().__init__("the publisher", with_namesrv(client, namesrv), ports, hooks)
        self._addresses: dict[str, str] = {}
        self._able: set[str] = set()
        """Brokers that are known to publish epochs."""

    async def _open(self, instance: Instance) -> RunningPart:
        return RunningPart(instance)

    async def _shut(self, running: RunningPart) -> None:
        """Nothing runs beside the instance."""

    # state of the writer

    async def last_epoch(self) -> int:
        """The last decided epoch, whose messages are or will be visible; -1 without one."""
        _, state = await self._coordinator(await self.states())
        return state.decided

    async def states(self) -> dict[str, WriterState | None]:
        """What every broker knows of the writer; None from brokers that cannot publish epochs.

        Waits for a broker that does not answer, unless the coordinator has answered: then the
        state of the others does not matter, and they are left out.
        """
        loop = asyncio.get_running_loop()
        give_up, pause = loop.time() + self._patience, PAUSE_SECONDS_FIRST
        while True:
            masters = await self._masters()
            answers = await asyncio.gather(
                *(self._state(name) for name in masters), return_exceptions=True
            )
            found: dict[str, WriterState | None] = {}
            away: list[str] = []
            for name, answer in zip(masters, answers, strict=True):
                if not isinstance(answer, BaseException):
                    found[name] = answer
                elif isinstance(answer, MENDABLE) or _is_busy(answer):
                    away.append(f"broker {name} does not answer: {answer}")
                else:
                    raise answer
            coordinators = {state.coordinator for state in found.values() if state} - {""}
            if not away or (coordinators and coordinators <= found.keys()):
                return found
            if loop.time() + pause > give_up:
                raise ClientError("; ".join(away))
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    async def _state(self, broker: str) -> WriterState | None:
        header = WriterRequest(writer=self.writer)
        try:
            _, answer = await self.instance.call(
                await self._address(broker), calls.GET_WRITER_STATE, header, timeout=CALL_SECONDS
            )
        except BrokerRefused as error:
            if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                return None
            raise
        self._able.add(broker)
        return fastjson.load_as(answer.body, WriterState)

    async def _masters(self) -> dict[str, str]:
        async def ask() -> dict[str, str]:
            _, answer = await self.instance.call_namesrv(calls.GET_BROKER_CLUSTER_INFO, Nothing())
            table = fastjson.load_as(answer.body, ClusterInfo).broker_addr_table
            return {name: data.master for name, data in sorted(table.items()) if data.master}

        self._addresses = await self._patiently(ask, "the name server")
        return self._addresses

    async def _address(self, broker: str) -> str:
        if broker not in self._addresses and broker not in await self._masters():
            raise BrokerUnknown(f"broker {broker} is not in the cluster")
        return self._addresses[broker]

    async def _coordinator(
        self, states: Mapping[str, WriterState | None]
    ) -> tuple[str, WriterState]:
        """The coordinator, which keeps the decisions, and its state. For a new writer a hash of its
        id chooses one of all brokers that can publish, so that concurrent callers choose the same
        one, wherever the messages go."""
        known = {state.coordinator for state in states.values() if state and state.coordinator}
        if len(known) > 1:
            raise ClientError(
                f"brokers disagree on who keeps the decisions of writer {self.writer!r}: "
                f"{', '.join(sorted(known))}. Give the job a new writer id"
            )
        if known:
            name = known.pop()
            state = states.get(name)
            if state is None:
                raise CoordinatorAway(
                    f"broker {name} keeps the decisions of writer {self.writer!r} and is not in "
                    "the cluster: start it, or give the job a new writer id (the epoch under way "
                    "may then be published twice)"
                )
            return name, state
        able = sorted(name for name, state in states.items() if state)
        if not able:
            raise NotSupported("no broker here can publish epochs: only GantryMQ's can")
        return able[crc32(self.writer.encode()) % len(able)], WriterState()

    # staging

    async def stage(
        self, queue: Queue, batch: bytes, count: int, last_id: str, *, timeout: float | None = None
    ) -> Stretch:
        """Stage the body of a batch send for one queue. May be repeated: only the stretches that
        `publish` names become visible."""
        if queue.broker_name not in self._able:
            await self._check_able(queue.broker_name)
        stage_queue = crc32(f"{self.writer}/{queue}".encode()) % STAGE_QUEUES
        header = SendRequestV2(
            producer_group=GROUP,
            topic=STAGE_TOPIC,
            queue_id=stage_queue,
            born_timestamp=self.instance.clock.now_ms(),
            properties="",
            batch=True,
            reconsume_times=0,
            unit_mode=False,
            bname=queue.broker_name,
        )

        async def send() -> Stretch:
            address = await self._address(queue.broker_name)
            answer, _ = await self.instance.call(
                address,
                calls.SEND_BATCH_MESSAGE,
                header,
                batch,
                timeout=timeout or CALL_SECONDS,
                expect=STORED,
            )
            return Stretch(
                stage_queue, answer.queue_offset, count, queue.topic, queue.queue_id, last_id
            )

        return await self._patiently(send, f"broker {queue.broker_name}")

    async def _check_able(self, broker: str) -> None:
        """Refuse RocketMQ's brokers: they would create the stage topic as an ordinary topic."""
        if await self._patiently(lambda: self._state(broker), f"broker {broker}") is None:
            raise NotSupported(f"broker {broker} cannot publish epochs: only GantryMQ's can")

    # publishing

    async def publish(self, epoch: int, shares: Shares) -> EpochResult:
        """Publish an epoch. When this returns all its messages are visible, once.

        After any error the same call with the same epoch may be repeated, also by another process,
        and finishes the epoch.
        """
        wanted = {name: list(share) for name, share in shares.items() if share}
        states = await self.states()
        name, state = await self._coordinator(states)
        if not state.complete and state.decided < epoch:
            log.warning("epoch %d of %s was left unfinished", state.decided, self.writer)
            await self._carry_out(name, state.decided, await self._decide(name, state.decided, {}))
        is_repeat = state.decided >= epoch
        if not is_repeat:
            # All brokers learn the coordinator, also those without messages: whichever broker is
            # down when the epoch is repeated, another one knows the coordinator.
            asked = {broker: wanted.get(broker, []) for broker in {*wanted, *_strangers(states)}}
            await asyncio.gather(
                *(self._prepare(broker, name, epoch, share) for broker, share in asked.items())
            )
        decision = await self._decide(name, epoch, {} if is_repeat else wanted)
        await self._carry_out(name, epoch, decision)
        return EpochResult(decision.count, is_repeat)

    async def finish(self, epoch: int) -> bool:
        """Publish an epoch that was decided before; False if it was not."""
        name, state = await self._coordinator(await self.states())
        if state.decided < epoch:
            return False
        await self._carry_out(name, epoch, await self._decide(name, epoch, {}))
        return True

    async def _carry_out(self, coordinator: str, epoch: int, decision: EpochDecision) -> None:
        """All brokers publish; the coordinator last, so that it knows the epoch is complete."""
        others = [name for name in decision.shares if name != coordinator]
        await asyncio.gather(
            *(
                self._publish_share(name, coordinator, epoch, decision.shares[name])
                for name in others
            )
        )
        own = decision.shares.get(coordinator, [])
        await self._publish_share(coordinator, coordinator, epoch, own)

    async def _prepare(self, broker: str, coordinator: str, epoch: int, share: Share) -> None:
        await self._ask(broker, calls.PREPARE_EPOCH, epoch, coordinator, fastjson.dumps(share))

    async def _decide(
        self, coordinator: str, epoch: int, shares: dict[str, Share]
    ) -> EpochDecision:
        body = fastjson.dumps(EpochDecision(shares=shares))
        answer = await self._ask(coordinator, calls.DECIDE_EPOCH, epoch, coordinator, body)
        return fastjson.load_as(answer, EpochDecision)

    async def _publish_share(self, broker: str, coordinator: str, epoch: int, share: Share) -> None:
        """Ask a broker to publish its share until done; raises when its progress stops."""
        loop, body = asyncio.get_running_loop(), fastjson.dumps(share)
        copied, give_up = -1, loop.time() + self._patience
        while True:
            answer = await self._ask(broker, calls.PUBLISH_EPOCH, epoch, coordinator, body)
            progress = fastjson.load_as(answer, PublishProgress)
            if progress.done:
                return
            if progress.copied > copied:
                copied, give_up = progress.copied, loop.time() + self._patience
            elif loop.time() > give_up:
                raise ClientError(
                    f"broker {broker} does not get on with epoch {epoch} of {self.writer!r}: "
                    f"{progress.trouble or 'no reason given'}. It goes on by itself; to be sure "
                    "publish the epoch again"
                )

    async def _ask(
        self,
        broker: str,
        call: calls.Call[EpochRequest, Nothing],
        epoch: int,
        coordinator: str,
        body: bytes,
    ) -> bytes:
        header = EpochRequest(writer=self.writer, epoch=epoch, coordinator=coordinator)

        async def ask() -> bytes:
            address = await self._address(broker)
            _, answer = await self.instance.call(address, call, header, body, timeout=CALL_SECONDS)
            return answer.body

        try:
            return await self._patiently(ask, f"broker {broker}")
        except BrokerRefused as error:
            if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise NotSupported(
                    f"broker {broker} cannot publish epochs: only GantryMQ's can"
                ) from error
            raise

    async def _patiently(self, ask: Callable[[], Awaitable[T]], whom: str) -> T:
        """Repeat a request while the peer does not answer or is busy; each may be repeated."""
        loop = asyncio.get_running_loop()
        give_up, pause = loop.time() + self._patience, PAUSE_SECONDS_FIRST
        while True:
            try:
                return await ask()
            except GantryError as error:
                if not (isinstance(error, MENDABLE) or _is_busy(error)):
                    raise
                if loop.time() + pause > give_up:
                    raise ClientError(f"{whom} does not answer: {error}") from error
                self._addresses = {}
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)


def _strangers(states: Mapping[str, WriterState | None]) -> list[str]:
    """Brokers that can publish epochs and do not know the writer."""
    return [name for name, state in states.items() if state and not state.coordinator]


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, BrokerRefused) and error.code in BUSY
