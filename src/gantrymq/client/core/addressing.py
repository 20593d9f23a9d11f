"""The addresses of the name servers, and which one a client uses.

Strongest first: the address given in code; the process option (`python -X
rocketmq.namesrv.addr=HOST:PORT`); the environment's NAMESRV_ADDR; an HTTP page that lists them,
read only when its host is set, and again every two minutes.
"""

import asyncio
import random
from collections.abc import Mapping
from typing import Final, cast

from gantrymq.base.network import Network, split_address
from gantrymq.client.core.errors import ClientError, NoNameServer
from gantrymq.client.core.options import ClientOptions

PROCESS_OPTION: Final = "rocketmq.namesrv.addr"
PROCESS_DOMAIN: Final = "rocketmq.namesrv.domain"
ENVIRONMENT: Final = "NAMESRV_ADDR"
PAGE_BYTES_MAX: Final = 64 * 1024

_NO_ADDRESS = (
    "no name server address. Give one of: the address in code, Producer('host:9876'), or "
    "on the command line, --namesrv host:9876; "
    f"the process option, python -X {PROCESS_OPTION}=host:9876; "
    f"the environment variable, {ENVIRONMENT}=host:9876; "
    "or the host of an HTTP address server, ClientOptions(address_server_host=...)"
)


class AddressPageBroken(ClientError):
    """The HTTP address server did not answer with a list of addresses."""


def split_list(text: str) -> list[str]:
    """The addresses of `a:1; b:2`, each checked."""
    addresses = [part.strip() for part in text.replace(",", ";").split(";")]
    addresses = [address for address in addresses if address]
    for address in addresses:
        split_address(address)
    return list(dict.fromkeys(addresses))


def find_addresses(
    in_code: str | None, process: Mapping[str, object], environment: Mapping[str, str]
) -> list[str]:
    """The addresses from code, process option or environment: the first of these that has any."""
    in_process = process.get(PROCESS_OPTION)
    texts = (
        in_code,
        in_process if isinstance(in_process, str) else None,
        environment.get(ENVIRONMENT),
    )
    for text in texts:
        if text and (found := split_list(text)):
            return found
    return []


def find_page_host(options: ClientOptions, process: Mapping[str, object]) -> str | None:
    """The host of the address page; None unless an option sets it: there is no default host."""
    if options.address_server_host:
        return options.address_server_host
    host = process.get(PROCESS_DOMAIN)
    return host if isinstance(host, str) and host else None


class NameServers:
    """The known name servers. The first is chosen at random and used until it fails."""

    def __init__(self, addresses: list[str], rng: random.Random) -> None:
        self._addresses = list(addresses)
        self._at = rng.randrange(len(addresses)) if addresses else 0

    @property
    def addresses(self) -> list[str]:
        return list(self._addresses)

    def in_order(self) -> list[str]:
        """All addresses, the one in use first."""
        at = self._at
        return self._addresses[at:] + self._addresses[:at]

    def keep(self, address: str) -> None:
        """Use this address first from now on."""
        if address in self._addresses:
            self._at = self._addresses.index(address)

    def replace(self, addresses: list[str]) -> bool:
        """Take a new list; keep the address in use if listed. False when nothing changed."""
        if not addresses or sorted(addresses) == sorted(self._addresses):
            return False
        current = self.in_order()[:1]
        self._addresses, self._at = list(addresses), 0
        if current:
            self.keep(current[0])
        return True


class _Page(asyncio.Protocol):
    """An HTTP/1.0 answer, collected until the server closes the connection."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.data += data
        if len(self.data) > PAGE_BYTES_MAX:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def fetch_page(
    network: Network, host: str, port: int, path: str, timeout: float
) -> list[str]:
    """Ask the address server for its list."""
    if ":" in host:
        host, port = split_address(host)
    where = f"http://{host}:{port}/rocketmq/{path}"
    page = await network.connect(host, port, _Page, timeout)
    request = (
        f"GET /rocketmq/{path} HTTP/1.0\r\nHost: {host}:{port}\r\nAccept: */*\r\n"
        "Connection: close\r\n\r\n"
    )
    page.transport.write(request.encode())
    try:
        async with asyncio.timeout(timeout):
            await page.ended
    except TimeoutError as error:
        raise AddressPageBroken(f"{where} did not answer within {timeout:g} s") from error
    finally:
        page.transport.abort()
    return parse_page(bytes(page.data), where)


def parse_page(data: bytes, where: str) -> list[str]:
    """The addresses in an HTTP answer."""
    head, _, body = data.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split(b" ")
    if len(status) < 2 or status[1] != b"200":
        raise AddressPageBroken(f"{where} answered {head[:80].decode('latin-1')!r}")
    addresses = split_list(body.decode("utf-8", "replace"))
    if not addresses:
        raise AddressPageBroken(f"{where} lists no address")
    return addresses


def no_address() -> NoNameServer:
    """The error for a client without any name server address."""
    return NoNameServer(_NO_ADDRESS)
