"""Commands of mqadmin with what they print, and a cluster at work for them to look at.

The table is `mqadmin_commands.txt`; the same rows are run by our mqadmin against our brokers and
RocketMQ's, and by RocketMQ's against ours.
"""

import asyncio
import fnmatch
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from unittest import mock

from gantrymq import Consumer, Delivery, Message, Producer, SendResult
from gantrymq.client.admin.admin import Admin
from gantrymq.client.core.options import ClientOptions
from gantrymq.sync.portal import Portal

TABLE = Path(__file__).parent / "mqadmin_commands.txt"
TOPIC, GROUP, PRODUCERS = "orders", "billing", "shop"


@dataclass
class Case:
    """One paragraph of the table."""

    words: str
    types: str = ""
    """The line that is typed when the command asks for a secret."""
    needs: list[str] = field(default_factory=list)
    then: list[str] = field(default_factory=list)
    other_words: dict[str, str] = field(default_factory=dict)
    """By tool (`real`, `4.9.8` ...): what is typed instead; `-`: it is not run."""
    refused: dict[str, str] = field(default_factory=dict)
    """By broker (`4.9.7` ...): the words of the error that its release answers with."""
    lines: list[tuple[str, str]] = field(default_factory=list)
    """Lines that are printed, each with the tool that prints it; "" is every tool."""

    @property
    def name(self) -> str:
        return self.words.split()[0]

    @contextmanager
    def typed(self) -> Iterator[None]:
        """What is typed stands in the standard input of this process."""
        with mock.patch("sys.stdin", io.StringIO(f"{self.types}\n")):
            yield

    def words_for(self, *tools: str) -> str | None:
        """What is typed into a tool; None if it is not run there."""
        for tool in tools:
            if tool in self.other_words:
                words = self.other_words[tool]
                return None if words.startswith("- ") else words
        return self.words


def cases(table: Path = TABLE) -> list[Case]:
    """All paragraphs of a table."""
    found = []
    for part in re.split(r"\n\n+", table.read_text()):
        lines = [line for line in part.splitlines() if line and not line.startswith("#")]
        if lines:
            found.append(_case(lines))
    return found


def _case(lines: list[str]) -> Case:
    case = Case(lines[0])
    for line in lines[1:]:
        word, _, rest = line.partition(" ")
        if line.startswith("  "):
            tool, mark, wanted = line.strip().partition("> ")
            case.lines.append((tool, wanted) if mark and " " not in tool else ("", line.strip()))
        elif word == "needs":
            case.needs.append(rest)
        elif word == "types":
            case.types = rest
        elif word == "then":
            case.then.append(rest)
        elif word == "broker":
            release, _, text = rest.partition(" refuses: ")
            case.refused[release] = text
        else:
            tool, _, words = line.partition(": ")
            case.other_words[tool] = words
    return case


@dataclass(frozen=True)
class Place:
    """What words and lines are filled with."""

    namesrv: str
    broker: str
    name: str
    client: str
    id: str
    offset_id: str
    files: Path

    def fill(self, text: str) -> str:
        return text.format(**vars(self))


def missing_line(case: Case, place: Place, printed: str, *tools: str) -> str | None:
    """The first line of the case that was not printed in its order; None if all were."""
    left = [" ".join(line.split()) for line in printed.splitlines()]
    for tool, line in case.lines:
        if tool and tool not in tools:
            continue
        wanted = place.fill(line)
        while left and not fnmatch.fnmatchcase(left[0], wanted.replace("[", "[[]")):
            left.pop(0)
        if not left:
            return wanted
        left.pop(0)
    return None


def white_listed(folder: Path) -> dict[str, str]:
    """Settings of a broker that serves this machine without a key, and has an access file."""
    file = folder / "plain_acl.yml"
    file.write_text(
        "globalWhiteRemoteAddresses: [127.0.0.*]\n"
        "accounts:\n- {accessKey: shop-app, secretKey: 12345678, topicPerms: [orders=PUB]}\n"
    )
    return {"aclEnable": "true", "aclFile": str(file)}


class Scene:
    """Clients that stay connected to a cluster while commands look at it."""

    def __init__(self, namesrv: str, folder: Path) -> None:
        self._portal = Portal()
        (folder / "topics.json").write_text(
            json.dumps([{"topicName": "listed", "readQueueNums": 3}])
        )
        (folder / "groups.json").write_text(
            json.dumps([{"groupName": "listed", "retryMaxTimes": 3}])
        )
        self._work, self.place = self._portal.run(_begin(namesrv, folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._portal.run(self._work.end())
        self._portal.close()


@dataclass
class _Work:
    producer: Producer
    consumer: Consumer

    async def end(self) -> None:
        await self.consumer.close()
        await self.producer.close()


async def _begin(namesrv: str, folder: Path) -> tuple[_Work, Place]:
    """A topic of two queues with three messages, all consumed, and both clients still there."""
    options = ClientOptions(persist_offset_interval_ms=200)
    async with Admin(namesrv) as admin:
        await admin.create_topic(TOPIC, queues=2)
        producer = Producer(namesrv, group=PRODUCERS, trace=True)
        await producer.start()
        sent = [
            await producer.send(Message(TOPIC, b"body-%d" % at, tags="paid", keys=[f"k{at}"]))
            for at in range(3)
        ]
        consumer = Consumer(namesrv, group=GROUP, client=options, start="first")
        consumer.subscribe(TOPIC)

        @consumer.handler
        async def handle(message: Delivery) -> None:
            """Every message is consumed."""

        await consumer.start()
        await consumer.wait_assigned(2)
        place = await _place(admin, sent[0], namesrv, folder)
    return _Work(producer, consumer), place


async def _place(admin: Admin, first: SendResult, namesrv: str, folder: Path) -> Place:
    ((name, broker),) = (await admin.masters()).items()
    while not (await admin.consume_stats(GROUP)).queues:
        await asyncio.sleep(0.05)
    (member,) = (await admin.consumers(GROUP)).connection_set
    offset_id = first.offset_msg_id or ""
    return Place(namesrv, broker, name, member.client_id, first.msg_id, offset_id, folder)
