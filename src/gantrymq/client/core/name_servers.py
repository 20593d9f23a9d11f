"""The name servers of one client id: how they are found, and asked one after the other."""

import asyncio
import logging
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.client.core.addressing import (
    NameServers,
    fetch_page,
    find_addresses,
    find_page_host,
    no_address,
)
from gantrymq.client.core.errors import TRANSPORT_ERRORS, BrokerRefused, NoNameServer, NoRoute
from gantrymq.model import Route
from gantrymq.protocol import calls, fastjson
from gantrymq.protocol.calls import Call
from gantrymq.protocol.codes import RequestCode, ResponseCode
from gantrymq.protocol.command import Command
from gantrymq.protocol.headers.base import Header
from gantrymq.protocol.headers.topics import RouteRequest

if TYPE_CHECKING:
    from gantrymq.client.core.instance import Instance

log = logging.getLogger(__name__)

NAMESRV_SECONDS_MAX: Final = 3.5
"""How long all name servers together may take to answer, unless a call allows one more."""

_KNOWN_TO_EVERY_NAMESRV: Final = frozenset(
    {RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_BROKER_CLUSTER_INFO}
)
_A_BROKER: Final = (
    "{address} is no name server, it answers as a broker does: give the address of a name server "
    "(port 9876 unless it was changed; 10911 is a broker's)"
)

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)


def _is_a_brokers_answer(code: int, refused: BrokerRefused) -> bool:
    """Whether the peer is a broker: it refused a request that every name server supports."""
    unknown = refused.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    return unknown and code in _KNOWN_TO_EVERY_NAMESRV


class NameServerClient:
    """Asks the name servers of an instance. `find` comes first."""

    def __init__(self, instance: "Instance") -> None:
        self._instance = instance
        self._page_host: str | None = None
        self.known = NameServers([], instance.rng)

    async def find(self) -> None:
        """Find the addresses: given, in the environment, or on the page of an address server."""
        options, process = self._instance.options, sys._xoptions
        addresses = find_addresses(options.namesrv, process, os.environ)
        if not addresses:
            self._page_host = find_page_host(options, process)
            if self._page_host is None:
                raise no_address()
            addresses = await self._fetch_page(self._page_host)
        self.known = NameServers(addresses, self._instance.rng)

    async def _fetch_page(self, host: str) -> list[str]:
        options = self._instance.options
        port, path = options.address_server_port, options.address_server_path
        timeout = options.call_timeout_ms / 1000
        return await fetch_page(self._instance.network, host, port, path, timeout)

    @property
    def by_page(self) -> bool:
        """Whether the addresses came from an address server, which may list others later."""
        return self._page_host is not None

    async def refresh(self) -> None:
        """Ask the address server again."""
        assert self._page_host is not None
        try:
            addresses = await self._fetch_page(self._page_host)
        except GantryError as error:
            log.warning("address server: %s; the old list stays", error)
            return
        if self.known.replace(addresses):
            log.info("name servers are now %s", ";".join(addresses))

    async def call(
        self,
        call: Call[Q, R],
        header: Q,
        body: bytes = b"",
        *,
        timeout: float | None = None,
        expect: Collection[int] = (0,),
    ) -> tuple[R, Command]:
        """Ask the name server in use; if it does not answer, ask the next one and use that.

        All tries together have a few seconds, however many name servers there are.
        """
        failures = []
        now, addresses = asyncio.get_running_loop().time, self.known.in_order()
        each = self._instance.options.call_timeout_ms / 1000 if timeout is None else timeout
        deadline = now() + max(each, NAMESRV_SECONDS_MAX)
        for at, address in enumerate(addresses):
            share = (deadline - now()) / (len(addresses) - at)
            try:
                answer = await self._instance.call(
                    address, call, header, body, timeout=max(0.001, min(each, share)), expect=expect
                )
            except TRANSPORT_ERRORS as error:
                failures.append(str(error))
                continue
            except BrokerRefused as error:
                if not _is_a_brokers_answer(call.code, error):
                    raise
                failures.append(_A_BROKER.format(address=address))
                continue
            self.known.keep(address)
            return answer
        raise NoNameServer(f"no name server answers: {'; '.join(failures)}")

    async def fetch_route(self, topic: str) -> Route:
        """The route of a topic; raises NoRoute when there is none."""
        _, answer = await self.call(
            calls.GET_ROUTEINFO_BY_TOPIC,
            RouteRequest(topic=topic, accept_standard_json_only=True),
            expect=(ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST),
        )
        if answer.code == ResponseCode.TOPIC_NOT_EXIST or not answer.body:
            raise NoRoute(topic)
        return fastjson.load_as(answer.body, Route)
