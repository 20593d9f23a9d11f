"""The life of one message: found wherever its copies lie, and told in order."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from peer import Peer, Run

from gantrymq import ConsumerOptions, Delivery, Message, SendResult
from gantrymq.cli.history import why as why_command
from gantrymq.client.admin.messages.history_query import SOURCES, HistoryQuery, NothingKnown, why
from gantrymq.client.admin.messages.message_history import Event, MessageHistory, Standing
from gantrymq.model import GroupConfig
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

FIRST = ConsumerOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
TRACED = {"trace_topic_enable": True}


async def life(cluster: Cluster, msg_id: str, **more: Any) -> MessageHistory:
    async with cluster.admin() as admin:
        return await why(admin, msg_id, **more)


async def life_with(
    cluster: Cluster, msg_id: str, ready: Callable[[MessageHistory], bool], **more: Any
) -> MessageHistory:
    """Once it looks as expected: indexes follow the log, traces come a moment later."""
    async with asyncio.timeout(20):
        while True:
            try:
                found = await life(cluster, msg_id, **more)
                if ready(found):
                    return found
            except NothingKnown:
                pass
            await asyncio.sleep(0.05)


def story(found: MessageHistory) -> list[tuple[str, str]]:
    return [(event.what, event.group) for event in found.events]


def standing(found: MessageHistory, group: str) -> Standing:
    return next(each for each in found.groups if each.group == group)


async def send(cluster: Cluster, *, trace: bool = False, **more: Any) -> SendResult:
    async with cluster.producer("shop", trace=trace) as producer:
        return await producer.send(Message("T", b"x", **more))


async def consume(cluster: Cluster, group: str, verb: str, count: int = 1, **more: Any) -> None:
    async with cluster.consumer(group, options=FIRST, **more) as consumer:
        consumer.subscribe("T")
        for _ in range(count):
            await getattr(await anext(consumer), verb)()


def test_a_traced_message_tells_its_life_from_send_to_ack(run: Run) -> None:
    """
    Sent, stored, handed out, acknowledged; the group stands behind it, nothing is unknown.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        sent = await send(cluster, trace=True, tags="paid", keys=["order-1"])
        await consume(cluster, "billing", "ack", trace=True)
        found = await life_with(cluster, sent.msg_id, lambda found: len(found.events) >= 4)

        assert [("sent", ""), ("stored", ""), ("handed out", "billing"), ("acked", "billing")] == (
            story(found)
        )
        assert (sent.msg_id, "T", "stored") == (found.msg_id, found.topic, found.state)
        assert ("paid", ("order-1",)) == (found.tags, found.keys)
        assert "acked" == standing(found, "billing").state
        assert [] == found.unknown

    run(work, **TRACED)


def test_without_trace_the_store_still_tells_most_of_it(run: Run) -> None:
    """
    What is not known is said; progress alone shows who is done with the message.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        sent = await send(cluster)
        await consume(cluster, "billing", "ack")
        found = await life_with(cluster, sent.msg_id, lambda found: bool(found.events), topic="T")

        assert [("born", ""), ("stored", "")] == story(found)
        assert f"{sent.queue} at 0" == found.events[1].place
        assert "acked" == standing(found, "billing").state
        assert ["no trace"] == [text[:8] for text in found.unknown]

    run(work)


def test_the_brokers_own_id_leads_to_the_same_life(run: Run) -> None:
    """
    Either id will do, with or without a topic.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        sent = await send(cluster)
        await consume(cluster, "billing", "ack")
        by_key = await life_with(cluster, sent.msg_id, lambda found: bool(found.groups))
        by_place = await life(cluster, sent.offset_msg_id)

        assert by_key == by_place
        assert by_key == await life(cluster, sent.msg_id, topic="T")

    run(work)


def test_an_unknown_id_is_an_error_that_says_where_was_looked(run: Run) -> None:
    """
    No guesses: no source knows it.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        for msg_id in ("0A000001000018B4AAC2000000000001", "nonsense"):
            with pytest.raises(NothingKnown, match="in any topic"):
                await life(cluster, msg_id)
        with pytest.raises(NothingKnown, match="in topic T"):
            await life(cluster, "0A000001000018B4AAC2000000000001", topic="T")

    run(work)


def test_a_place_that_holds_no_message_is_said_to_be_empty(run: Run) -> None:
    """
    A broker's id of this cluster whose record is not there.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        sent = await send(cluster)
        with pytest.raises(NothingKnown, match="names a place of this cluster"):
            await life(cluster, sent.offset_msg_id[:-8] + "00FFFF00")

    run(work)


