"""What somebody sends who means harm: each is refused with a code, and the servers serve on.

Over real sockets, to a broker and a name server with their default limits. No case may take long,
leave a file, need much memory, or end in an exception that nobody expected.
"""

import asyncio
import json
import logging
import os
import re
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from logkit import loggers_restored

from gantrymq import Message
from gantrymq.base.errors import ConfigError, GantryError, ProtocolError
from gantrymq.base.telemetry import start_logging
from gantrymq.base.telemetry_settings import TelemetrySettings
from gantrymq.protocol import compression
from gantrymq.protocol.command import Command, encode
from gantrymq.spark.options import values
from gantrymq.testing.cluster import HOST, Cluster

SECONDS_MAX = 1.0
"""For one request, on a machine that does other things, too."""
GROWTH_KIB_MAX = 200 * 1024
BROKER, NAME_SERVER = "broker", "name server"
ANSWERED = range(1, 300)
"""Any code but success; None stands for a closed connection."""


class Case(NamedTuple):
    """Bytes for a server, and the codes that may be the answer."""

    name: str
    server: str
    data: bytes
    codes: Any = ANSWERED


def frame(code: int, ext: dict[str, Any] | None = None, body: bytes = b"") -> bytes:
    """A request whose header is plain JSON, as others write it."""
    fields = {key: str(value) for key, value in (ext or {}).items()}
    header = json.dumps({"code": code, "opaque": 7, "extFields": fields}).encode()
    return raw(header, body)


