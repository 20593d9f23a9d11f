"""Settings whose effect a sender sees."""

import asyncio
from collections.abc import Sequence

from effects import Trial, effect, seconds
from peer import Peer, bodies, messages

from gantrymq.base.offload import InlineOffload
from gantrymq.model import CHECK_MAX_TOPIC, reply_topic
from gantrymq.protocol import fastjson
from gantrymq.protocol.command import Command
from gantrymq.store.log.syncer import InlineSyncer
from gantrymq.testing.loop import VirtualLoop

BUSY, FLUSH_TIMEOUT, ILLEGAL, FORBIDDEN, NO_TOPIC, INVALID = 2, 10, 13, 16, 17, 29
CHECK_STATE = 39
FILE_BYTES = 64 * 1024
HALF_A_FILE = b"x" * 40_000


class SlowFiles(InlineOffload):
    """New files of the log take their time."""

    seconds = 0.0

    async def run(self, fn, *args):  # type: ignore[no-untyped-def]
        if getattr(fn, "__name__", "") == "make_spare":
            await asyncio.sleep(self.seconds)
        return await super().run(fn, *args)


# topics and permissions


@effect("autoCreateTopicEnable")
async def topics_are_made_on_first_use(trial: Trial) -> None:
    """Refused while it is off, made again when it is on."""
    codes = []
    for value in (False, True):
        await trial.change(autoCreateTopicEnable=value)
        codes.append((await trial.peer.send(f"fresh-{value}", b"x")).code)
    assert [NO_TOPIC, 0] == codes


@effect("brokerPermission")
async def a_broker_is_read_only(trial: Trial) -> None:
    """Pulls need the one bit, sends to ordered topics the other, as on RocketMQ's brokers."""
    await trial.create("ordered", order="true")
    await trial.create("plain")

    async def codes(permission: int) -> list[int]:
        await trial.change(brokerPermission=permission)
        answers = [await trial.peer.send(topic, b"x") for topic in ("ordered", "plain")]
        return [*(answer.code for answer in answers), (await trial.peer.pull("plain", 0)).code]

    assert [FORBIDDEN, 0, 0] == await codes(4)
    assert [0, 0, FORBIDDEN] == await codes(2)
    assert [0, 0, 0] == await codes(6)


@effect("enableMixedMessageType")
async def a_topic_may_mix_types(trial: Trial) -> None:
    """The attribute is refused, then taken."""
    mixed = {"attributes": "+message.type=MIXED"}
    assert INVALID == (await trial.create("mixed", **mixed)).code
    await trial.change(enableMixedMessageType=True)
    assert 0 == (await trial.create("mixed", **mixed)).code


@effect("traceTopicEnable")
async def the_trace_topic_is_made(trial: Trial) -> None:
    """Name servers know it, so that clients find it."""
    namesrv = await Peer.to_namesrv(trial.cluster)
    topic = {"topic": "RMQ_SYS_TRACE_TOPIC"}
    assert NO_TOPIC == (await namesrv.call(105, **topic)).code
    await trial.change(traceTopicEnable=True)
    await asyncio.sleep(1)
    assert 0 == (await namesrv.call(105, **topic)).code


# the message and its answer


@effect("maxMessageSize")
async def bodies_have_a_limit(trial: Trial) -> None:
    """A body fits, is too large, fits again."""
    codes = []
    for limit in (2_000, 1_000, 4_000):
        await trial.change(maxMessageSize=limit)
        codes.append((await trial.peer.send("t", b"x" * 2_000)).code)
    assert [0, ILLEGAL, 0] == codes


