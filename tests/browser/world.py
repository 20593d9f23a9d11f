"""What the console shows in the browser tests: a master-slave pair and a raft group, with topics,
messages, groups, dead letters, and text that would like to be a script; and two brokers with access
control.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from gantrymq import Admin, ClientOptions, Consumer, ConsumerOptions, Message, Producer
from gantrymq.protocol.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from gantrymq.sync import Consumer as SyncConsumer

T = TypeVar("T")

BIN: Final = Path(sys.executable).parent
READY: Final = re.compile(r"gantrymq ready namesrv=(\S+) broker=\S+ console=")
ADDRESS: Final = re.compile(r"console (http\S+)")
SCRIPT: Final = '<script>document.title="taken"</script><img src=x onerror=document.title="taken">'
"""Text that must be shown and never run."""
SECONDS_MAX: Final = 60
STOP_SECONDS_MAX: Final = 40
PAIR, RAFT, GUARDED = "pair", "raft", "guarded"


@dataclass(frozen=True)
class World:
    """The addresses of all of it."""

    console: str
    pair: str
    """Name server of two masters with a slave each."""
    raft: str
    guarded: str
    """Name server of two brokers with access files and keys, and users that are not in force."""
    guarded_key: Path
    data: Path
    """The console's folder."""

    def page(self, path: str, cluster: str = PAIR) -> str:
        """The address of a page below a cluster."""
        return f"{self.console}/c/{cluster}{path}"


@contextmanager
def process(*words: str | Path) -> Iterator["subprocess.Popen[str]"]:
    """A command of ours; it is told to stop at the end."""
    clean = {key: value for key, value in os.environ.items() if key != "NAMESRV_ADDR"}
    running = subprocess.Popen(
        [BIN / "gantry", *words], stdout=subprocess.PIPE, text=True, env=clean
    )
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        assert running.stdout is not None
        running.stdout.close()


def said(running: "subprocess.Popen[str]", pattern: re.Pattern[str]) -> str:
    """What the first line that fits says."""
    assert running.stdout is not None
    for line in running.stdout:
        if (found := pattern.match(line)) is not None:
            return found[1]
    raise AssertionError(f"the command ended with {running.wait()}")


@contextmanager
def make_world(folder: Path) -> Iterator[World]:
    """Start everything, fill it, and stop it at the end."""
    ports = ("--namesrv-port", "0", "--broker-port", "0", "--no-console")
    with ExitStack() as stack:
        pair, raft = (
            stack.enter_context(process("up", "--data", folder / name, "--mode", mode, *ports))
            for name, mode in ((PAIR, "2m-2s-async"), (RAFT, "dledger"))
        )
        secure = ("up", "--data", folder / GUARDED, "--secure", "--brokers", "2", *ports)
        guarded, key = process(*secure), folder / GUARDED / "secure" / "client.yml"
        addresses = {
            PAIR: said(pair, READY),
            RAFT: said(raft, READY),
            GUARDED: said(stack.enter_context(guarded), READY),
        }
        named = [word for name in addresses for word in ("--namesrv", f"{name}={addresses[name]}")]
        data = folder / "console"
        words = (*named, "--key-file", f"{GUARDED}={key}", "--port", "0", "--data", data)
        console = stack.enter_context(process("console", *words))
        world = World(
            said(console, ADDRESS), addresses[PAIR], addresses[RAFT], addresses[GUARDED], key, data
        )
        run(fill(world))
        keep_report(data / "lake" / "reports" / "sample")
        run(give_rights(world))
        with reading(world.pair):
            yield world


def keep_report(folder: Path) -> None:
    """A report with a figure and pictures, as `gantry pipeline report` leaves it."""
    (folder / "pictures").mkdir(parents=True)
    pictures = []
    for name in ("ledger", "lag", "causes"):
        svg = '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="120"/>'
        (folder / "pictures" / f"{name}.svg").write_text(svg)
        file = f"pictures/{name}.svg"
        pictures.append({"name": name, "title": name, "text": f"the {name}", "file": file})
    index = {
        "madeMs": 1_795_000_000_000,
        "period": {"text": "the first message to now"},
        "verdict": {"balanced": True, "text": "The books balance: 30 messages are accounted for."},
        "figures": [{"name": "stored", "title": "stored", "value": 30}],
        "tables": [],
        "pictures": pictures,
    }
    (folder / "report.json").write_text(json.dumps(index))
    (folder / "report.html").write_text("<!DOCTYPE html><title>sample</title>")


