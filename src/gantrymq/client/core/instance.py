"""The instance of one client id: connections, routes and timers that its clients share."""

import asyncio
import logging
import os
import random
import weakref
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, Final, Protocol, TypeVar, cast

from gantrymq.access.key_sources import find_credentials
from gantrymq.access.signature import RequestSigner
from gantrymq.base.background import Background
from gantrymq.base.clock import SystemClock, WallClock
from gantrymq.base.errors import GantryError
from gantrymq.base.network import Network
from gantrymq.client.core.connections import Connections
from gantrymq.client.core.errors import (
    BrokerRefused,
    Closed,
    ForkedError,
    HookFailed,
    NotStarted,
)
from gantrymq.client.core.heartbeat import HeartbeatGroups, Heartbeats, Provider
from gantrymq.client.core.identity import DEFAULT_INSTANCE, MessageIds, local_ip
from gantrymq.client.core.name_servers import NameServerClient
from gantrymq.client.core.options import ClientOptions
from gantrymq.client.core.request_handlers import RequestHandler, RequestHandlers
from gantrymq.client.core.requests import Requests
from gantrymq.client.core.routes import Routes
from gantrymq.client.core.tls import network_of
from gantrymq.protocol.calls import Call
from gantrymq.protocol.codes import RequestCode
from gantrymq.protocol.command import BINARY_CODEC, JSON_CODEC, Command
from gantrymq.protocol.headers.base import Header
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.pending_call import CallTimeout

log = logging.getLogger(__name__)

FORGET_IDLE_SECONDS: Final = 60.0
Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)


class Hook(Protocol):
    """RocketMQ's RPCHook: sees every request before it is encoded, and every answer."""

    def before_request(self, address: str, command: Command) -> None:
        """May add extension fields, for instance a signature; an exception stops the request."""

    def after_response(self, address: str, command: Command, response: Command) -> None:
        """Sees the answer to that request; an exception here does not change the result."""