def test_a_group_that_has_not_come_so_far_says_how_far_it_is(run: Run) -> None:
    """
    One group is done, the other one has two messages to go before this one.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        sent = [await send(cluster) for _ in range(4)]
        await consume(cluster, "fast", "ack", 4)
        await consume(cluster, "slow", "ack", 1)
        found = await life_with(cluster, sent[3].msg_id, lambda found: len(found.groups) == 2)

        assert "acked" == standing(found, "fast").state
        assert ("waiting", True) == (
            standing(found, "slow").state, "2 before the message" in standing(found, "slow").text
        )  # fmt: skip

    run(work)


def test_a_message_in_retry_says_until_when_and_why(run: Run) -> None:
    """
    The copy waits in the schedule topic; its reason travels with it.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        sent = await send(cluster)
        async with cluster.consumer("billing", options=FIRST) as consumer:
            consumer.subscribe("T")
            await (await anext(consumer)).retry(reason="the bank is closed")
        found = await life_with(cluster, sent.msg_id, lambda found: len(found.events) >= 3)
        (again,) = [event for event in found.events if event.what == "retry"]
        where = standing(found, "billing")

        assert ("billing", again.at_ms + 10_000) == (again.group, again.due_ms)
        assert ("retry", again.due_ms) == (where.state, where.due_ms)
        assert "after 1 delivery: the bank is closed" in where.text

    run(work)


def test_retries_and_death_are_told_in_order_with_the_last_error() -> None:
    """
    Given back twice, delivered three times, then dead; half an hour of it in virtual time.
    """

    async def main() -> MessageHistory:
        async with Cluster(memory=True, **TRACED) as cluster:
            await cluster.create_topic("T", queues=1)
            async with cluster.admin() as admin:
                await admin.update_group(GroupConfig(group_name="billing", retry_max_times=2))
            sent = await send(cluster)
            tries, over = 0, asyncio.Event()
            async with cluster.consumer("billing", options=FIRST, trace=True) as consumer:

                @consumer.handler
                async def handle(message: Delivery) -> None:
                    nonlocal tries
                    tries += 1
                    if tries == 3:
                        over.set()
                    raise ValueError(f"try {tries}")

                consumer.subscribe("T")
                await over.wait()
            return await life(cluster, sent.msg_id)

    found = simulate(main)
    attempt = [("handed out", "billing"), ("failed", "billing")]
    again = [*attempt, ("retry", "billing"), ("redelivered", "billing")]

    assert [("born", ""), ("stored", ""), *again, *again, *attempt, ("dead", "billing")] == (
        story(found)
    )
    assert "dead" == standing(found, "billing").state
    assert "dead after 3 deliveries: ValueError: try 3" in standing(found, "billing").text
    assert "limit: 2" in standing(found, "billing").text


def test_a_message_acknowledged_in_a_later_delivery_says_in_which() -> None:
    """
    The progress of the retry queue counts, not only that of the topic.
    """

    async def main() -> tuple[MessageHistory, MessageHistory]:
        async with Cluster(memory=True) as cluster:
            await cluster.create_topic("T", queues=1)
            sent = await send(cluster)
            async with cluster.consumer("billing", options=FIRST) as consumer:
                consumer.subscribe("T")
                await (await anext(consumer)).retry()
                again = await anext(consumer)
                await consumer.commit()
                before = await life(cluster, sent.msg_id)
                await again.ack()
                await consumer.commit()
            return before, await life(cluster, sent.msg_id)

    before, after = simulate(main)

    assert "retry" == standing(before, "billing").state
    assert "ready for delivery 2" in standing(before, "billing").text
    assert ("acked", "acknowledged in delivery 2") == (
        standing(after, "billing").state, standing(after, "billing").text
    )  # fmt: skip


