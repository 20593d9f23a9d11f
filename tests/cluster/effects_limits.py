"""Limits of connections, requests and tables: what each one refuses, and that it is counted."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from effects import Trial, effect
from peer import Peer

from gantrymq.protocol import batch, fastjson
from gantrymq.protocol.command import Command, encode
from gantrymq.remoting.connection import Connection
from gantrymq.remoting.limits import LIMITS
from gantrymq.remoting.pending_call import ConnectionLost
from gantrymq.testing.cluster import HOST
from gantrymq.testing.disk import MemoryDisk
from gantrymq.testing.network import MemoryNetwork

Ask = Callable[[], Coroutine[Any, Any, Command]]
TRUSTING = b"globalWhiteRemoteAddresses: [127.0.0.1]\naccounts: []\n"
STRANGER = "10.9.9.9"


class TrustingDisk(MemoryDisk):
    """Has an access file that trusts this host."""

    def __init__(self) -> None:
        super().__init__()
        self.make_dirs("/access")
        file = self.open("/access/plain_acl.yml", create=True)
        file.pwrite(TRUSTING, 0)
        file.close()


async def refused_count(trial: Trial, key: str) -> int:
    """What GET_BROKER_RUNTIME_INFO says of a limit."""
    table = fastjson.loads((await trial.peer.call(28)).body)["table"]
    return int(table[f"refused_{key}"])


async def refuses(trial: Trial, key: str, low: int, ask: Ask, high: int = 1_000_000) -> None:
    """Asked again with a low limit the broker refuses, names it and counts it; then serves."""
    assert 0 == (await ask()).code
    await trial.change(**{key: low})
    answer = await ask()
    assert LIMITS[key] == answer.code, answer.remark
    assert f"raise {key} (now {low})" in (answer.remark or "")
    assert 1 == await refused_count(trial, key)
    await trial.change(**{key: high})
    assert 0 == (await ask()).code


async def ends_after(trial: Trial, key: str, connection: Connection) -> None:
    """A connection that is open for long ends soon under a lower limit."""
    await asyncio.sleep(5)
    assert connection.open
    await trial.change(**{key: 1_000})
    await asyncio.sleep(5)
    assert not connection.open
    assert 1 == await refused_count(trial, key)


# connections


@effect("maxConnections")
async def so_many_connections(trial: Trial) -> None:
    """One too many hears the reason in the answer to its first request."""

    async def ask() -> Command:
        return await (await Peer.to(trial.cluster)).call(21)

    await refuses(trial, "maxConnections", 2, ask)


@effect("maxConnectionsPerAddress")
async def so_many_connections_of_one_address(trial: Trial) -> None:
    """Another address is still served."""

    async def ask() -> Command:
        return await (await Peer.to(trial.cluster)).call(21)

    await refuses(trial, "maxConnectionsPerAddress", 1, ask)
    await trial.change(maxConnectionsPerAddress=1)
    network, port = trial.cluster.network, trial.cluster.broker().config.listen_port
    assert isinstance(network, MemoryNetwork)
    other = await network.connect_from(STRANGER, HOST, port, Connection, 3)
    assert 0 == (await other.call(Command(code=21), 3)).code


@effect("frameTimeoutMills")
async def half_a_frame_is_not_waited_for(trial: Trial) -> None:
    """Its first bytes came, the others never do; more bytes of it change nothing."""
    slow = (await Peer.to(trial.cluster)).connection
    frame = encode(Command(code=21))
    slow.write(frame[:10])
    await ends_after(trial, "frameTimeoutMills", slow)
    again = (await Peer.to(trial.cluster)).connection
    for byte in frame:
        again.write(bytes([byte]))
        await asyncio.sleep(0.1)
    assert not again.open


@effect("readerTimeoutMills")
async def answers_are_not_kept_for_ever(trial: Trial) -> None:
    """A peer that stops reading while answers come is cut off."""
    await ends_after(trial, "readerTimeoutMills", await _slow_reader(trial))


@effect("maxSlowReaders")
async def so_many_slow_readers(trial: Trial) -> None:
    """With one too many the one that has been slow for longest is cut off, and no other."""
    lazy = [await _slow_reader(trial) for _ in range(2)]
    await trial.change(maxSlowReaders=2)
    lazy.append(await _slow_reader(trial))
    await asyncio.sleep(1)
    assert [False, True, True] == [each.open for each in lazy]
    assert 1 == await refused_count(trial, "maxSlowReaders")
    lazy[1].transport.resume_reading()
    await asyncio.sleep(1)
    lazy.append(await _slow_reader(trial))
    await asyncio.sleep(1)
    assert [False, True, True, True] == [each.open for each in lazy]


async def _slow_reader(trial: Trial) -> Connection:
    """A peer that asks for megabytes and takes none of them."""
    await trial.peer.send("big", b"x" * 1_000_000)
    lazy = (await Peer.to(trial.cluster)).connection
    lazy.transport.pause_reading()
    for _ in range(8):
        ext = {
            "consumerGroup": "g", "topic": "big", "queueId": "0", "queueOffset": "0",
            "maxMsgNums": "1", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0",
            "subscription": "*", "subVersion": "0",
        }  # fmt: skip
        lazy.submit(Command(code=11, ext=ext), 100).add_done_callback(_heard)
    return lazy


def _heard(answer: asyncio.Future[Command]) -> None:
    error = answer.exception()
    assert error is None or isinstance(error, ConnectionLost)


@effect(
    "authenticationTimeoutMills",
    acl_enable=True,
    acl_file="/access/plain_acl.yml",
    disk=TrustingDisk,
)
async def strangers_do_not_stay(trial: Trial) -> None:
    """Neither who says nothing, nor who is refused again and again; who was served may stay."""
    network, port = trial.cluster.network, trial.cluster.broker().config.listen_port
    assert isinstance(network, MemoryNetwork)
    silent = await network.connect_from(STRANGER, HOST, port, Connection, 3)
    await ends_after(trial, "authenticationTimeoutMills", silent)
    refused = await network.connect_from(STRANGER, HOST, port, Connection, 3)
    while refused.open:
        asked = refused.submit(Command(code=21), 3)
        await asyncio.wait([asked])
        assert isinstance(asked.exception(), ConnectionLost) or asked.result().code == 1
        await asyncio.sleep(0.1)
    assert 2 == await refused_count(trial, "authenticationTimeoutMills")
    assert trial.peer.connection.open


# requests


@effect("maxFrameBytes")
async def so_large_a_request(trial: Trial) -> None:
    """It is answered although its bytes are not read, and its connection closes."""

    async def ask() -> Command:
        return await (await Peer.to(trial.cluster)).send("T", b"x" * 10_000)

    await refuses(trial, "maxFrameBytes", 5_000, ask)


@effect("maxHeaderBytes")
async def so_large_a_header(trial: Trial) -> None:
    """The body does not count."""

    async def ask() -> Command:
        peer = await Peer.to(trial.cluster)
        return await peer.send("T", b"x" * 9_000, props="k\x01" + "v" * 6_000 + "\x02")

    await refuses(trial, "maxHeaderBytes", 5_000, ask)
    await trial.change(maxHeaderBytes=5_000)
    assert 0 == (await trial.peer.send("T", b"x" * 9_000)).code


@effect("maxRequestsPerConnection")
async def so_many_requests_of_a_connection(trial: Trial) -> None:
    """Requests that wait count, and others of the same connection are refused meanwhile."""
    await _waiting_requests(trial, "maxRequestsPerConnection", 1)


@effect("maxRequests")
async def so_many_requests_of_all(trial: Trial) -> None:
    """Requests that wait count, on whatever connection."""
    await _waiting_requests(trial, "maxRequests", 2)


async def _waiting_requests(trial: Trial, key: str, low: int) -> None:
    await trial.create("T")
    peers = [await Peer.to(trial.cluster) for _ in range(2)]

    async def ask() -> Command:
        held = [asyncio.ensure_future(each.pull("T", 0, hold=2_000)) for each in peers]
        await asyncio.sleep(1)
        answer = await peers[0].call(21)
        await asyncio.gather(*held)
        return answer

    await refuses(trial, key, low, ask)


@effect("maxSlowRequestsPerConnection")
async def so_many_slow_requests(trial: Trial) -> None:
    """Those that come at once; the first is served."""

    async def ask() -> Command:
        asked = [asyncio.ensure_future(trial.peer.call(21)) for _ in range(2)]
        answers = await asyncio.gather(*asked)
        assert 0 == answers[0].code
        return answers[1]

    await refuses(trial, "maxSlowRequestsPerConnection", 1, ask)


@effect("maxPullPollingSize")
async def so_many_pulls_wait(trial: Trial) -> None:
    """One too many is refused at once; when the first ends there is a place again."""
    await _waiting_pulls(trial, "maxPullPollingSize")


@effect("maxPollingSizePerConnection")
async def so_many_pulls_of_a_connection_wait(trial: Trial) -> None:
    """Another connection has places of its own."""
    await _waiting_pulls(trial, "maxPollingSizePerConnection")


async def _waiting_pulls(trial: Trial, key: str) -> None:
    await trial.create("T", 2)
    nothing = 19

    async def codes() -> list[Command]:
        asked = [
            asyncio.ensure_future(trial.peer.pull("T", 0, queue, hold=1_000)) for queue in (0, 1)
        ]
        return await asyncio.gather(*asked)

    for low, wanted in ((10, [nothing, nothing]), (1, [nothing, LIMITS[key]])):
        await trial.change(**{key: low})
        answers = await codes()
        assert wanted == [answer.code for answer in answers]
    assert f"raise {key} (now 1)" in (answers[1].remark or "")
    assert 1 == await refused_count(trial, key)
    assert nothing == (await trial.peer.pull("T", 0, hold=1_000)).code


# tables and messages


@effect("maxTopics")
async def so_many_topics(trial: Trial) -> None:
    """Whether a send or an operator makes it; topics that exist are served."""
    names = iter(range(100))

    async def by_send() -> Command:
        return await trial.peer.send(f"fresh-{next(names)}", b"x")

    async def by_operator() -> Command:
        return await trial.create(f"fresh-{next(names)}")

    await refuses(trial, "maxTopics", 10, by_send)
    await trial.change(maxTopics=10)
    assert LIMITS["maxTopics"] == (await by_operator()).code
    assert LIMITS["maxTopics"] == (await trial.peer.send("%DLQ%nobody", b"x")).code
    assert 0 == (await trial.peer.send("fresh-0", b"x")).code
    assert 0 == (await trial.create("fresh-0", 2)).code


@effect("maxGroups")
async def so_many_groups(trial: Trial) -> None:
    """Whether a heartbeat or an operator makes it."""
    names = iter(range(100))

    async def by_heartbeat() -> Command:
        return await trial.peer.heartbeat("c", f"fresh-{next(names)}", "T")

    async def by_operator() -> Command:
        return await trial.peer.call(200, b'{"groupName":"fresh-%d"}' % next(names))

    await refuses(trial, "maxGroups", 5, by_heartbeat)
    await trial.change(maxGroups=5)
    assert LIMITS["maxGroups"] == (await by_operator()).code


@effect("maxQueuesPerTopic")
async def so_many_queues(trial: Trial) -> None:
    """Of a topic, and of the retry topic of a group."""

    async def ask() -> Command:
        return await trial.create("wide", 20)

    await refuses(trial, "maxQueuesPerTopic", 10, ask)
    await trial.change(maxQueuesPerTopic=10)
    group = await trial.peer.call(200, b'{"groupName":"wide","retryQueueNums":11}')
    assert LIMITS["maxQueuesPerTopic"] == group.code


@effect("userPropertyMaxNum")
async def so_many_properties(trial: Trial) -> None:
    """The broker's own two are counted, too."""
    text = "".join(f"k{number}\x01v\x02" for number in range(20))

    async def ask() -> Command:
        return await trial.peer.send("T", b"x", props=text)

    await refuses(trial, "userPropertyMaxNum", 10, ask)


