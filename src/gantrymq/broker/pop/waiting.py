"""Long polling of POP: requests that wait for messages of a topic and group.

Requests of one topic and group share one room, which watches the ends of the queues for all of
them. A new message wakes as many as find messages, in order of arrival; the others stay parked.
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from typing import Protocol

from gantrymq.base.watermark import Parked, Watermark
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.remoting.connection import Connection
from gantrymq.store.engine import Store

WOKEN_PER_TURN = 32
"""How many are served before others have a turn of the loop."""

Watch = Mapping[tuple[str, int], int]
"""(topic, queue) to the end at which looking again may find something."""


class Waiter(Protocol):
    """A request that can be held."""

    connection: Connection
    topic: str
    group: str
    queue_id: int
    deadline: float
    """In the loop's time."""
    timer: asyncio.TimerHandle | None

    @property
    def kind(self) -> Hashable:
        """Requests of one kind find the same messages: if one finds none, neither do the others."""

    def attempt(self) -> bool:
        """Try again: answer, or be held again. False if there is certainly no message now."""

    def expire(self) -> None:
        """The deadline has passed: answer."""


class _Room:
    __slots__ = ("parked", "scheduled", "timer", "timer_at", "waiters")

    def __init__(self) -> None:
        self.waiters: dict[Waiter, None] = {}
        self.parked: dict[tuple[str, int], tuple[Watermark, Parked]] = {}
        self.scheduled = False
        self.timer: asyncio.TimerHandle | None = None
        self.timer_at = float("inf")


class PollRooms:
    """All held requests, by topic and group."""

    def __init__(self, config: BrokerConfig, store: Store) -> None:
        self._config, self._store = config, store
        self._rooms: dict[tuple[str, str], _Room] = {}
        self._counts: dict[tuple[str, str, int], int] = {}
        self._total = 0

    def has_place(self, waiter: Waiter) -> bool:
        """Whether RocketMQ's two limits allow one more: by topic, group and queue, and in all."""
        if self._total >= self._config.max_pop_polling_size:
            return False
        here = self.waiting(waiter.topic, waiter.group, waiter.queue_id)
        return here <= self._config.pop_polling_size

    def waiting(self, topic: str, group: str, queue_id: int) -> int:
        return self._counts.get((topic, group, queue_id), 0)

    def hold(self, waiter: Waiter, watch: Watch, look_at: float | None) -> None:
        """Hold a request until a watched queue grows, `look_at` (loop time) or its deadline."""
        key = waiter.topic, waiter.group
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = _Room()
        room.waiters[waiter] = None
        self._count(waiter, 1)
        loop = waiter.connection.loop
        if waiter.timer is None:
            waiter.timer = loop.call_at(waiter.deadline, self._expire, waiter)
        for place, target in watch.items():
            self._park(key, room, place, target)
        if look_at is not None and look_at < room.timer_at:
            if room.timer is not None:
                room.timer.cancel()
            room.timer_at = look_at
            room.timer = loop.call_at(look_at, self._timed, key, room)

    def _park(self, key: tuple[str, str], room: _Room, place: tuple[str, int], target: int) -> None:
        # A park stays when its request ends: cancelled parks would pile up in a quiet queue.
        mark, known = self._store.queues.arrivals(*place), room.parked.get(place)
        if known is not None and known[0] is mark:
            return  # else the topic was deleted and created again

        def reached() -> None:
            room.parked.pop(place, None)
            self._schedule(key, room)

        if mark.value >= target:
            self._schedule(key, room)
        else:
            room.parked[place] = mark, mark.park(target, reached)

    def _timed(self, key: tuple[str, str], room: _Room) -> None:
        room.timer, room.timer_at = None, float("inf")
        self._schedule(key, room)

    # waking

    def wake(self, topic: str, group: str) -> None:
        """Try the held requests again: a queue was opened or released without a new message."""
        room = self._rooms.get((topic, group))
        if room is not None:
            self._schedule((topic, group), room)

    def _schedule(self, key: tuple[str, str], room: _Room) -> None:
        if not room.scheduled:
            room.scheduled = True
            asyncio.get_running_loop().call_soon(self._begin, key, room)

    def _begin(self, key: tuple[str, str], room: _Room) -> None:
        room.scheduled = False
        self._serve(key, room, list(room.waiters), {})

    def _serve(
        self,
        key: tuple[str, str],
        room: _Room,
        waiters: list[Waiter],
        fruitless: dict[Hashable, None],
    ) -> None:
        for number, waiter in enumerate(waiters):
            if number == WOKEN_PER_TURN:
                rest = waiters[number:]
                asyncio.get_running_loop().call_soon(self._serve, key, room, rest, fruitless)
                return
            if waiter.kind in fruitless or waiter not in room.waiters:
                continue
            self._take_out(room, waiter)
            if not waiter.connection.open:
                self._stop_timer(waiter)
            elif not waiter.attempt():
                fruitless[waiter.kind] = None
        if not room.waiters and not room.parked and self._rooms.get(key) is room:
            if room.timer is not None:
                room.timer.cancel()
            del self._rooms[key]

    def _expire(self, waiter: Waiter) -> None:
        waiter.timer = None
        room = self._rooms.get((waiter.topic, waiter.group))
        if room is not None and waiter in room.waiters:
            self._take_out(room, waiter)
            waiter.expire()

    def _take_out(self, room: _Room, waiter: Waiter) -> None:
        del room.waiters[waiter]
        self._count(waiter, -1)

    def _count(self, waiter: Waiter, step: int) -> None:
        key = waiter.topic, waiter.group, waiter.queue_id
        self._total += step
        left = self._counts.get(key, 0) + step
        if left:
            self._counts[key] = left
        else:
            del self._counts[key]

    def _stop_timer(self, waiter: Waiter) -> None:
        if waiter.timer is not None:
            waiter.timer.cancel()
            waiter.timer = None

    # end of held requests

    def _each(self, wanted: Callable[[Waiter], bool]) -> list[Waiter]:
        found = []
        for room in self._rooms.values():
            for waiter in [one for one in room.waiters if wanted(one)]:
                self._take_out(room, waiter)
                self._stop_timer(waiter)
                found.append(waiter)
        return found

    def release_all(self) -> None:
        """Answer all held requests, because the broker stops."""
        for waiter in self._each(lambda waiter: True):
            waiter.expire()

    def release(self, group: str) -> None:
        """Answer the held requests of a group."""
        for waiter in self._each(lambda waiter: waiter.group == group):
            waiter.expire()

    def forget(self, connection: Connection) -> None:
        """Drop the held requests of a closed connection."""
        self._each(lambda waiter: waiter.connection is connection)
