"""The main pages on a real RocketMQ 5.3.3."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from consolekit import Site, console
from playwright.sync_api import Browser
from world import run

from conftest import watched
from gantrymq import Admin, Consumer, ConsumerOptions, Message, Producer

sys.path.append(str(Path(__file__).parents[1] / "interop"))

from real import RealCluster

VERSION = "5.3.3"


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[Site]:
    """A console on a name server and broker of RocketMQ with some messages in them."""
    with RealCluster(VERSION) as cluster:
        run(fill(cluster.namesrv))
        with console(cluster.namesrv) as site:
            yield site


async def fill(namesrv: str) -> None:
    async with Admin(namesrv) as admin:
        await admin.create_topic("orders", queues=4)
    async with Producer(namesrv, group="shop") as producer:
        for number in range(10):
            await producer.send(Message("orders", f"order {number}", keys=(f"k{number}",)))
    options = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    async with Consumer(namesrv, group="billing", options=options) as consumer:
        consumer.subscribe("orders")
        async for message in consumer:
            await message.dead(reason="declined")
            break


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/overview", r"V5_3_3"),
        ("/topics", r"orders"),
        ("/topics/orders", r"billing"),
        ("/groups", r"billing"),
        ("/groups/billing", r"orders"),
        ("/messages?topic=orders", r"order \d"),
        ("/letters", r"billing"),
        ("/waiting", r""),
    ],
)
def test_a_page_shows_what_is_there(
    chromium: Browser, rocketmq: Site, path: str, shown: str
) -> None:
    """
    The page loads from RocketMQ's servers without a fault, and has what was put there.
    """
    with watched(chromium) as visitor:
        page = visitor.open(f"{rocketmq.url}/c/test{path}")
        text = page.locator("main").inner_text()
        assert re.search(shown, text), text
        assert not page.locator("p.said.error").count(), text
        assert [] == visitor.faults