class Instance:
    """Shared by all clients with one client id in one event loop; counts its users."""

    def __init__(
        self,
        options: ClientOptions | None = None,
        *,
        network: Network,
        clock: WallClock,
        rng: random.Random,
        hooks: Sequence[Hook] = (),
    ) -> None:
        self.options = options or ClientOptions()
        self.network, self.clock, self.rng = network, clock, rng
        ip = self.options.client_ip or local_ip()
        self.pid = os.getpid()
        name = self.options.instance_name
        if name == DEFAULT_INSTANCE:
            name = f"{self.pid}#{rng.getrandbits(48)}"
        self.client_id = f"{ip}@{name}"
        self.ids = MessageIds(ip, self.pid, rng.getrandbits(32), clock)
        self.groups = HeartbeatGroups()
        self.name_servers = NameServerClient(self)
        self.call_namesrv = self.name_servers.call
        self.routes = Routes(self.name_servers.fetch_route)
        self.heartbeats = Heartbeats(self, self.groups)
        self.connections = Connections(
            network,
            self._answer,
            self.options.connect_timeout_ms / 1000,
            self._on_open,
            self._advice,
        )
        self.hooks: list[Hook] = list(hooks)
        credentials = self.options.credentials or find_credentials(self.options.key_file)
        if credentials is not None:
            self.hooks.append(RequestSigner(credentials))  # last: it signs what others add
        self.codec = BINARY_CODEC if self.options.serialize == "ROCKETMQ" else JSON_CODEC
        self.own_hooks = tuple(hooks)
        self._background = Background(f"client {self.client_id}")
        self._handlers = RequestHandlers(self._background.spawn)
        self.requests = Requests(clock, rng)
        self.on_request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, self.requests.arrived)
        self._users = 0
        self._lock = asyncio.Lock()
        self._state = "new"

    # life

    async def start(self) -> None:
        """Add a user; the first one finds the name servers and starts the timers."""
        async with self._lock:
            if self._state == "closed":
                raise Closed(f"client {self.client_id} is closed")
            if self._state == "new":
                await self.name_servers.find()
                self._state = "open"
                self._start_timers()
            self._users += 1

    async def close(self) -> None:
        """Remove a user; the last one closes the connections."""
        async with self._lock:
            self._users -= 1
            if self._users > 0 or self._state == "closed":
                return
            self._state = "closed"
            await self._background.close()
            await self.routes.close()
            await self.connections.close()
            _forget(self)

    @property
    def is_open(self) -> bool:
        return self._state == "open"

    def check_usable(self) -> None:
        """Raise ForkedError, Closed or NotStarted unless the client can be used."""
        if os.getpid() != self.pid:
            raise ForkedError(
                "this client was made before a fork; make a new one in the child, "
                "or use gantrymq.sync, whose clients reopen by themselves"
            )
        if self._state != "open":
            raise (
                Closed("the client is closed")
                if self._state == "closed"
                else NotStarted("the client is not started: use `async with` or `await start()`")
            )

    def _start_timers(self) -> None:
        options = self.options
        background = self._background
        background.every(options.route_refresh_ms / 1000, self.routes.refresh_all)
        background.every(options.heartbeat_interval_ms / 1000, self._beat)
        if self.name_servers.by_page:
            background.every(options.address_refresh_ms / 1000, self.name_servers.refresh)
        self.routes.on_change.append(self._on_routes)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that ends with the instance."""
        return self._background.spawn(work)

    def _advice(self, address: str) -> str:
        """Where a broker's address came from: a client often reaches the broker at another one."""
        if address in self.namesrv_addresses:
            return ""
        name = self.routes.name_at(address) or "a broker"
        return (
            f" ({name} has registered this address: if it runs, and clients reach it at another "
            "one, set its brokerIP1)"
        )

    # name servers

    @property
    def namesrv_addresses(self) -> list[str]:
        return self.name_servers.known.addresses

    # calls

    async def call(
        self,
        address: str,
        call: Call[Q, R],
        header: Q,
        body: bytes = b"",
        *,
        timeout: float | None = None,
        expect: Collection[int] = (0,),
    ) -> tuple[R, Command]:
        """Send a request, connecting if needed. Raises BrokerRefused for a code not expected.

        The header is None when an expected error code came without fields: check the code first.
        """
        command = Command(code=call.code, ext=header.to_ext(), body=body, codec=self.codec)
        answer = await self.exchange(address, command, timeout)
        if answer.code not in expect:
            raise BrokerRefused(answer.code, answer.remark, address)
        if answer.code == 0 or answer.ext:
            return call.response.parse(answer.ext), answer
        return cast("R", None), answer

    async def exchange(
        self, address: str, command: Command, timeout: float | None = None
    ) -> Command:
        """Send a request and return the answer, whatever its code."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (timeout or self.options.call_timeout_ms / 1000)
        connection = await self.connections.get(address, deadline - loop.time())
        self.before_request(address, command)
        try:
            answer = await connection.call(command, max(deadline - loop.time(), 0.001))
        except CallTimeout:
            self.connections.unheard(connection)
            raise
        self.connections.heard(connection)
        self.after_response(address, command, answer)
        return answer

    async def oneway(self, address: str, call: Call[Q, R], header: Q, body: bytes = b"") -> None:
        """Send a one-way request; raises only without a connection or if a hook raises."""
        command = Command(code=call.code, ext=header.to_ext(), body=body, codec=self.codec)
        connection = await self.connections.get(address)
        self.before_request(address, command)
        connection.oneway(command)

    def before_request(self, address: str, command: Command) -> None:
        """Pass a request to the hooks; raises a hook's GantryError, or else HookFailed."""
        for hook in self.hooks:
            try:
                hook.before_request(address, command)
            except GantryError:
                raise
            except Exception as error:
                raise HookFailed(f"a hook stopped the request to {address}: {error!r}") from error

    def after_response(self, address: str, command: Command, answer: Command) -> None:
        """Pass the answer to the hooks; their exceptions do not change the result."""
        for hook in self.hooks:
            try:
                hook.after_response(address, command, answer)
            except Exception:
                log.exception("a hook failed on the answer of %s", address)

    # groups

    def register_producer(self, group: str) -> None:
        """From now on heartbeats name this producer group."""
        self.groups.add_producer(group)
        if self.is_open:
            self.spawn(self.heartbeats.send_all())

    def register_consumer(self, group: str, provider: Provider) -> None:
        """From now on heartbeats have this group's data, as `provider` returns it."""
        self.groups.add_consumer(group, provider)

    async def unregister_producer(self, group: str) -> None:
        """Tell the brokers that the last producer of a group has left this client."""
        if self.groups.drop_producer(group):
            await self.heartbeats.unregister(producer_group=group)
            if self.requests.asked:
                await self.heartbeats.introduce_again()

    async def unregister_consumer(self, group: str) -> None:
        """Tell the brokers that the consumer of a group has left this client."""
        if self.groups.drop_consumer(group):
            await self.heartbeats.unregister(consumer_group=group)

    async def heartbeat_now(self) -> None:
        """Send heartbeats to all brokers now, not at the next interval."""
        await self.heartbeats.send_all()

    async def _beat(self) -> None:
        self._forget_lost_brokers()
        await self.heartbeats.send_all()

    def _forget_lost_brokers(self) -> None:
        """Forget brokers that are in no route, and close their connections."""
        known = self.routes.all_addresses()
        self.heartbeats.keep(known)
        keep = {*known, *self.namesrv_addresses}
        # Only idle ones: an Admin uses brokers that are in no route of this client.
        oldest = asyncio.get_running_loop().time() - FORGET_IDLE_SECONDS
        for address in self.connections.addresses:
            connection = self.connections.ready(address)
            if address not in keep and (connection is None or connection.last_active < oldest):
                self.connections.forget(address)

    def _on_open(self, address: str) -> None:
        if self.is_open and address in self.heartbeats.introduced:
            self.spawn(self.heartbeats.send_again(address))

    def _on_routes(self) -> None:
        self.spawn(self.heartbeats.send_new())

    # requests of the broker

    def on_request(self, code: int, handler: RequestHandler) -> Callable[[], None]:
        """Pass requests of brokers with this code to `handler`; the first answer is sent.

        Returns the function that removes the handler.
        """
        return self._handlers.add(code, handler)

    def _answer(self, connection: Connection, command: Command) -> None:
        if self._state == "open":
            self._handlers.answer(connection, command)


