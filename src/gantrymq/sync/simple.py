"""The blocking simple consumer."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, overload

from gantrymq.client.consume.pop.pop_requests import Popped as AsyncPopped
from gantrymq.client.consume.pop.simple_consumer import SimpleConsumer as AsyncSimpleConsumer
from gantrymq.client.core.errors import Closed, ForkedError
from gantrymq.client.messages.received import Received
from gantrymq.sync.portal import BlockingClient, Portal, arguments_of


class Popped(Received):
    """A popped message. Finish it once, with `ack` or `retry`; `extend` asks for more time."""

    __slots__ = ("_consumer", "_inner", "_pid")

    def __init__(self, inner: AsyncPopped, consumer: "SimpleConsumer") -> None:
        super().__init__(inner._data, inner._body_at, inner._head, inner.queue)
        self._inner, self._consumer, self._pid = inner, consumer, os.getpid()

    @property
    def reconsume_times(self) -> int:
        return self._inner.reconsume_times

    @property
    def finished(self) -> str | None:
        """How it was finished, "ack" or "retry"; None while it is open."""
        return self._inner.finished

    @property
    def due_ms(self) -> int:
        """When it becomes visible for other consumers again, in ms of the broker's clock."""
        return self._inner.due_ms

    def ack(self) -> None:
        """The work is done: do not deliver it again."""
        self._consumer._run(lambda _: self._own().ack())

    def extend(self, seconds: float) -> None:
        """Keep it invisible for `seconds` from now."""
        self._consumer._run(lambda _: self._own().extend(seconds))

    def retry(self, seconds: float = 0.0) -> None:
        """Deliver it again after `seconds`."""
        self._consumer._run(lambda _: self._own().retry(seconds))

    def _own(self) -> AsyncPopped:
        if os.getpid() != self._pid:
            raise ForkedError("this message was popped by the parent process; finish it there")
        return self._inner


class SimpleConsumer(BlockingClient[AsyncSimpleConsumer]):
    """Pops messages and acknowledges each by itself."""

    @overload
    @arguments_of(AsyncSimpleConsumer)
    def __init__(self) -> None: ...

    @overload
    def __init__(self, *given: Any, portal: Portal | None, **named: Any) -> None: ...

    def __init__(self, *given: Any, portal: Portal | None = None, **named: Any) -> None:
        super().__init__(partial(AsyncSimpleConsumer, *given, **named), portal)
        self._topics: dict[str, tuple[str, str | None]] = {}

    def subscribe(self, topic: str, tags: str = "*", *, sql: str | None = None) -> None:
        """Read a topic: all of it, some tags (`a || b`), or what an SQL92 condition picks."""
        self._topics[topic] = (tags, sql)
        self._run(lambda target: _subscribe(target, {topic: (tags, sql)}))

    def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic."""
        self._topics.pop(topic, None)
        self._do(lambda target: target.unsubscribe(topic))

    def _reopen(self, target: AsyncSimpleConsumer) -> None:
        super()._reopen(target)
        self._portal.run(_subscribe(target, self._topics))

    def receive(self, max: int = 16, wait: float = 15.0) -> list[Popped]:  # noqa: A002
        """Up to `max` messages (32 at most); waits up to `wait` seconds for the first."""
        found = self._run(lambda target: target.receive(max, wait))
        return [Popped(message, self) for message in found]

    def ack_many(self, messages: Iterable[Popped]) -> None:
        """Acknowledge several messages, one request a broker."""
        inner = [message._own() for message in messages]
        self._run(lambda target: target.ack_many(inner))

    def __iter__(self) -> Iterator[Popped]:
        """Messages one by one, until the consumer is closed. Acknowledge each."""
        while True:
            try:
                found = self.receive()
            except Closed:
                return
            left = deque(found)
            try:
                while left:
                    yield left.popleft()
            finally:
                if left:  # the loop was left: post without waiting, as the thread may be ending
                    self._portal.post(self._current().keep, [m._inner for m in left])


async def _subscribe(
    target: AsyncSimpleConsumer, wanted: dict[str, tuple[str, str | None]]
) -> None:
    for topic, (tags, sql) in wanted.items():
        target.subscribe(topic, tags, sql=sql)