def test_a_delayed_message_says_when_it_is_due(run: Run) -> None:
    """
    It is found in its waiting room although its topic has never seen it.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        sent = await send(cluster, delay_level=5)
        found = await life_with(cluster, sent.msg_id, lambda found: bool(found.events))
        (waits,) = [event for event in found.events if event.what == "delayed"]

        assert ("delayed", "T", waits.at_ms + 60_000) == (found.state, found.topic, found.due_ms)

    run(work)


def test_a_delayed_message_that_arrived_tells_both_places() -> None:
    """
    First the waiting room, then the topic.
    """

    async def main() -> MessageHistory:
        async with Cluster(memory=True) as cluster:
            await cluster.create_topic("T")
            sent = await send(cluster, delay_level=5)
            await asyncio.sleep(61)
            return await life(cluster, sent.msg_id)

    found = simulate(main)

    assert [("born", ""), ("delayed", ""), ("stored", "")] == story(found)
    assert ("stored", None) == (found.state, found.due_ms)
    assert found.events[1].due_ms is not None
    assert 0 <= found.events[2].at_ms - found.events[1].due_ms < 1000


def test_a_message_with_a_time_of_its_own_says_when_it_is_due(run: Run) -> None:
    """
    Timers to the millisecond wait in a topic of their own.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        at_ms = cluster.clock.now_ms() + 3_600_000
        peer = await Peer.to(cluster)
        props = f"UNIQ_KEY\x01A1\x02TIMER_DELIVER_MS\x01{at_ms}\x02"
        answer = await peer.send("T", b"x", props=props)
        peer.close()
        found = await life_with(cluster, "A1", lambda found: bool(found.events))

        assert 0 == answer.code
        assert ("delayed", "T", at_ms) == (found.state, found.topic, found.due_ms)

    run(work)


async def half(cluster: Cluster, peer: Peer, key: str) -> dict[str, str]:
    """A half message; what END_TRANSACTION needs to name it."""
    ext = {"a": "bank", "b": "T", "c": "TBW102", "d": 4, "e": 0, "f": 4, "h": 0}
    props = f"UNIQ_KEY\x01{key}\x02TRAN_MSG\x01true\x02PGROUP\x01bank\x02"
    answer = await peer.call(310, b"x", i=props, g=cluster.clock.now_ms(), **ext)
    assert 0 == answer.code
    return {
        "producerGroup": "bank",
        "tranStateTableOffset": answer.ext["queueOffset"],
        "commitLogOffset": str(int(answer.ext["msgId"][-16:], 16)),
        "msgId": key,
    }


def test_a_half_message_waits_until_it_is_committed_or_rolled_back(run: Run) -> None:
    """
    Three transactions: one undecided, one committed, one rolled back.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        peer = await Peer.to(cluster)
        places = {key: await half(cluster, peer, key) for key in ("A1", "A2", "A3")}
        await peer.call(37, commitOrRollback=8, **places["A2"])
        await peer.call(37, commitOrRollback=12, **places["A3"])
        peer.close()
        waits = await life_with(cluster, "A1", lambda found: bool(found.events))
        done = await life_with(cluster, "A2", lambda found: len(found.events) >= 4)
        back = await life_with(cluster, "A3", lambda found: len(found.events) >= 3)

        assert ("half", "T") == (waits.state, waits.topic)
        assert "not asked yet" in waits.text
        assert ("stored", "rolled back") == (done.state, back.state)
        assert {"half", "decided", "stored"} <= {event.what for event in done.events}
        assert ["half", "decided"] == [e.what for e in back.events if e.what != "born"]

    run(work)


def test_a_half_message_that_was_asked_for_says_how_often() -> None:
    """
    Every question of the broker leaves a copy with a count.
    """

    async def main() -> tuple[MessageHistory, MessageHistory]:
        async with Cluster(memory=True, transaction_check_max=2) as cluster:
            await cluster.create_topic("T", queues=1)
            peer = await Peer.to(cluster)
            beat = b'{"clientID":"c","producerDataSet":[{"groupName":"bank"}]}'
            await peer.call(34, beat)
            await half(cluster, peer, "A1")
            await asyncio.sleep(20)
            asked = await life(cluster, "A1")
            for _ in range(60):
                await asyncio.sleep(5)
                await peer.call(34, beat)
            return asked, await life(cluster, "A1")

    asked, over = simulate(main)

    assert ("half", True) == (asked.state, "asked once so far" in asked.text)
    assert ["half", "checked"] == [event.what for event in asked.events if event.what != "born"]
    assert "undecided" == over.state


def test_a_message_that_no_subscription_wants_is_not_called_acknowledged(run: Run) -> None:
    """
    The group's progress passes it, but nobody ever saw it.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T", queues=1)
        sent = await send(cluster, tags="refund")
        async with cluster.consumer("billing", options=FIRST) as consumer:
            consumer.subscribe("T", tags="paid")
            await consumer.wait_assigned()
            await consumer.commit()
            found = await life_with(cluster, sent.msg_id, lambda found: bool(found.groups))

        assert "unwanted" == standing(found, "billing").state
        assert "'paid'" in standing(found, "billing").text

    run(work)