def raw(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


def send(topic: str = "T", **more: Any) -> dict[str, Any]:
    plain = {"a": "p", "b": topic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0}
    return {**plain, **more}


def pull(**more: Any) -> dict[str, Any]:
    plain = {
        "consumerGroup": "g", "topic": "T", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32,
        "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*",
        "subVersion": 0,
    }  # fmt: skip
    return {**plain, **more}


def registration(**more: Any) -> dict[str, Any]:
    plain = {
        "brokerName": "b", "brokerAddr": "10.0.0.1:10911", "clusterName": "c",
        "haServerAddr": "", "brokerId": 0,
    }  # fmt: skip
    return {**plain, **more}


def heartbeat(client: str = "c", group: str = "g", topic: str = "T", tags: str = "*") -> bytes:
    data = {"topic": topic, "subString": tags}
    consumer = {"groupName": group, "subscriptionDataSet": [data]}
    return json.dumps({"clientID": client, "consumerDataSet": [consumer]}).encode()


def item(total: int | None = None, size: int = 1, properties: int = 0) -> bytes:
    """A message of a batch with one byte, whose lengths may lie."""
    inner = struct.pack(">iiii", 0, 0, 0, size) + b"x" + struct.pack(">h", properties)
    return struct.pack(">i", 4 + len(inner) if total is None else total) + inner


# names that would leave a directory, or forge a line of a log

NAMES = ("../x", "a/b", "a\x00b", "n" * 300, "%RETRY%../..", "", "..", "a\nb", "\ud800/")
UNREADABLE = ("a\x00b", "n" * 300, "", "a\nb\x1b[2J")


def names() -> Iterator[Case]:
    for name in NAMES:
        topic = {
            "topic": name, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4,
            "perm": 6, "topicFilterType": "SINGLE_TAG",
        }  # fmt: skip
        pop = {
            "consumerGroup": name, "topic": "T", "queueId": -1, "maxMsgNums": 1,
            "invisibleTime": 1000, "pollTime": 0, "bornTime": 0, "initMode": 0,
        }  # fmt: skip
        lock = {"consumerGroup": name, "clientId": "c", "mqSet": []}
        yield Case(f"send to {name!r}", BROKER, frame(310, send(name), b"x"))
        yield Case(f"create {name!r}", BROKER, frame(17, topic))
        yield Case(f"create list {name!r}", BROKER, frame(18, {}, _topics(name)))
        yield Case(f"delete {name!r}", BROKER, frame(215, {"topic": name}))
        yield Case(f"group {name!r}", BROKER, frame(200, {}, _json(groupName=name)))
        yield Case(f"member of {name!r}", BROKER, frame(34, {}, heartbeat(group=name)))
        yield Case(f"pull as {name!r}", BROKER, frame(11, pull(consumerGroup=name)))
        yield Case(f"pull of {name!r}", BROKER, frame(11, pull(topic=name)))
        yield Case(f"pop as {name!r}", BROKER, frame(200050, pop))
        yield Case(f"lock as {name!r}", BROKER, frame(41, {}, json.dumps(lock).encode()))
        forbidden = {"group": name, "topic": name, "readable": "false"}
        yield Case(f"forbid {name!r}", BROKER, frame(353, forbidden))
        progress = {"consumerGroup": name, "topic": "T", "queueId": 0, "commitOffset": 1}
        yield Case(f"progress of {name!r}", BROKER, frame(15, progress))
    for name in UNREADABLE:
        if name:
            yield Case(f"client {name!r}", BROKER, frame(34, {}, heartbeat(client=name)))
        yield Case(f"subscribe {name!r}", BROKER, frame(34, {}, heartbeat(topic=name)))
        producer = _json(clientID="c", producerDataSet=[{"groupName": name}])
        yield Case(f"producer {name!r}", BROKER, frame(34, {}, producer))
        for field in ("brokerName", "clusterName", "brokerAddr"):
            data = frame(103, registration(**{field: name}))
            yield Case(f"{field} {name!r}", NAME_SERVER, data)
        for field in ("namespace", "key"):
            kv = {"namespace": "ns", "key": "k", "value": "v", field: name}
            yield Case(f"KV {field} {name!r}", NAME_SERVER, frame(100, kv))
        yield Case(f"route {name!r}", NAME_SERVER, frame(217, {"topic": name}, b"{}"))


def _json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def _topics(name: str) -> bytes:
    return _json(topicConfigList=[{"topicName": name, "readQueueNums": 1, "writeQueueNums": 1}])


# lengths and counts that lie

BATCHES = {
    "a negative size": item(total=-1),
    "no size": item(total=0),
    "a huge size": item(total=2**31 - 1),
    "a negative body": item(size=-1),
    "a huge body": item(size=2**31 - 1),
    "negative properties": item(properties=-1),
    "huge properties": item(properties=32_767),
    "a rest": item() + b"\0\0",
    "nothing": b"",
    "a hundred thousand": item() * 100_000,
}


def lengths() -> Iterator[Case]:
    for server in (BROKER, NAME_SERVER):
        yield Case("a header beyond its frame", server, struct.pack(">II", 8, 100) + b"xxxx", None)
        yield Case("a negative frame", server, struct.pack(">iI", -1, 4) + b"xxxx", None)
        yield Case("an empty frame", server, struct.pack(">II", 0, 0), None)
        yield Case("a negative header", server, struct.pack(">II", 100, 0xFFFFFFFF), None)
        long_header = struct.pack(">II", 1 << 20, (1 << 20) - 8)
        yield Case("a header of 1 MiB", server, long_header, None)
        begun = frame(105, {"topic": "T"})
        long_frame = struct.pack(">I", 20 << 20) + begun[4:]
        yield Case("a frame of 20 MiB", server, long_frame, (13,))
    for name, body in BATCHES.items():
        yield Case(f"a batch with {name}", BROKER, frame(320, send(m="true"), body))
    for queues in (-1, 70_000, 2**31 - 1, 2**40):
        topic = {"topic": "wide", "readQueueNums": queues, "writeQueueNums": queues, "perm": 6}
        yield Case(f"{queues} queues", BROKER, frame(17, topic))
        group = _json(groupName="wide", retryQueueNums=queues)
        if queues > 0:
            yield Case(f"{queues} retry queues", BROKER, frame(200, {}, group))
    text = "".join(f"k{number}\x01v\x02" for number in range(2_000))
    yield Case("2,000 properties", BROKER, frame(310, send(i=text), b"x"), (13,))
    text = "k\x01" + "v" * 40_000 + "\x02"
    yield Case("40,000 bytes of properties", BROKER, frame(310, send(i=text), b"x"), (13,))
    tags = "||".join(f"t{number}" for number in range(10_000))
    yield Case("10,000 tags in a pull", BROKER, frame(11, pull(subscription=tags)), (23,))
    yield Case("10,000 tags of a member", BROKER, frame(34, {}, heartbeat(tags=tags)), (23,))
    many = [{"groupName": f"group-{number}"} for number in range(100_000)]
    yield Case("100,000 groups", BROKER, frame(34, {}, _json(clientID="c", producerDataSet=many)))


# numbers

HUGE = (2**31, 2**63 - 1, 2**63, 10**40, -1, -(2**63))


def numbers() -> Iterator[Case]:
    for number in HUGE:
        yield Case(f"queue {number}", BROKER, frame(11, pull(queueId=number)))
        yield Case(f"pull at {number}", BROKER, frame(11, pull(queueOffset=number)), (1, 19, 21))
        place = {"topic": "T", "queueId": 0, "timestamp": number}
        yield Case(f"offset at {number}", BROKER, frame(29, place), range(300))
        yield Case(f"message at {number}", BROKER, frame(33, {"offset": number}))
        wide = {"consumerGroup": "g", "topic": "T", "queueId": number, "commitOffset": 1}
        yield Case(f"progress of queue {number}", BROKER, frame(15, wide), range(300))
        end = {
            "producerGroup": "p", "tranStateTableOffset": number, "commitLogOffset": number,
            "commitOrRollback": 8,
        }  # fmt: skip
        yield Case(f"commit at {number}", BROKER, frame(37, end))


# texts that are no texts, and JSON that is none

DEEP = b"[" * 10_000 + b"]" * 10_000
BODIES = {
    "an array 10,000 deep": DEEP,
    "an object 10,000 deep": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "open brackets": b"[" * 100_000,
    "UTF-16": '{"clientID":"c"}'.encode("utf-16"),
    "quotes": b"'" * 100_000,
    "comments": b"/*" * 50_000,
    "a megabyte of blanks": b" " * 1_000_000,
    "16 megabytes of blanks": b" " * 16_000_000,
    "references to references": b"[" * 60 + b'{"$ref":".."},' * 15_000 + b"1" + b"]" * 60,
    "300,000 words": b"[" + b"a," * 300_000 + b"]",
}


def texts() -> Iterator[Case]:
    for name, body in BODIES.items():
        for code in (34, 41, 46, 200, 225):
            yield Case(f"{name} for {code}", BROKER, frame(code, {}, body))
        for code in (103, 217, 322):
            ext = {**registration(), "topic": "T"}
            yield Case(f"{name} for {code}", NAME_SERVER, frame(code, ext, body))
    for server in (BROKER, NAME_SERVER):
        header = b'{"code":9999,"opaque":7,"extFields":{"a":' + DEEP + b"}}"
        yield Case("a deep header", server, raw(header), None)
        yield Case("a header in UTF-16", server, raw('{"code":9999}'.encode("utf-16")), None)
        yield Case("a list as header", server, raw(b"[]"), None)
        yield Case("a header of bytes", server, raw(b'{"code":9999,"remark":"\xff"}'))
        yield Case("a code twice", server, raw(b'{"code":105,"code":9999,"opaque":7}'), (3,))
        half = b'{"code":9999,"extFields":{"\\ud800":"\\udfff"}}'
        yield Case("half a character", server, raw(half), (3,))
    smuggled = 'UNIQ_KEY\x01a","queueOffset":"9\x02'
    yield Case("a key with a field in it", BROKER, frame(310, send(i=smuggled), b"x"), (13,))
    smuggled = "UNIQ_KEY\x01a\nb\x02"
    yield Case("a key with a line in it", BROKER, frame(310, send(i=smuggled), b"x"), (13,))
    bomb = zlib.compress(bytes(200 * 1024 * 1024))
    packed = frame(103, registration(compressed="true"), bomb)
    yield Case("a packed registration of 200 MiB", NAME_SERVER, packed, (13,))


# conditions that explode

CONDITIONS = {
    "70,000 letters": "a" * 70_000,
    "brackets": "(" * 5_000 + "a=1" + ")" * 5_000,
    "NOT after NOT": "NOT " * 5_000 + "a=1",
    "3,000 alternatives": " OR ".join(f"a={number}" for number in range(3_000)),
    "100,000 members of IN": "a IN (" + ",".join(f"'{n}'" for n in range(100_000)) + ")",
    "minus signs": "-" * 50_000 + "1=1",
    "quotes": "'" * 65_000,
    "comments": "/*" * 30_000,
    "BETWEEN": "a BETWEEN " * 3_000,
    "a long pattern": "a LIKE '" + "%a" * 700 + "'",
}


def conditions() -> Iterator[Case]:
    for name, text in CONDITIONS.items():
        ext = pull(subscription=text, expressionType="SQL92")
        codes = None if len(text) > 500_000 else (23,)
        yield Case(f"a condition with {name}", BROKER, frame(11, ext), codes)


CASES = [*names(), *lengths(), *numbers(), *texts(), *conditions()]


def test_each_is_refused_and_the_servers_serve_on(caplog: pytest.LogCaptureFixture) -> None:
    """
    Every case gets one of its codes with a remark, or a closed connection, within a second; no
    folder is left that belongs to no topic, memory is as before, and honest requests are served.
    """
    caplog.set_level(logging.WARNING)
    wrong: list[str] = []

    async def story() -> int:
        async with asyncio.timeout(120), Cluster() as cluster:
            ports = {
                BROKER: cluster.broker().config.listen_port,
                NAME_SERVER: int(cluster.namesrv.rpartition(":")[2]),
            }
            for queue in range(4):
                await ask(ports[BROKER], frame(310, send(e=queue), b"x"))
            before = await settled(cluster, ports)
            memory = rss_anon_kib()
            for case in CASES:
                wrong.extend(await judged(case, ports))
            assert before == await settled(cluster, ports)
            return rss_anon_kib() - memory

    growth = asyncio.run(story())
    unexpected = [record.getMessage() for record in caplog.records if record.exc_info]

    assert [] == wrong
    assert [] == unexpected
    assert growth < GROWTH_KIB_MAX


async def judged(case: Case, ports: dict[str, int]) -> list[str]:
    """What is wrong with the answer to one case."""
    began = time.perf_counter()
    answer = await ask(ports[case.server], case.data)
    took = time.perf_counter() - began
    found = []
    if took > SECONDS_MAX:
        found.append(f"{case.server}: {case.name} took {took:.1f} s")
    if case.codes is None:
        if answer is not None:
            found.append(f"{case.server}: {case.name} was answered {answer.code}")
    elif answer is None:
        found.append(f"{case.server}: {case.name} closed the connection")
    elif answer.code not in case.codes:
        found.append(f"{case.server}: {case.name} gave {answer.code} {(answer.remark or '')[:80]}")
    elif answer.code and not answer.remark:
        found.append(f"{case.server}: {case.name} gave {answer.code} without a word")
    elif len(answer.remark or "") > 2_000:
        found.append(f"{case.server}: {case.name} got a remark of {len(answer.remark or '')}")
    return found


async def ask(port: int, data: bytes) -> Command | None:
    """The answer to one request on a connection of its own; None if it was closed."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(data)
        while True:
            (size,) = struct.unpack(">I", await reader.readexactly(4))
            rest = await reader.readexactly(size)
            header = json.loads(rest[4 : 4 + (struct.unpack(">I", rest[:4])[0] & 0xFFFFFF)])
            if header["flag"] & 1:  # not a notice to the members of a group
                return Command(code=header["code"], remark=header.get("remark"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    finally:
        writer.close()


async def settled(cluster: Cluster, ports: dict[str, int]) -> tuple[list[str], list[str]]:
    """Topics and groups, and the folders that belong to none of them."""
    assert await ask(ports[BROKER], frame(310, send(), b"honest")) is not None
    assert await ask(ports[NAME_SERVER], encode(Command(code=105, ext={"topic": "T"}))) is not None
    registry = cluster.broker().registry
    topics = registry.topics.table
    known = [name for name in (*topics, *registry.groups.table) if name not in ("g", "%RETRY%g")]
    root = Path(cluster._root)
    queues = root / "broker-a" / "consumequeue"
    folders = [name for name in os.listdir(root) if "namesrv" not in name]
    return sorted(known), folders + [name for name in os.listdir(queues) if name not in topics]


def rss_anon_kib() -> int:
    found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


# our own clients


@pytest.mark.parametrize("kind", ["zlib", "lz4", "zstd"])
def test_a_body_that_unpacks_to_gigabytes_is_refused(kind: str) -> None:
    """
    Consumers and Spark unpack 64 MiB at most, and need no more memory to find that out.
    """
    packed, flags = compression.compress(bytes(compression.UNPACKED_BYTES_MAX + 1), kind)

    with pytest.raises(ProtocolError, match="larger than 67108864 bytes unpacked"):
        compression.decompress(packed, flags)
    with pytest.raises(ProtocolError, match="cut off"):
        compression.decompress(compression.compress(b"x" * 100, kind)[0][:-3], flags)


@pytest.mark.parametrize(
    "properties",
    [{"a\x01b": "v"}, {"a": "v\x02w"}, {"a": "\x01"}, {"a\x02": "v"}, {"a": "\ud800"}],
)
def test_a_property_cannot_carry_another_one(properties: dict[str, str]) -> None:
    """
    The characters that separate properties, and half a character, are refused when a message is
    made.
    """
    with pytest.raises(GantryError, match=r"separator|half a character"):
        Message("T", b"x", properties=properties)


@pytest.mark.parametrize("name", ["../x", "a/b", "a\x00b", "t" * 128, ""])
def test_a_message_has_a_topic_that_is_no_path(name: str) -> None:
    """
    The client refuses such a name before a broker sees it.
    """
    with pytest.raises(GantryError):
        Message(name, b"x")


@pytest.mark.parametrize("text", ["(a+)+", "(a|aa)+b", "(a*)*", ".*a.*b.*c.*d.*e", "(?:a?){90}a"])
def test_a_pattern_that_could_take_years_is_refused(text: str) -> None:
    """
    Spark matches names of topics, which others choose, with it.
    """
    with pytest.raises(ConfigError, match="subscribePattern could take years"):
        values.pattern(text, "subscribePattern")


@pytest.mark.parametrize("text", ["orders.*", "(orders|prices)-[0-9]+", "%RETRY%.*", "a.*b.*c"])
def test_ordinary_patterns_are_taken(text: str) -> None:
    """
    A few repetitions, and alternatives outside of them, are quick for every name.
    """
    assert text == values.pattern(text, "subscribePattern")


def test_a_name_cannot_forge_a_line_of_the_log(tmp_path: Path) -> None:
    """
    What comes from the network stands in one line of the log, control characters escaped.
    """
    with loggers_restored():
        listener = start_logging(str(tmp_path), "broker.log", TelemetrySettings())
        logging.getLogger("test").warning("group %s", "a\n2026-01-01 INFO forged\x1b[2J")
        listener.stop()

    (line,) = (tmp_path / "broker.log").read_text().splitlines()
    assert line.endswith("group a\\n2026-01-01 INFO forged\\x1b[2J")
