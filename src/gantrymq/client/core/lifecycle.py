"""The life of a client object: made, started, closed. The same for producers, consumers, admins.

A client is made without an event loop and without a connection. `start` joins the instance of its
client id, where connections, routes and heartbeats are shared, and lets the class build its running
part; a start that fails leaves nothing behind. `close` ends the running part first and then leaves
the instance. A client is started once: after `close` a new one has to be made.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Literal, NamedTuple, Self

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


class Lifecycle(ABC):
    """The base of every client class; `what` names the object in errors."""

    _instance: Instance
    """Known from `_open` on."""

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
        self._state: Literal["new", "open", "closed"] = "new"

    @abstractmethod
    async def _open(self, instance: Instance) -> None:
        """Build the running part; on an error leave nothing behind."""

    @abstractmethod
    async def _shut(self) -> None:
        """End the running part; connections still work."""

    async def start(self) -> None:
        """Connect, and join the group if it has one. Use `async with` for this and `close`."""
        if self._state == "closed":
            raise Closed(f"{self._what} is closed; make a new one")
        if self._state == "open":
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
            self._instance = instance
            await self._open(instance)
        except BaseException:
            await instance.close()
            raise
        self._state = "open"

    async def close(self) -> None:
        """Close the client; each class says what happens to its messages."""
        was, self._state = self._state, "closed"
        if was != "open":
            return
        try:
            await self._shut()
        finally:
            await self._instance.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await self.close()

    @property
    def instance(self) -> Instance:
        """The connections, routes and timers shared by all clients with its client id."""
        self._check_open()
        return self._instance

    def _check_not_closed(self) -> None:
        if self._state == "closed":
            raise Closed(f"{self._what} is closed")

    def _check_open(self) -> None:
        """Raise Closed or NotStarted unless the client can be used."""
        self._check_not_closed()
        if self._state == "new":
            raise NotStarted(f"{self._what} is not started: {HOW}")
        self._instance.check_usable()
