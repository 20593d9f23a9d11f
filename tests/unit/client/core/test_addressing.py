"""Where a client finds its name servers."""

import asyncio
import random
from typing import Any, cast

import pytest
from scripted import World, play

from gantrymq.base.errors import GantryError
from gantrymq.client.core.addressing import (
    AddressPageBroken,
    NameServers,
    fetch_page,
    find_addresses,
    parse_page,
    split_list,
)
from gantrymq.client.core.errors import NoNameServer
from gantrymq.client.core.options import ClientOptions
from gantrymq.client.produce.producer import Producer
from gantrymq.model import Message

PROCESS, ENVIRONMENT = {"rocketmq.namesrv.addr": "process:1"}, {"NAMESRV_ADDR": "env:1"}


def test_a_list_is_separated_by_semicolons_and_spaces_around_are_ignored() -> None:
    """
    A list of addresses is split at semicolons; spaces, empty parts and repetitions are dropped.
    """
    assert split_list(" a:1; b:2 ;;a:1;") == ["a:1", "b:2"]


@pytest.mark.parametrize("text", ["nothing", "a:b", ":1", "a:1;b"])
def test_an_address_without_host_and_port_is_refused_by_name(text: str) -> None:
    """
    An address without host or port is refused with the form to write.
    """
    with pytest.raises(GantryError, match="write host:port"):
        split_list(text)


@pytest.mark.parametrize(
    "in_code, process, environment, expected",
    [
        ("code:1", PROCESS, ENVIRONMENT, ["code:1"]),
        (None, PROCESS, ENVIRONMENT, ["process:1"]),
        (None, {}, ENVIRONMENT, ["env:1"]),
        (" ; ", {}, ENVIRONMENT, ["env:1"]),
        (None, {}, {}, []),
    ],
)
def test_the_strongest_place_that_has_an_address_wins(
    in_code: str | None, process: dict[str, str], environment: dict[str, str], expected: list[str]
) -> None:
    """
    Name servers come from the code, then the process, then the environment.
    """
    assert find_addresses(in_code, process, environment) == expected


def test_no_address_at_all_names_the_four_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Without any address the error lists the four ways to give one.
    """
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    async def start() -> None:
        await Producer(group="g").start()

    with pytest.raises(NoNameServer) as caught:
        asyncio.run(start())

    for way in ("Producer('host:9876')", "python -X", "NAMESRV_ADDR=", "address_server_host"):
        assert way in str(caught.value)


def test_one_name_server_is_kept_until_another_answers() -> None:
    """
    The name server that answered last is asked first until another one answers.
    """
    servers = NameServers(["a:1", "b:1", "c:1"], random.Random(0))
    first = servers.in_order()[0]

    assert servers.in_order()[0] == first
    servers.keep("c:1")
    assert servers.in_order() == ["c:1", "a:1", "b:1"]


def test_the_first_name_server_is_chosen_by_chance() -> None:
    """
    The first name server to ask is chosen with the client's random generator.
    """
    firsts = {NameServers(["a:1", "b:1"], random.Random(s)).in_order()[0] for s in range(20)}

    assert firsts == {"a:1", "b:1"}


def test_a_new_list_keeps_the_server_in_use_if_it_is_still_there() -> None:
    """
    A new list keeps the name server in use if it is in it; an empty list changes nothing.
    """
    servers = NameServers(["a:1"], random.Random(0))

    assert servers.replace(["b:1", "a:1"])
    assert servers.in_order()[0] == "a:1"
    assert not servers.replace(["a:1", "b:1"])
    assert not servers.replace([])


def test_a_dead_name_server_is_passed_over() -> None:
    """
    A name server that does not answer is skipped for the next one.
    """

    async def story(world: World) -> None:
        world.namesrv = f"127.0.0.1:1;{world.namesrv};127.0.0.1:2"
        async with world.producer() as producer:
            await producer.send(Message("T", "x"))
            assert producer.instance.name_servers.known.in_order()[0] == world.namesrv.split(";")[1]

    play(story)


def test_when_no_name_server_answers_all_are_named() -> None:
    """
    When no name server answers, the error names all of them.
    """

    async def story(world: World) -> None:
        world.namesrv = "127.0.0.1:1;127.0.0.1:2"
        async with world.producer() as producer:
            with pytest.raises(NoNameServer, match=r"127\.0\.0\.1:1.*127\.0\.0\.1:2|:2.*:1"):
                await producer.send(Message("T", "x"))

    play(story)


class Page(asyncio.Protocol):
    """An HTTP server with one page; `text` may change under it."""

    text = ""
    requests: list[bytes]

    def __init__(self) -> None:
        Page.requests = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        Page.requests.append(data)
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        self.transport.write(Page.text.encode())
        self.transport.close()


def test_name_servers_can_be_exchanged_under_a_running_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    A client takes name servers from the address server while it runs.
    """
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)

    async def story(world: World) -> None:
        listener = await world.network.listen("addresses", 8080, Page)
        Page.text, good, world.namesrv = "127.0.0.1:1\n", world.namesrv, cast("Any", None)
        options = ClientOptions(address_server_host="addresses")
        async with world.producer(client=options) as producer:
            assert producer.instance.namesrv_addresses == ["127.0.0.1:1"]
            Page.text = f" {good} ; 127.0.0.1:1"
            await asyncio.sleep(121)
            await producer.send(Message("T", "x"))
        assert Page.requests[0].startswith(b"GET /rocketmq/nsaddr HTTP/1.0\r\n")
        await listener.close()

    play(story)


def test_a_page_that_fails_leaves_the_old_list() -> None:
    """
    An address server that refuses the connection raises an error.
    """

    async def story(world: World) -> None:
        with pytest.raises(GantryError, match="refused"):
            await fetch_page(world.network, "nobody", 8080, "nsaddr", 1.0)

    play(story)


@pytest.mark.parametrize(
    "answer, complaint",
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "404"),
        (b"HTTP/1.1 200 OK\r\n\r\n  ", "lists no address"),
        (b"", "answered ''"),
    ],
)
def test_a_page_without_addresses_is_an_error_that_says_so(answer: bytes, complaint: str) -> None:
    """
    A page without usable addresses raises AddressPageBroken with the reason.
    """
    with pytest.raises(AddressPageBroken, match=complaint):
        parse_page(answer, "http://h:8080/rocketmq/nsaddr")