_DEFAULT_CLOCK = SystemClock()
_instances: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[Instance]]" = (
    weakref.WeakKeyDictionary()
)
"""The shared instances of each running loop, so that clients of one client id find them."""


def shared_instance(
    options: ClientOptions | None = None,
    *,
    network: Network | None = None,
    clock: WallClock | None = None,
    rng: random.Random | None = None,
    consumer_group: str | None = None,
    hooks: Sequence[Hook] = (),
) -> Instance:
    """The instance for these options in the running loop: an existing one if it fits, else new.

    With the default instance name a second consumer of a group gets an instance of its own, since
    a broker tells the members of a group apart by client id alone. An instance with given ports and
    hooks is shared only with callers that pass the same ones, so that no client signs with the key
    of another.
    """
    options = options or ClientOptions()
    network, clock = network or network_of(options), clock or _DEFAULT_CLOCK
    instances = _instances.setdefault(asyncio.get_running_loop(), [])
    for instance in instances:
        same = (
            instance.options == options
            and instance.network is network
            and instance.clock is clock
            and (rng is None or instance.rng is rng)
            and instance.own_hooks == tuple(hooks)
            and instance.pid == os.getpid()
        )
        taken = consumer_group is not None and instance.groups.has_consumer(consumer_group)
        if same and (not taken or options.instance_name != DEFAULT_INSTANCE):
            break
    else:
        instance = Instance(
            options, network=network, clock=clock, rng=rng or random.Random(), hooks=hooks
        )
        instances.append(instance)
    if consumer_group is not None:
        instance.groups.promise_consumer(consumer_group)
    return instance


def _forget(instance: Instance) -> None:
    """Remove a closed instance; with the last one remove the loop, so that it can be freed."""
    loop = asyncio.get_running_loop()
    left = [other for other in _instances.get(loop, []) if other is not instance]
    if left:
        _instances[loop] = left
    else:
        _instances.pop(loop, None)


def _let_go_in_child() -> None:
    """Release the parent's sockets in a forked child, or they would outlive its close."""
    for instances in list(_instances.values()):
        for instance in instances:
            instance.connections.let_go()
    _instances.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)
