"""Each text of `docs/guides/troubleshooting.md` is what the product really says."""

import asyncio
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from peer import Peer
from test_busy_broker import slow_once
from test_cli import BIN, SECONDS_MAX
from test_doctor import register
from test_subscriptions import beat

from gantrymq import Message
from gantrymq.base.errors import GantryError
from gantrymq.cli.main import main
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.threaded import GantryCluster

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "troubleshooting.md"
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
QUOTE = re.compile(r"^> `(.+)`$", re.MULTILINE)

Trigger = Callable[[GantryCluster], str]
TRIGGERS: dict[str, Trigger] = {}
"""By the heading of the section."""


def sections() -> dict[str, list[str]]:
    """The texts that each section of the page quotes; those without any only explain."""
    parts = SECTION.split(PAGE.read_text())[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: found for name, text in pairs if (found := QUOTE.findall(text))}


def trouble(heading: str) -> Callable[[Trigger], Trigger]:
    """Registers what causes the trouble of a section; it returns all that was said."""

    def add(trigger: Trigger) -> Trigger:
        TRIGGERS[heading] = trigger
        return trigger

    return add


def gantry_says(*words: str, **env: str | None) -> str:
    clean = {"NAMESRV_ADDR": None, "GANTRY_PROFILE": None, **env}
    return CliRunner().invoke(main, words, env=clean).output


def mqadmin_says(*words: str) -> str:
    found = subprocess.run(
        [BIN / "mqadmin", *words], capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )
    return found.stdout + found.stderr


def client_says(gantry: GantryCluster, *messages: Message, **settings: Any) -> str:
    """What a producer raises, with settings of the broker changed before."""

    async def send() -> str:
        cluster = gantry.cluster
        if settings:
            address = f"127.0.0.1:{cluster.broker().config.listen_port}"
            async with cluster.admin() as admin:
                await admin.update_broker_config(address, settings)
        try:
            async with cluster.producer() as producer:
                for message in messages:
                    await producer.send(message)
        except GantryError as error:
            return str(error)
        return "all was sent"

    return gantry.call(send())


@trouble("No name server address")
def _(gantry: GantryCluster) -> str:
    return gantry_says("topic", "list")


@trouble("No name server answers")
def _(gantry: GantryCluster) -> str:
    return gantry_says("topic", "list", "-n", "127.0.0.1:1")


@trouble("The address is a broker's")
def _(gantry: GantryCluster) -> str:
    port = gantry.cluster.broker().config.listen_port
    return gantry_says("topic", "list", "-n", f"127.0.0.1:{port}")


@trouble("A topic without a route")
def _(gantry: GantryCluster) -> str:
    gantry.create_topic("orders")
    said = gantry_says("tail", "nosuch", "--until", "now", "-n", gantry.namesrv)
    said += gantry_says("topic", "show", "ordrs", "-n", gantry.namesrv)

    async def refuse() -> str:
        peer = await Peer.to(gantry.cluster)
        answer = await peer.call(310, b"x", a="p", b="nosuch", c="nothing", d=4, e=0, f=0, g=1, h=0)
        peer.close()
        return answer.remark or ""

    return said + gantry.call(refuse())


@trouble("A group that never consumed")
def _(gantry: GantryCluster) -> str:
    gantry.create_topic("orders")
    said = gantry_says("lag", "g", "-n", gantry.namesrv)
    return said + mqadmin_says("consumerProgress", "-g", "g", "-n", gantry.namesrv)


@trouble("A group that no broker lets in")
def _(gantry: GantryCluster) -> str:
    gantry.create_topic("orders", 1)

    async def pull() -> str:
        cluster = gantry.cluster
        address = f"127.0.0.1:{cluster.broker().config.listen_port}"
        async with cluster.admin() as admin:
            await admin.update_broker_config(address, {"autoCreateSubscriptionGroup": "false"})
        peer = await Peer.to(cluster)
        answer = await peer.pull("orders", 0, group="g")
        peer.close()
        return answer.remark or ""

    return gantry.call(pull())


@trouble("An address that clients do not reach")
def _(gantry: GantryCluster) -> str:
    async def look() -> str:
        peer = await Peer.to_namesrv(gantry.cluster)
        await register(peer, "broker-x", 1)
        loop = asyncio.get_running_loop()
        words = ("doctor", "-n", gantry.namesrv)
        said = await loop.run_in_executor(None, gantry_says, *words)
        words = ("topic", "create", "orders", "--broker", "broker-x", "-n", gantry.namesrv)
        said += await loop.run_in_executor(None, gantry_says, *words)
        peer.close()
        return said

    return gantry.call(look())


@trouble("Broker busy")
def _(gantry: GantryCluster) -> str:
    async def story() -> str:
        disk = MemoryDisk()
        async with Cluster(disk=disk) as cluster, cluster.producer() as producer:
            await producer.send(Message("orders", b"warm"))
            slow_once(disk, 1.1)
            sends = [producer.submit(Message("orders", b"x")) for _ in range(2000)]
            ended = await asyncio.gather(*sends, return_exceptions=True)
            return "\n".join(str(each) for each in ended if isinstance(each, GantryError))

    return asyncio.run(story())


@trouble("A message that is too large")
def _(gantry: GantryCluster) -> str:
    gantry.create_topic("orders")
    said = client_says(gantry, Message("orders", bytes(4 * 1024 * 1024 + 1)))
    large = Message("orders", random.Random(1).randbytes(10_000))
    return said + client_says(gantry, large, maxMessageSize="2000")


@trouble("A topic that may not be written to")
def _(gantry: GantryCluster) -> str:
    async def close() -> None:
        async with gantry.cluster.admin() as admin:
            await admin.create_topic("orders", queues=1, perm=4)

    gantry.call(close())
    return client_says(gantry, Message("orders", b"x"))


@trouble("Members with different subscriptions")
def _(gantry: GantryCluster) -> str:
    gantry.create_topic("orders")

    async def look() -> str:
        one, two = await Peer.to(gantry.cluster), await Peer.to(gantry.cluster)
        await beat(one, "one", "a", 0)
        await beat(two, "two", "b", 0)
        loop = asyncio.get_running_loop()
        said = await loop.run_in_executor(None, gantry_says, "doctor", "-n", gantry.namesrv)
        one.close()
        two.close()
        return said

    return gantry.call(look())


@trouble("A setting that nobody knows")
def _(gantry: GantryCluster) -> str:
    return gantry_says("broker", "-D", "flushDiskTpye=SYNC_FLUSH", "-p")


def test_every_section_with_a_text_has_a_cause_here() -> None:
    """
    And no cause is left without its section.
    """
    assert sections().keys() == TRIGGERS.keys()


@pytest.mark.parametrize("heading", TRIGGERS)
def test_the_product_says_what_the_page_quotes(heading: str, gantry: GantryCluster) -> None:
    """
    The trouble is made, and each text of its section is said; `...` stands for anything.
    """
    said = " ".join(TRIGGERS[heading](gantry).split())
    for text in sections()[heading]:
        pattern = ".*".join(map(re.escape, text.split("...")))
        assert re.search(pattern, said), f"{text}\nis not in\n{said}"
