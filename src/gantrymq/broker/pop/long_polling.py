"""Long polling of POP: requests that wait for messages of a topic and group.

Requests of one topic and group are held together: the ends of their queues are watched once for
all of them. A new message wakes as many as find messages, in order of arrival; the others stay
parked.
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from typing import Protocol

from gantrymq.base.watermark import Parked, Watermark
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import LimitReached, Refusals
from gantrymq.store.engine import Store

WOKEN_PER_TURN = 32
"""How many are served before others have a turn of the loop."""

Watch = Mapping[tuple[str, int], int]
"""(topic, queue) to the end at which looking again may find something."""


class HeldRequest(Protocol):
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


class _Polling:
    """The held requests of one topic and group, and the marks on which they wait."""

    __slots__ = ("parked", "requests", "scheduled", "timer", "timer_at")

    def __init__(self) -> None:
        self.requests: dict[HeldRequest, None] = {}
        self.parked: dict[tuple[str, int], tuple[Watermark, Parked]] = {}
        self.scheduled = False
        self.timer: asyncio.TimerHandle | None = None
        self.timer_at = float("inf")


class PopLongPolling:
    """All held requests, by topic and group."""

    def __init__(self, config: BrokerConfig, store: Store, refusals: Refusals) -> None:
        self._config, self._store, self._refusals = config, store, refusals
        self._pollings: dict[tuple[str, str], _Polling] = {}
        self._counts: dict[tuple[str, str, int], int] = {}
        self._total = 0

    def full(self, request: HeldRequest) -> LimitReached | None:
        """The limit that does not allow one more; None if there is a place.

        RocketMQ has two, by topic, group and queue, and in all.
        """
        config, connection = self._config, request.connection
        if self._total >= config.max_pop_polling_size:
            key = "maxPopPollingSize"
        elif connection.polls_held >= config.max_polling_size_per_connection:
            key = "maxPollingSizePerConnection"
        elif self.waiting(request.topic, request.group, request.queue_id) > config.pop_polling_size:
            key = "popPollingSize"
        else:
            return None
        return self._refusals.reached(key, "too many pops wait", connection.address)

    def __len__(self) -> int:
        return self._total

    def waiting(self, topic: str, group: str, queue_id: int) -> int:
        return self._counts.get((topic, group, queue_id), 0)

    def hold(self, request: HeldRequest, watch: Watch, look_at: float | None) -> None:
        """Hold a request until a watched queue grows, `look_at` (loop time) or its deadline."""
        key = request.topic, request.group
        polling = self._pollings.get(key)
        if polling is None:
            polling = self._pollings[key] = _Polling()
        polling.requests[request] = None
        self._count(request, 1)
        loop = request.connection.loop
        if request.timer is None:
            request.timer = loop.call_at(request.deadline, self._expire, request)
        for place, target in watch.items():
            self._park(key, polling, place, target)
        if look_at is not None and look_at < polling.timer_at:
            if polling.timer is not None:
                polling.timer.cancel()
            polling.timer_at = look_at
            polling.timer = loop.call_at(look_at, self._timed, key, polling)

    def _park(
        self, key: tuple[str, str], polling: _Polling, place: tuple[str, int], target: int
    ) -> None:
        # A park stays when its request ends: cancelled parks would pile up in a quiet queue.
        mark, known = self._store.queues.arrivals(*place), polling.parked.get(place)
        if known is not None and known[0] is mark:
            return  # else the topic was deleted and created again

        def reached() -> None:
            polling.parked.pop(place, None)
            self._schedule(key, polling)

        if mark.value >= target:
            self._schedule(key, polling)
        else:
            polling.parked[place] = mark, mark.park(target, reached)

    def _timed(self, key: tuple[str, str], polling: _Polling) -> None:
        polling.timer, polling.timer_at = None, float("inf")
        self._schedule(key, polling)

    # waking

    def wake(self, topic: str, group: str) -> None:
        """Try the held requests again: a queue was opened or released without a new message."""
        polling = self._pollings.get((topic, group))
        if polling is not None:
            self._schedule((topic, group), polling)

    def _schedule(self, key: tuple[str, str], polling: _Polling) -> None:
        if not polling.scheduled:
            polling.scheduled = True
            asyncio.get_running_loop().call_soon(self._begin, key, polling)

    def _begin(self, key: tuple[str, str], polling: _Polling) -> None:
        polling.scheduled = False
        self._serve(key, polling, list(polling.requests), {})

    def _serve(
        self,
        key: tuple[str, str],
        polling: _Polling,
        requests: list[HeldRequest],
        fruitless: dict[Hashable, None],
    ) -> None:
        for number, request in enumerate(requests):
            if number == WOKEN_PER_TURN:
                rest = requests[number:]
                asyncio.get_running_loop().call_soon(self._serve, key, polling, rest, fruitless)
                return
            if request.kind in fruitless or request not in polling.requests:
                continue
            if request.connection.is_crowded:
                continue  # it stays held: the peer has not taken the answers that it got
            self._take_out(polling, request)
            if not request.connection.open:
                self._stop_timer(request)
            elif not request.attempt():
                fruitless[request.kind] = None
        if not polling.requests and not polling.parked and self._pollings.get(key) is polling:
            if polling.timer is not None:
                polling.timer.cancel()
            del self._pollings[key]

    def _expire(self, request: HeldRequest) -> None:
        request.timer = None
        polling = self._pollings.get((request.topic, request.group))
        if polling is not None and request in polling.requests:
            self._take_out(polling, request)
            request.expire()

    def _take_out(self, polling: _Polling, request: HeldRequest) -> None:
        del polling.requests[request]
        self._count(request, -1)

    def _count(self, request: HeldRequest, step: int) -> None:
        key = request.topic, request.group, request.queue_id
        self._total += step
        request.connection.polls_held += step
        left = self._counts.get(key, 0) + step
        if left:
            self._counts[key] = left
        else:
            del self._counts[key]

    def _stop_timer(self, request: HeldRequest) -> None:
        if request.timer is not None:
            request.timer.cancel()
            request.timer = None

    # end of held requests

    def _each(self, wanted: Callable[[HeldRequest], bool]) -> list[HeldRequest]:
        found = []
        for polling in self._pollings.values():
            for request in [one for one in polling.requests if wanted(one)]:
                self._take_out(polling, request)
                self._stop_timer(request)
                found.append(request)
        return found

    def release_all(self) -> None:
        """Answer all held requests, because the broker stops."""
        for request in self._each(lambda request: True):
            request.expire()

    def release(self, group: str) -> None:
        """Answer the held requests of a group."""
        for request in self._each(lambda request: request.group == group):
            request.expire()

    def forget(self, connection: Connection) -> None:
        """Drop the held requests of a closed connection."""
        if connection.polls_held:
            self._each(lambda request: request.connection is connection)