@effect("regionId")
async def messages_carry_the_region(trial: Trial) -> None:
    """It stands in the answer to every kind of send, in refusals, and in what is stored."""
    peer, clock = trial.peer, trial.cluster.clock
    await trial.create("t")
    for region in ("north", "DefaultRegion", "south"):
        await trial.change(regionId=region)
        timed = f"TIMER_DELIVER_MS\x01{clock.now_ms() + 90_000}\x02UNIQ_KEY\x01u\x02"
        answers = [
            await peer.send("t", b"x", props="UNIQ_KEY\x01id\x02"),
            await peer.send("t", b"x", props=timed),
            await peer.send("t", b"x", queue=99),
            await peer.call(325, b"y", **_reply_fields()),
        ]
        assert [region] * 4 == [answer.ext["MSG_REGION"] for answer in answers]
        assert "id" == answers[0].ext["transactionId"]
        await trial.peer.call(320, _batch(b"one", b"two"), **_fields("t"), m="true")
    found = messages(await peer.pull("t", 0))
    assert ["north"] * 3 + ["DefaultRegion"] * 3 + ["south"] * 3 == [
        message.properties["MSG_REGION"] for message in found
    ]


@effect("storeReplyMessageEnable")
async def replies_are_stored(trial: Trial) -> None:
    """A reply is kept, the next one is not, the third is."""
    topic = reply_topic("DefaultCluster")
    for value in (True, False, True):
        await trial.change(storeReplyMessageEnable=value)
        await trial.peer.call(325, f"{value}".encode(), **_reply_fields())
    assert [b"True", b"True"] == bodies(await trial.peer.pull(topic, 0))


def _fields(topic: str) -> dict[str, object]:
    return {"a": "p", "b": topic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0}


def _reply_fields() -> dict[str, object]:
    return _fields(reply_topic("DefaultCluster")) | {"i": "REPLY_TO_CLIENT\x01gone\x02"}


def _batch(*payloads: bytes) -> bytes:
    parts = []
    for payload in payloads:
        size = 4 + 4 + 4 + 4 + 4 + len(payload) + 2
        parts.append(b"".join(number.to_bytes(4, "big") for number in (size, 0, 0, 0)))
        parts.append(len(payload).to_bytes(4, "big") + payload + b"\0\0")
    return b"".join(parts)


# flow control


@effect("sendThreadPoolQueueCapacity", syncer=InlineSyncer, flush_disk_type="SYNC_FLUSH")
async def sends_wait_for_the_disk(trial: Trial) -> None:
    """Of three at once one may wait, then all of them."""
    trial.parts["syncer"].delay = 1.0
    await trial.create("t")

    async def refused() -> list[Command]:
        answers = await asyncio.gather(*(trial.peer.send("t", b"x") for _ in range(3)))
        return [answer for answer in answers if answer.code == BUSY]

    await trial.change(sendThreadPoolQueueCapacity=1)
    busy = await refused()
    assert ["sendThreadPoolQueueCapacity is 1"] * 2 == [
        (answer.remark or "").rpartition(", ")[2] for answer in busy
    ]
    await trial.change(sendThreadPoolQueueCapacity=3)
    assert [] == await refused()


async def _fill_a_file(trial: Trial) -> None:
    """The next message needs a file that takes half a minute."""
    trial.parts["offload"].seconds = 30.0
    assert 0 == (await trial.peer.send("t", HALF_A_FILE)).code


@effect("waitTimeMillsInSendQueue", offload=SlowFiles, mapped_file_size_commit_log=FILE_BYTES)
async def sends_wait_for_a_file(trial: Trial) -> None:
    """They are refused after the new time."""
    await _fill_a_file(trial)
    for wait in (1_000, 3_000):
        await trial.change(waitTimeMillsInSendQueue=wait)
        send = asyncio.ensure_future(trial.peer.send("t", HALF_A_FILE))
        assert wait / 1000 == await seconds(send)
        assert BUSY == send.result().code
        assert f"waitTimeMillsInSendQueue is {wait}" in (send.result().remark or "")


@effect("brokerFastFailureEnable", offload=SlowFiles, mapped_file_size_commit_log=FILE_BYTES)
async def late_sends_are_refused_or_not(trial: Trial) -> None:
    """A send that waits already obeys the change, either way."""
    await _fill_a_file(trial)
    await trial.change(waitTimeMillsInSendQueue=5_000)
    send = asyncio.ensure_future(trial.peer.send("t", HALF_A_FILE))
    await asyncio.sleep(1)
    await trial.change(brokerFastFailureEnable=False)
    await asyncio.sleep(10)
    assert not send.done()
    await trial.change(brokerFastFailureEnable=True)
    assert BUSY == (await send).code
    await trial.change(brokerFastFailureEnable=False)
    assert 0 == (await trial.peer.send("t", HALF_A_FILE)).code