def test_other_sources_tell_what_they_know(run: Run) -> None:
    """
    An archive is one more source in the list: its events stand among the others.
    """

    class Archive:
        async def look(self, hunt: HistoryQuery) -> None:
            at_ms = hunt.facts.now_ms + 1
            hunt.facts.events.append(
                Event(at_ms=at_ms, what="archived", text=hunt.msg_id, source="archive")
            )

    async def work(cluster: Cluster) -> None:
        found = await life(cluster, "A" * 32, sources=(*SOURCES, Archive()))

        assert [("archived", "A" * 32, "archive")] == [
            (event.what, event.text, event.source) for event in found.events
        ]
        assert "gone" == found.state

    run(work)


def test_a_search_through_many_topics_says_how_it_goes_on() -> None:
    """
    Bounded and not silent: progress is told while topic after topic is asked.
    """
    said: list[str] = []

    async def main() -> MessageHistory:
        async with Cluster(memory=True, brokers=2) as cluster:
            for number in range(60):
                await cluster.create_topic(f"T{number}", queues=1)
            async with cluster.producer("shop") as producer:
                sent = await producer.send(Message("T59", b"x"))
            return await life(cluster, sent.msg_id, say=said.append)

    found = simulate(main)

    assert "T59" == found.topic
    assert any("topics on 2 brokers" in line for line in said)
    assert any(line.startswith("100 of ") for line in said)


@pytest.mark.parametrize("form", ["table", "json", "jsonl"])
def test_the_command_prints_the_life(form: str) -> None:
    """
    A timeline for people, objects for scripts; exit code 1 and one line for what is unknown.
    """

    async def main() -> tuple[str, Any, Any]:
        async with Cluster(**TRACED) as cluster:
            await cluster.create_topic("T")
            sent = await send(cluster, trace=True, tags="paid")
            await consume(cluster, "billing", "ack", trace=True)
            await life_with(cluster, sent.msg_id, lambda found: len(found.events) >= 4)
            runner = CliRunner()
            options = ["-n", cluster.namesrv, "-o", form]
            good = await asyncio.to_thread(runner.invoke, why_command, [sent.msg_id, *options])
            bad = await asyncio.to_thread(runner.invoke, why_command, ["B" * 32, *options])
            return sent.msg_id, good, bad

    msg_id, good, bad = asyncio.run(main())

    assert (0, 1) == (good.exit_code, bad.exit_code)
    assert f"error: no message {'B' * 32}" in bad.stderr
    wanted = {
        "table": f"{msg_id}  topic T  tag paid\nstored: in its topic",
        "json": f'[\n  {{\n    "msgId": "{msg_id}",\n    "topic": "T",',
        "jsonl": '{"kind": "event", "time": ',
    }
    assert good.stdout.startswith(wanted[form])
    assert "billing" in good.stdout


def test_a_message_that_was_called_back_says_so(run: Run) -> None:
    """
    The recall is the last thing that happens to it, whether or not it was traced.
    """

    async def work(cluster: Cluster) -> None:
        await cluster.create_topic("T")
        async with cluster.producer("shop") as producer:
            sent = await producer.send(Message("T", b"x", delay=3600))
            assert sent.recall_handle is not None
            await producer.recall("T", sent.recall_handle)
        found = await life_with(cluster, sent.msg_id, lambda found: len(found.events) >= 3)

        assert ("called back", "T") == (found.state, found.topic)
        assert ["born", "delayed", "recalled"] == [event.what for event in found.events]

    run(work)
