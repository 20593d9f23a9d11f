"""Traces that one kind of client writes and another kind of tool reads."""

import re

import pytest
from clients import Client, JavaClient
from our_client import (
    SECOND_LATER,
    Scene,
    eventually,
    story,
    take_and_ack,
    with_java,
    with_partners,
)

from gantrymq.client.admin.messages.trace_query import Trace, trace_of
from gantrymq.protocol.trace import Pub, SubAfter, SubBefore

pytestmark = pytest.mark.timeout(240)


async def traced(scene: Scene, msg_id: str, events: int) -> Trace:
    """The trace of a message, once it has so many events."""
    async with scene.admin() as admin:
        return await eventually(
            lambda: trace_of(admin, msg_id), lambda trace: len(trace.events) >= events
        )


def rows(printed: str) -> dict[str, list[str]]:
    """What `queryMsgTraceById` says: the group and the status of each line."""
    found: dict[str, list[str]] = {}
    for line in printed.splitlines():
        row = re.match(r"(Pub|Sub)\s+(\S+)\s+\S+\s+\S+ \S+\s+\d+ms\s+(\S+)", line)
        if row:
            found.setdefault(f"{row[1]} {row[2]}", []).append(row[3])
    return found


class TestForeignTraces:
    @with_partners
    @story
    async def test_ours_reads_what_a_foreign_client_wrote(
        self, scene: Scene, partner: Client
    ) -> None:
        """Who sent it where, and how each consumption of it ended."""
        await scene.create_topic(queues=1)
        await scene.introduce_group()
        sent = (
            await scene.java(partner, "send-sync", trace=True, tags=["t"], keys="k", lingerMs=2000)
        ).sent[0]
        await scene.java(
            partner, "consume-concurrently",
            trace=True, failures=1, retryLevel=SECOND_LATER, lingerMs=2000,
        )  # fmt: skip
        trace = await traced(scene, sent["msgId"], 5)

        records = [event.record for event in trace.events]
        (pub,) = (record for record in records if isinstance(record, Pub))
        assert (pub.topic, pub.tags, pub.keys) == (scene.topic, "t", "k0")
        assert (pub.group, pub.ok, pub.offset_msg_id) == (
            scene.producer_group,
            True,
            sent["offsetMsgId"],
        )
        begun = [record for record in records if isinstance(record, SubBefore)]
        ended = [record for record in records if isinstance(record, SubAfter)]
        assert [(record.group, record.retry_times) for record in begun] == [
            (scene.group, 0),
            (scene.group, 1),
        ]
        assert sorted(record.ok for record in ended) == [False, True]
        assert {record.request_id for record in begun} == {record.request_id for record in ended}
        assert trace.complete


class TestOurTraces:
    @with_java
    @story
    async def test_rocketmqs_tool_reads_what_ours_wrote(
        self, scene: Scene, java: JavaClient
    ) -> None:
        """The send, a consumption that failed and the one that did not."""
        await scene.create_topic(queues=1)
        async with scene.producer(trace=True) as producer, scene.consumer(trace=True) as consumer:
            consumer.subscribe(scene.topic)
            sent = await producer.send(scene.message("traced", "t", keys="k"))
            await (await anext(consumer)).retry(SECOND_LATER)
            await take_and_ack(consumer, 1)
        await traced(scene, sent.msg_id, 5)
        printed = await scene.mqadmin(java, "queryMsgTraceById", "-i", sent.msg_id)

        found = rows(printed)
        assert found[f"Pub {scene.producer_group}"] == ["success"]
        assert sorted(found[f"Sub {scene.group}"]) == ["failed", "success"]

    @with_java
    @story
    async def test_one_message_traced_by_two_kinds_of_clients(
        self, scene: Scene, java: JavaClient
    ) -> None:
        """Sent by ours and consumed by Java: one trace, told by RocketMQ's tool and by ours."""
        await scene.create_topic(queues=1)
        async with scene.producer(trace=True) as producer:
            sent = await producer.send(scene.message("traced"))
        await scene.java(java, "consume-concurrently", trace=True, lingerMs=2000)
        trace = await traced(scene, sent.msg_id, 3)
        printed = await scene.mqadmin(java, "queryMsgTraceById", "-i", sent.msg_id)

        kinds = [type(event.record) for event in trace.events]
        assert kinds == [Pub, SubBefore, SubAfter]
        assert rows(printed) == {
            f"Pub {scene.producer_group}": ["success"],
            f"Sub {scene.group}": ["success"],
        }