@contextmanager
def reading(namesrv: str) -> Iterator[None]:
    """A member of the group `readers`, which reads all the time."""
    with SyncConsumer(namesrv, group="readers", start="first") as consumer:
        consumer.subscribe("orders")
        consumer.poll(1, timeout=SECONDS_MAX)
        yield


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run async work; Playwright has a loop in this thread, so it runs in another one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, asyncio.wait_for(work, SECONDS_MAX)).result()


async def fill(world: World) -> None:
    """Topics, messages of many kinds, a group that is behind, retries and dead letters."""
    async with Admin(world.pair) as admin:
        for topic in ("orders", "payments", "reminders", "wide"):
            await admin.create_topic(topic, queues=4)
    async with Admin(world.raft) as admin:
        await admin.create_topic("ledger", queues=2)
    async with Producer(world.raft, group="bank") as producer:
        for number in range(5):
            await producer.send(Message("ledger", f"entry {number}", keys=(f"entry-{number}",)))
        await producer.send(Message("ledger", "later", delay=3600, keys=("later",)))
    async with Consumer(world.raft, group="auditing", start="first") as consumer:
        consumer.subscribe("ledger")
        for _ in range(3):
            await (await anext(consumer)).ack()
    async with Producer(world.pair, group="shop") as producer:
        for number in range(30):
            order = {
                "order": number,
                "item": "a book",
                "price": {"amount": number * 3, "of": "EUR"},
            }
            body, tag = json.dumps(order), "paid" if number % 3 else "open"
            await producer.send(Message("orders", body, tags=tag, keys=(f"order-{number}",)))
        hostile = Message("orders", SCRIPT, tags="odd", keys=(SCRIPT.replace(" ", ""), "hostile"))
        await producer.send(hostile)
        await producer.send(Message("payments", bytes(range(256)), keys=("binary",)))
        await producer.send(Message("reminders", "later", delay=3600, keys=("later",)))
    await _read_some(world.pair)


async def give_rights(world: World) -> None:
    """Users with policies, one on a single broker, and an access key with rules."""
    options = ClientOptions(namesrv=world.guarded, key_file=str(world.guarded_key))
    async with Admin(client=options) as admin:
        places = list((await admin.masters()).values())
        for place in places:
            await admin.create_user(place, UserInfo(username="shop", password="shop-secret"))
            entries = [
                PolicyEntryInfo(resource="Topic:orders", actions=["Pub", "Sub"], decision="Allow"),
                PolicyEntryInfo(
                    resource="Topic:*", actions=["All"], decision="Deny", source_ips=["10.9.0.0/16"]
                ),
            ]
            acl = AclInfo(subject="User:shop", policies=[PolicyInfo(entries=entries)])
            await admin.create_acl(place, acl)
            await admin.put_account(
                place, "billing-app", "billing-secret", default_group_perm="SUB",
                topic_perms=["orders=PUB|SUB", "a-topic-with-a-long-name-of-a-department=SUB"],
                group_perms=["billing=SUB"],
            )  # fmt: skip
        await admin.create_user(places[0], UserInfo(username="lonely", password="lonely-secret"))
        default = [PolicyEntryInfo(resource="Group:*", actions=["Sub"], decision="Allow")]
        policies = [PolicyInfo(policy_type="Default", entries=default)]
        await admin.update_acl(places[1], AclInfo(subject="User:shop", policies=policies))


async def _read_some(namesrv: str) -> None:
    """The group `billing` takes some orders, retries one, and gives up on others."""
    options = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    async with Consumer(namesrv, group="billing", options=options, trace=True) as consumer:
        consumer.subscribe("orders")
        seen = 0
        async for message in consumer:
            seen += 1
            if seen <= 4:
                await message.dead(reason="CardDeclined: card 4111 was declined")
            elif seen == 5:
                await message.retry(18, reason="no stock")
            else:
                await message.ack()
            if seen >= 20:
                return
