"""The blocking pull and lite pull consumers."""

from collections.abc import Iterable
from functools import partial
from typing import Any, overload

from gantrymq.client.consume.pull.lite_pull_consumer import (
    LitePullConsumer as AsyncLitePullConsumer,
)
from gantrymq.client.consume.pull.pull_consumer import PullConsumer as AsyncPullConsumer
from gantrymq.model import Queue
from gantrymq.sync.portal import BlockingClient, Portal, arguments_of, blocking


class PullConsumer(BlockingClient[AsyncPullConsumer]):
    """Reads any queue from any offset; the caller keeps the progress."""

    @overload
    @arguments_of(AsyncPullConsumer)
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *given: Any, portal: Portal | None, **named: Any) -> None: ...

    def __init__(self, *given: Any, portal: Portal | None = None, **named: Any) -> None:
        super().__init__(partial(AsyncPullConsumer, *given, **named), portal)

    queues = blocking(AsyncPullConsumer.queues)
    pull = blocking(AsyncPullConsumer.pull)
    pull_blocking = blocking(AsyncPullConsumer.pull_blocking)
    pull_raw = blocking(AsyncPullConsumer.pull_raw)
    min_offset = blocking(AsyncPullConsumer.min_offset)
    max_offset = blocking(AsyncPullConsumer.max_offset)
    search_offset = blocking(AsyncPullConsumer.search_offset)
    committed = blocking(AsyncPullConsumer.committed)
    commit = blocking(AsyncPullConsumer.commit)
    send_back = blocking(AsyncPullConsumer.send_back)


class LitePullConsumer(BlockingClient[AsyncLitePullConsumer]):
    """Polls messages of assigned or chosen queues, and can seek."""

    @overload
    @arguments_of(AsyncLitePullConsumer)
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *given: Any, portal: Portal | None, **named: Any) -> None: ...

    def __init__(self, *given: Any, portal: Portal | None = None, **named: Any) -> None:
        super().__init__(partial(AsyncLitePullConsumer, *given, **named), portal)
        self._wanted: dict[str, tuple[str, str | None]] = {}
        self._chosen: list[Queue] | None = None

    def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        """Share the queues of a topic with the other members of the group."""
        self._do(lambda target: target.subscribe(topic, tags, sql=sql))
        self._wanted[topic] = (tags, sql)

    def assign(self, queues: Iterable[Queue]) -> None:
        """Read exactly these queues, outside of the rebalance."""
        chosen = list(queues)
        self._do(lambda target: target.assign(chosen))
        self._chosen = chosen

    def _reopen(self, target: AsyncLitePullConsumer) -> None:
        super()._reopen(target)
        self._portal.run(_choose(target, self._wanted, self._chosen))

    poll = blocking(AsyncLitePullConsumer.poll)
    wait_assigned = blocking(AsyncLitePullConsumer.wait_assigned)
    queues = blocking(AsyncLitePullConsumer.queues)
    seek = blocking(AsyncLitePullConsumer.seek)
    seek_to_begin = blocking(AsyncLitePullConsumer.seek_to_begin)
    seek_to_end = blocking(AsyncLitePullConsumer.seek_to_end)
    offset_for_time = blocking(AsyncLitePullConsumer.offset_for_time)
    committed = blocking(AsyncLitePullConsumer.committed)
    commit = blocking(AsyncLitePullConsumer.commit)

    @property
    def assignment(self) -> list[Queue]:
        """The queues this consumer reads now."""
        return self._do(lambda target: target.assignment)

    def position(self, queue: Queue) -> int:
        """The offset of the next message that counts as unread."""
        return self._do(lambda target: target.position(queue))

    def pause(self, queues: Iterable[Queue]) -> None:
        """Neither pull nor return messages of these queues."""
        chosen = list(queues)
        self._do(lambda target: target.pause(chosen))

    def resume(self, queues: Iterable[Queue]) -> None:
        """End a pause."""
        chosen = list(queues)
        self._do(lambda target: target.resume(chosen))


async def _choose(
    target: AsyncLitePullConsumer,
    wanted: dict[str, tuple[str, str | None]],
    chosen: list[Queue] | None,
) -> None:
    for topic, (tags, sql) in wanted.items():
        target.subscribe(topic, tags, sql=sql)
    if chosen is not None:
        target.assign(chosen)
