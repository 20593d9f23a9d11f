"""The life of a client object: made, started, closed. The same for producers, consumers, admins.

A client is made without an event loop and without a connection. `start` joins the instance of its
client id, where connections, routes and heartbeats are shared, and lets the class build its running
part, complete and at once; a start that fails leaves nothing behind. `close` takes the running part
away first, so that every later call is refused, then ends it and leaves the instance. A client is
started once: after `close` a new one has to be made.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Self, TypeVar

from gantrymq.base.clock import WallClock
from gantrymq.base.network import Network
from gantrymq.client.core.errors import Closed, NotStarted
from gantrymq.client.core.instance import Hook, Instance, shared_instance
from gantrymq.client.core.options import ClientOptions

HOW = "use `async with` or `await start()`"


class ClientPorts(NamedTuple):
    """Network, clock and randomness of a client; None is the real one. Tests pass others."""

    network: Network | None = None
    clock: WallClock | None = None
    rng: random.Random | None = None


@dataclass(slots=True, eq=False)
class RunningPart:
    """What a client has only while it runs; a class with more than the instance adds fields."""

    instance: Instance
    """The connections, routes and timers shared by all clients with its client id."""


R = TypeVar("R", bound=RunningPart)


class Lifecycle(ABC, Generic[R]):
    """The base of every client class; `what` names the object in errors."""

    def __init__(
        self,
        what: str,
        client: ClientOptions,
        ports: ClientPorts,
        hooks: Iterable[Hook],
        *,
        consumer_group: str | None = None,
    ) -> None:
        self._what, self._client, self._ports = what, client, ports
        self._hooks, self._consumer_group = tuple(hooks), consumer_group
        self._started: R | None = None
        """The running part from the end of `start` to the begin of `close`."""
        self._closed = False

    @abstractmethod
    async def _open(self, instance: Instance) -> R:
        """Build the running part; on an error leave nothing behind."""

    @abstractmethod
    async def _shut(self, running: R) -> None:
        """End the running part; connections still work."""

    async def start(self) -> None:
        """Connect, and join the group if it has one. Use `async with` for this and `close`."""
        if self._closed:
            raise Closed(f"{self._what} is closed; make a new one")
        if self._started is not None:
            return
        network, clock, rng = self._ports
        instance = shared_instance(
            self._client,
            network=network,
            clock=clock,
            rng=rng,
            consumer_group=self._consumer_group,
            hooks=self._hooks,
        )
        await instance.start()
        try:
            self._started = await self._open(instance)
        except BaseException:
            await instance.close()
            raise

    async def close(self) -> None:
        """Close the client; each class says what happens to its messages."""
        running, self._started, self._closed = self._started, None, True
        if running is None:
            return
        try:
            await self._shut(running)
        finally:
            await running.instance.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await self.close()

    @property
    def instance(self) -> Instance:
        """The connections, routes and timers shared by all clients with its client id."""
        return self._running.instance

    @property
    def _running(self) -> R:
        """The running part; raises NotStarted, Closed or ForkedError unless it can be used."""
        running = self._started
        if running is None:
            self._check_not_closed()
            raise NotStarted(f"{self._what} is not started: {HOW}")
        running.instance.check_usable()
        return running

    def _check_not_closed(self) -> None:
        if self._closed:
            raise Closed(f"{self._what} is closed")
