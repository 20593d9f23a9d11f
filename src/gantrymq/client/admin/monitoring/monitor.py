"""Watches a cluster: all groups once a round, and at once what was deleted before it was read.

Every request is one of RocketMQ's, so that its clusters can be watched as well. RocketMQ 5 does not
write events about moved offsets; what was deleted is then seen as `deletedUnread` of a round.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.client.admin.admin import Admin
from gantrymq.client.admin.groups.all_progress import AllProgress, progress_at
from gantrymq.client.admin.groups.group_settings import INTERNAL_GROUPS, Settings
from gantrymq.client.admin.groups.lag import READER, Backlog, GroupLag, is_behind
from gantrymq.client.admin.groups.members import together
from gantrymq.client.admin.messages.message_query import read_records
from gantrymq.client.admin.monitoring.monitor_round import (
    MonitorRound,
    OffsetMovedEvent,
    Problem,
    Thresholds,
)
from gantrymq.client.admin.tables import load_keyed
from gantrymq.client.consume.membership import queue_offsets
from gantrymq.client.consume.queues.pull_request import PullStatus, pull_raw
from gantrymq.client.core.errors import NoRoute
from gantrymq.client.messages.received import Received
from gantrymq.model import OFFSET_MOVED_TOPIC, Queue

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 60.0
HOLD_SECONDS: Final = 20.0
AGAIN_SECONDS: Final = 5.0

OnRound = Callable[[MonitorRound, list[Problem]], Awaitable[None]]
OnMoved = Callable[[OffsetMovedEvent], Awaitable[None]]


class Monitor:
    """Looks at all groups again and again; tells what it saw to two functions."""

    def __init__(
        self,
        admin: Admin,
        *,
        on_round: OnRound,
        on_moved: OnMoved,
        thresholds: Thresholds | None = None,
    ) -> None:
        self._admin, self._on_round, self._on_moved = admin, on_round, on_moved
        self._limits = thresholds or Thresholds()
        self._dead: dict[str, int] | None = None
        self._number = 0
        self._watched: dict[Queue, asyncio.Task[None]] = {}

    async def run(self, every: float = EVERY_SECONDS, *, rounds: int | None = None) -> None:
        """Run so many rounds, or until cancelled; the first one is taken at once."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            try:
                while rounds is None or self._number < rounds:
                    begun = loop.time()
                    await self._watch_events(tasks)
                    found = await self.look()
                    await self._on_round(found, found.problems(self._limits))
                    if self._number != rounds:
                        await asyncio.sleep(max(0.0, begun + every - loop.time()))
            finally:
                for task in self._watched.values():
                    task.cancel()
                self._watched.clear()

    async def look(self) -> MonitorRound:
        """All groups now. A server that does not answer is noted, not raised."""
        self._number += 1
        admin = self._admin
        unknown: list[str] = []
        groups: list[GroupLag] = []
        try:
            masters, names = await admin.masters(), frozenset(await admin.topics())
            known, progress = await self._tables(masters, unknown)
            groups = await self._all_groups(known, progress, names, masters, unknown)
        except GantryError as error:
            unknown.append(str(error))
        dead = {group.group: group.dead_count for group in groups}
        before = self._dead
        self._dead = (before or {}) | dead
        new = {} if before is None else {n: c - before.get(n, 0) for n, c in dead.items()}
        new = {name: count for name, count in new.items() if count > 0}
        now_ms = admin.instance.clock.now_ms()
        return MonitorRound(self._number, now_ms, tuple(groups), new, tuple(unknown))

    async def _tables(
        self, masters: dict[str, str], unknown: list[str]
    ) -> tuple[Settings, AllProgress]:
        """The settings and the progress of all groups; one that is down is taken out of masters."""
        known: Settings = {}
        progress: AllProgress = {}
        for name, address in list(masters.items()):
            try:
                configs = await self._admin.group_configs(address)
                rows = await progress_at(self._admin, address, configs)
            except GantryError as error:
                unknown.append(f"broker {name} does not answer: {error}")
                del masters[name]
                continue
            for group, config in configs.items():
                if not group.startswith(INTERNAL_GROUPS):
                    known.setdefault(group, {})[name] = config
                    progress.setdefault(group, {}).update(rows.get(group, {}))
        return dict(sorted(known.items())), progress

    async def _all_groups(
        self,
        known: Settings,
        progress: AllProgress,
        names: frozenset[str],
        masters: dict[str, str],
        unknown: list[str],
    ) -> list[GroupLag]:
        backlog = Backlog(self._admin)

        async def one(group: str) -> GroupLag | GantryError:
            try:
                if is_behind(progress[group]):
                    return await backlog.look(group, None, known, names, masters)
                return await backlog.glance(group, names, masters)
            except GantryError as error:
                return error

        found = await together(one(group) for group in known)
        failed = [str(each) for each in found if isinstance(each, GantryError)]
        unknown += [
            f"{counted(failed.count(text), 'group')} not looked at: {text}"
            for text in dict.fromkeys(failed)
        ]
        return [each for each in found if isinstance(each, GroupLag)]

    # events about moved offsets

    async def _watch_events(self, tasks: asyncio.TaskGroup) -> None:
        """Follow the events of each broker from now on; brokers may join later."""
        instance = self._admin.instance
        try:
            route = await instance.routes.refresh(OFFSET_MOVED_TOPIC)
        except (NoRoute, GantryError):
            return  # RocketMQ makes the topic with its first event
        for queue in instance.routes.subscribe_queues(route, OFFSET_MOVED_TOPIC):
            if queue not in self._watched:
                try:
                    offset = await queue_offsets.max_offset(instance, queue)
                except GantryError:
                    continue  # tried again in the next round
                self._watched[queue] = tasks.create_task(self._follow(queue, offset))

    async def _follow(self, queue: Queue, offset: int) -> None:
        instance = self._admin.instance
        while True:
            try:
                pulled = await pull_raw(instance, READER, queue, offset, suspend=HOLD_SECONDS)
            except GantryError:
                await asyncio.sleep(AGAIN_SECONDS)  # the broker is down: each round says so
                continue
            if pulled.status is PullStatus.FOUND:
                for message in read_records(pulled.body, queue.broker_name):
                    event = moved_event(message)
                    if event is not None:
                        await self._on_moved(event)
            if pulled.status is not PullStatus.NO_NEW:
                offset = pulled.next_offset


def moved_event(message: Received) -> OffsetMovedEvent | None:
    """The event of a message in OFFSET_MOVED_EVENT; None for one that has no event."""
    try:
        body = load_keyed(message.body)
        place = body["messageQueue"]
        return OffsetMovedEvent(
            str(body["consumerGroup"]),
            Queue(str(place["topic"]), str(place["brokerName"]), int(place["queueId"])),
            int(body["offsetRequest"]),
            int(body["offsetNew"]),
            message.store_ms,
        )
    except (GantryError, KeyError, TypeError, ValueError):
        log.warning("%s is no event about a moved offset", message.offset_msg_id)
        return None
