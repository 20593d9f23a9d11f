"""What the two pull consumers share: how they are made, and the queues of a topic."""

import random
from collections.abc import Sequence
from typing import ClassVar

from gantrymq.base.clock import WallClock
from gantrymq.base.network import Network
from gantrymq.client.consume.membership.offset_store import OffsetStore
from gantrymq.client.consume.membership.setup import BROADCASTING, check_group, strategy_named
from gantrymq.client.core.instance import Hook
from gantrymq.client.core.lifecycle import ClientPorts, Lifecycle, R
from gantrymq.client.core.options import ClientOptions, PullOptions, chosen, with_namesrv
from gantrymq.model import Queue
from gantrymq.protocol.assignment import Strategy


class PullClient(Lifecycle[R]):
    """A member of a group that asks for messages itself."""

    _kind: ClassVar[str] = "pull client"
    """What errors and logs call it."""

    def __init__(
        self,
        namesrv: str | None = None,
        *,
        group: str,
        options: PullOptions | None = None,
        client: ClientOptions | None = None,
        strategy: Strategy | None = None,
        offsets: OffsetStore | None = None,
        hooks: Sequence[Hook] = (),
        network: Network | None = None,
        clock: WallClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.group = check_group(group)
        self.options = chosen(PullOptions, options)
        super().__init__(
            f"{self._kind} of {self.group!r}",
            with_namesrv(client, namesrv),
            ClientPorts(network, clock, rng),
            hooks,
            consumer_group=self.group,
        )
        self._strategy = strategy or strategy_named(self.options.allocate_strategy)
        self._own_offsets = offsets
        self._broadcast = self.options.message_model == BROADCASTING
        self._prepare()

    def _prepare(self) -> None:
        """Make what the class has before its start."""

    async def queues(self, topic: str) -> list[Queue]:
        """All readable queues of a topic."""
        routes = self.instance.routes
        return sorted(routes.subscribe_queues(await routes.get(topic), topic))