@effect("osPageCacheBusyTimeOutMills")
async def a_slow_write_counts_as_busy(trial: Trial) -> None:
    """A write of half a second is fast enough, until it is not."""

    def slow_write(operation: str, path: str) -> None:
        if operation == "pwrite" and "commitlog" in path:
            trial.disk.fault = None
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.now += 0.5

    async def behind_a_slow_write() -> Command:
        trial.disk.fault = slow_write
        assert 0 == (await trial.peer.send("t", b"slow")).code
        answer = await trial.peer.send("t", b"next")
        await asyncio.sleep(1)
        return answer

    await trial.create("t")
    assert 0 == (await behind_a_slow_write()).code
    await trial.change(osPageCacheBusyTimeOutMills=300)
    answer = await behind_a_slow_write()
    assert BUSY == answer.code
    assert "osPageCacheBusyTimeOutMills is 300" in (answer.remark or "")
    await trial.change(osPageCacheBusyTimeOutMills=600)
    assert 0 == (await behind_a_slow_write()).code


@effect("syncFlushTimeout", syncer=InlineSyncer, flush_disk_type="SYNC_FLUSH")
async def a_flush_has_a_time(trial: Trial) -> None:
    """The sender hears after the new time that the disk is not done."""
    trial.parts["syncer"].delay = 20.0
    await trial.create("t")
    for timeout in (1_000, 2_000):
        await trial.change(syncFlushTimeout=timeout)
        send = asyncio.ensure_future(trial.peer.send("t", b"x"))
        assert timeout / 1000 == await seconds(send)
        assert FLUSH_TIMEOUT == send.result().code


@effect("flushDiskType", syncer=InlineSyncer)
async def sends_are_answered_when_they_are_durable(trial: Trial) -> None:
    """Both ways, and what is under way during a change keeps its order."""
    trial.parts["syncer"].delay = 2.0
    await trial.create("t")
    assert 0.0 == await seconds(trial.peer.send("t", b"0"))
    await trial.change(flushDiskType="SYNC_FLUSH")
    await asyncio.sleep(5)
    assert 2.0 == await seconds(trial.peer.send("t", b"1"))
    assert trial.store.flushed.value == trial.store.log_max
    late = asyncio.ensure_future(trial.peer.send("t", b"2"))
    await asyncio.sleep(0.1)
    await trial.change(flushDiskType="ASYNC_FLUSH")
    behind = asyncio.ensure_future(trial.peer.send("t", b"3"))
    assert [b"0", b"1"] == await _everything(trial)
    assert [0, 0] == [(await late).code, (await behind).code]
    assert 0.0 == await seconds(trial.peer.send("t", b"4"))
    assert [b"0", b"1", b"2", b"3", b"4"] == await _everything(trial)


async def _everything(trial: Trial) -> list[bytes]:
    """All that readers may see of a queue."""
    found: list[bytes] = []
    while more := bodies(await trial.peer.pull("t", len(found))):
        found += more
    return found


# messages that wait


async def _arrival(trial: Trial, props: str, *, topic: str = "later") -> float:
    """How long a message waits."""
    offset = trial.store.queues.max_offset(topic, 0)
    assert 0 == (await trial.peer.send(topic, b"x", props=props)).code
    return await seconds(trial.peer.pull(topic, offset, hold=100_000))


@effect("messageDelayLevel")
async def levels_have_other_delays(trial: Trial) -> None:
    """What waits already follows the new table, and levels may be added and taken away."""
    await trial.create("later")
    assert 5.0 == await _arrival(trial, "DELAY\x012\x02")
    waits = asyncio.ensure_future(_arrival(trial, "DELAY\x0118\x02"))
    await asyncio.sleep(1)
    levels = " ".join(["3s"] * 18)
    await trial.change(messageDelayLevel=f"{levels} 7s")
    assert 3.0 == await waits
    assert 3.0 == await _arrival(trial, "DELAY\x012\x02")
    assert 7.0 == await _arrival(trial, "DELAY\x0119\x02")
    await trial.change(messageDelayLevel="1s 2s")
    assert 2.0 == await _arrival(trial, "DELAY\x0119\x02")


