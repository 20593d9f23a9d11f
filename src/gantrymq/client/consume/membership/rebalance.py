"""The rebalance: who is in the group, which queues are mine, and when to look again.

There is no leader. Every member asks a broker for the list of client ids, sorts queues and
members in the same way and applies the same strategy (`protocol.assignment`), so all arrive at
the same assignment without talking to each other. For a moment they may not: a member that does
not know yet of another one holds a queue that is the other's. Two may then read one queue;
ordered consumers are kept apart by the broker's locks, others see messages twice.

When: at the start, every interval, at once when a broker tells of a change of members
(NOTIFY_CONSUMER_IDS_CHANGED, 40) or a route changes, and soon again while a step was not settled,
for instance because a queue is still locked by its former owner.

What always holds: a step that cannot know the members changes nothing. A broker that is away must
not make every member believe that it is alone.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.client.core.instance import Instance
from gantrymq.model import Queue, Route
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.assignment import Strategy, in_java_order
from gantrymq.protocol.bodies import ConsumerIdList
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.clients import GroupRequest
from gantrymq.remoting.connection import Connection

log = logging.getLogger(__name__)

RETRY_SECONDS_MIN: Final = 0.1
"""First pause when not everything could be settled; it doubles up to what the step allows."""

Step = Callable[[], Awaitable[float | None]]
"""Returns None when all is settled, else the longest pause (s) before the next step."""


async def members_of(instance: Instance, group: str, route: Route) -> list[str] | None:
    """The client ids of a group as one of the topic's brokers knows them; None: none answers."""
    brokers = list(route.broker_datas)
    instance.rng.shuffle(brokers)
    for broker in brokers:
        address = broker.master or next(iter(broker.broker_addrs.values()), None)
        if address is None:
            continue
        try:
            _, answer = await instance.call(
                address, calls.GET_CONSUMER_LIST_BY_GROUP, GroupRequest(consumer_group=group)
            )
        except GantryError as error:
            log.info("members of %s not known at %s: %s", group, address, error)
            continue
        return in_java_order(fastjson.load_as(answer.body, ConsumerIdList).consumer_id_list)
    return None


async def my_queues(
    instance: Instance, group: str, topic: str, strategy: Strategy, *, broadcast: bool
) -> list[Queue] | None:
    """This member's queues of a topic; None when route or members are not known: keep all."""
    try:
        route = await instance.routes.get(topic)
    except GantryError as error:
        log.info("queues of %s not known: %s", topic, error)
        return None
    queues = sorted(instance.routes.subscribe_queues(route, topic))
    if broadcast:
        return queues
    members = await members_of(instance, group, route)
    if members is not None and instance.client_id not in members:
        # The broker does not know this client yet, or restarted: send a heartbeat, ask again.
        await instance.heartbeat_now()
        members = await members_of(instance, group, route)
    if not members:
        return None
    return strategy(instance.client_id, queues, members)


class RebalanceService:
    """Runs a step now, every interval, whenever woken, and soon again while it is unsettled."""

    def __init__(self, instance: Instance, group: str, interval: float) -> None:
        self._instance, self._group, self._interval = instance, group, interval
        self._woken = asyncio.Event()
        self._ends: list[Callable[[], None]] = []

    def start(self, step: Step, background: Background) -> None:
        """Run steps, also when the group's members or a route change. A second call does nothing.

        A broker tells of a change of members by NOTIFY_CONSUMER_IDS_CHANGED (40).
        """
        if self._ends:
            return
        routes, code = self._instance.routes, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        routes.on_change.append(self.wake)
        self._ends = [
            self._instance.on_request(code, self._members_changed),
            lambda: routes.on_change.remove(self.wake),
        ]
        background.spawn(self._run(step))

    def stop(self) -> None:
        """Listen to changes no more; the steps end with the background they run in."""
        for end in self._ends:
            end()

    async def _members_changed(self, _: Connection, command: Command) -> Command | None:
        if command.ext.get("consumerGroup") != self._group:
            return None
        self.wake()
        return Command(code=0)

    def wake(self) -> None:
        """Run the next step now, not after the interval."""
        self._woken.set()

    async def _run(self, step: Step) -> None:
        pause = RETRY_SECONDS_MIN
        while True:
            self._woken.clear()
            try:
                bearable = await step()
            except Exception:
                log.exception("rebalance of %s failed; it is tried again", self._group)
                bearable = self._interval
            pause = RETRY_SECONDS_MIN if bearable is None else min(pause * 2, bearable)
            wait = self._interval if bearable is None else min(pause, self._interval)
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                continue
            pause = RETRY_SECONDS_MIN
