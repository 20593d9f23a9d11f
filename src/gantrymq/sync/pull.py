"""The blocking pull and lite pull consumers."""

from collections.abc import Iterable, Sequence

from gantrymq.client.consume.pull.lite_pull_consumer import (
    LitePullConsumer as AsyncLitePullConsumer,
)
from gantrymq.client.consume.pull.pull_consumer import PullConsumer as AsyncPullConsumer
from gantrymq.client.core.instance import Hook
from gantrymq.client.core.options import ClientOptions, PullOptions
from gantrymq.model import Queue
from gantrymq.protocol.assignment import Strategy
from gantrymq.sync.portal import BlockingClient, Portal, blocking


class PullConsumer(BlockingClient[AsyncPullConsumer]):
    """Reads any queue from any offset; the caller keeps the progress."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        options: PullOptions | None = None,
        client: ClientOptions | None = None,
        hooks: Sequence[Hook] = (),
        portal: Portal | None = None,
    ) -> None:
        def make() -> AsyncPullConsumer:
            return AsyncPullConsumer(
                namesrv, group=group, options=options, client=client, hooks=hooks
            )

        super().__init__(make, portal)

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

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        options: PullOptions | None = None,
        client: ClientOptions | None = None,
        strategy: Strategy | None = None,
        hooks: Sequence[Hook] = (),
        portal: Portal | None = None,
    ) -> None:
        def make() -> AsyncLitePullConsumer:
            return AsyncLitePullConsumer(
                namesrv, group=group, options=options, client=client, strategy=strategy, hooks=hooks
            )

        super().__init__(make, portal)
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