@effect("maxSubscriptionTags")
async def so_many_tags(trial: Trial) -> None:
    """In the pull itself, and in a heartbeat."""
    await trial.peer.send("T", b"x", props="TAGS\x01t1\x02")
    tags = " || ".join(f"t{number}" for number in range(20))

    async def ask() -> Command:
        return await trial.peer.pull("T", 0, tags=tags)

    await refuses(trial, "maxSubscriptionTags", 10, ask)
    await trial.change(maxSubscriptionTags=10)
    data = {"topic": "T", "subString": tags, "codeSet": list(range(20)), "tagsSet": []}
    consumer = {"groupName": "g", "subscriptionDataSet": [data]}
    beat = {"clientID": "c", "consumerDataSet": [consumer], "producerDataSet": []}
    answer = await trial.peer.call(34, fastjson.dumps(beat))
    assert LIMITS["maxSubscriptionTags"] == answer.code


@effect("maxHeartbeatBytes")
async def so_large_a_heartbeat(trial: Trial) -> None:
    """Its groups would stay in memory for as long as its client sends it."""
    producers = [{"groupName": f"group-{number}"} for number in range(100)]
    beat = {"clientID": "c", "consumerDataSet": [], "producerDataSet": producers}

    async def ask() -> Command:
        return await trial.peer.call(34, fastjson.dumps(beat))

    await refuses(trial, "maxHeartbeatBytes", 1_000, ask)


@effect("maxMessagesPerBatch")
async def so_many_messages_in_a_batch(trial: Trial) -> None:
    """Small ones; the bytes of a batch have a limit of their own."""
    body = batch.encode([batch.Item(0, b"x", b"")] * 20)
    ext = {
        "a": "p", "b": "T", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0, "m": "true",
    }  # fmt: skip

    async def ask() -> Command:
        return await trial.peer.call(320, body, **ext)

    await refuses(trial, "maxMessagesPerBatch", 10, ask)