@effect("timerMaxDelaySec")
async def times_may_not_be_too_far(trial: Trial) -> None:
    """A minute is allowed, then too long, then allowed."""
    codes = []
    for longest in (60, 59, 3_600):
        await trial.change(timerMaxDelaySec=longest)
        sent = await trial.peer.send("t", b"x", props="TIMER_DELAY_SEC\x0160\x02")
        codes.append(sent.code)
    assert [0, ILLEGAL, 0] == codes


@effect("recallMessageEnable")
async def messages_can_be_recalled(trial: Trial) -> None:
    """Forbidden while it is off."""
    due = trial.cluster.clock.now_ms() + 60_000
    props = f"TIMER_DELIVER_MS\x01{due}\x02UNIQ_KEY\x01id\x02"
    handle = (await trial.peer.send("t", b"x", props=props)).ext["recallHandle"]
    codes = []
    for value in (False, True):
        await trial.change(recallMessageEnable=value)
        codes.append((await trial.peer.call(370, topic="t", recallHandle=handle)).code)
    assert [FORBIDDEN, 0] == codes


# transactions


async def _half(trial: Trial) -> Command:
    text = "TRAN_MSG\x01true\x02PGROUP\x01shop\x02UNIQ_KEY\x01id\x02"
    born = trial.cluster.clock.now_ms()
    return await trial.peer.call(310, b"x", **_fields("t") | {"f": 4, "g": born, "i": text})


async def _as_producer(trial: Trial) -> None:
    beat = {"clientID": "c", "consumerDataSet": [], "producerDataSet": [{"groupName": "shop"}]}
    await trial.create("t")
    await trial.peer.call(34, fastjson.dumps(beat))


async def _questions(trial: Trial, count: int) -> Sequence[float]:
    """After how many seconds the broker asks for a decision."""
    loop = asyncio.get_running_loop()
    began, asked = loop.time(), []
    trial.peer.pushed.clear()
    while len(asked) < count:
        await asyncio.sleep(0.01)
        found = [push for push in trial.peer.pushed if push.code == CHECK_STATE]
        asked += [round(loop.time() - began, 1)] * (len(found) - len(asked))
    return asked


@effect("rejectTransactionMessage")
async def transactions_are_refused(trial: Trial) -> None:
    """Half messages, before and after."""
    await trial.create("t")
    codes = []
    for value in (False, True, False):
        await trial.change(rejectTransactionMessage=value)
        codes.append((await _half(trial)).code)
    assert [0, FORBIDDEN, 0] == codes


@effect("transactionTimeOut")
async def producers_are_asked_sooner(trial: Trial) -> None:
    """The first question comes after the new time."""
    await _as_producer(trial)
    for timeout in (2_000, 4_000):
        await trial.change(transactionTimeOut=timeout)
        await _half(trial)
        assert [timeout / 1000] == await _questions(trial, 1)


@effect("transactionCheckInterval", transaction_time_out=1_000)
async def producers_are_asked_more_often(trial: Trial) -> None:
    """The second question follows the first after the new time."""
    await _as_producer(trial)
    await trial.change(transactionCheckInterval=3_000)
    await _half(trial)
    assert [1.0, 4.0, 7.0] == await _questions(trial, 3)


@effect("transactionCheckMax", transaction_time_out=1_000, transaction_check_interval=1_000)
async def a_transaction_is_given_up(trial: Trial) -> None:
    """After the new number of questions, also one that was asked about before."""
    await _as_producer(trial)
    await _half(trial)
    await _questions(trial, 3)
    assert 0 == trial.store.queues.max_offset(CHECK_MAX_TOPIC, 0)
    await trial.change(transactionCheckMax=2)
    await asyncio.sleep(2)
    assert [b"x"] == bodies(await trial.peer.pull(CHECK_MAX_TOPIC, 0))
