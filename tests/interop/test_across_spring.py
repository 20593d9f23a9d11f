"""Applications of Spring Boot with RocketMQ's starter beside our own clients."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from clients import Lines, SpringApplication
from expect import by_shard
from our_client import LOOK_AGAIN_SECONDS, Scene, at_home, long_story

from gantrymq import Delivery, Received

pytestmark = pytest.mark.timeout(240)

SPRING = SpringApplication()
GROUPS = ("all", "orders", "ordered", "answers")
SHARDS = range(3)
SENT_BY_SPRING = {
    "plain": ["async", "batch-0", "batch-1", "sync"],
    "order": ['{"id":"o-1","pieces":3}'],
    "later": ["level", "timer"],
    "ordered": sorted(f"m-{n % 3}-{n}" for n in range(12)),
    "paid": ["commit", "unknown"],
    "question": ["why"],
}


@at_home
@long_story
async def test_ours_reads_what_spring_sends(scene: Scene) -> None:
    """Every way of sending that `RocketMQTemplate` has arrives, and a question is answered.

    Objects come as JSON with tag, key and headers, each shard in order, what is delayed after its
    time, and of three transactions those that were committed, one of them after a check.
    """
    await scene.create_topic()
    got: list[Delivery] = []
    async with scene.producer() as producer, scene.consumer() as consumer:
        consumer.subscribe(scene.topic)

        @consumer.handler
        async def note(message: Delivery) -> None:
            got.append(message)
            if message.tags == "question":
                await producer.reply(message, f"re: {message.body.decode()}")

        spring = await scene.java(SPRING, "send", producer=f"{scene.group}_spring")
        while len(got) < sum(map(len, SENT_BY_SPRING.values())):
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        await scene.all_read()

    assert {tag: sorted(bodies(got, tag)) for tag in SENT_BY_SPRING} == SENT_BY_SPRING
    assert {message.tags for message in got} == SENT_BY_SPRING.keys()
    assert {line["status"] for line in spring.sent} == {"SEND_OK"}
    assert {line["body"] for line in spring.of("checked")} == {"unknown"}
    assert [line["body"] for line in spring.of("reply")] == ["re: why"]

    (order,) = (message for message in got if message.tags == "order")
    assert order.keys == ("o-1",)
    assert order.properties["shop"] == "7"
    waited = {m.body.decode(): m.store_time - m.born_time for m in got if m.tags == "later"}
    assert waited["level"] >= timedelta(seconds=0.9)
    assert waited["timer"] >= timedelta(seconds=1.9)
    ordered = sorted((m for m in got if m.tags == "ordered"), key=lambda m: (m.queue, m.offset))
    lines = [{"body": message.body.decode()} for message in ordered]
    assert by_shard(lines) == {str(shard): list(range(shard, 12, 3)) for shard in SHARDS}


@at_home
@long_story
async def test_spring_hears_what_ours_sends(scene: Scene) -> None:
    """Each kind of listener gets what it asked for; who fails gets the message again.

    One hears everything, one gets two tags as objects, one keeps the order of each queue, one
    answers.
    """
    await scene.create_topic()
    for name in GROUPS:
        await replace(scene, group=f"{scene.group}_{name}").introduce_group()
    async with (
        scene.beside(SPRING, "listen", expected=19) as application,
        scene.producer() as producer,
    ):
        await application.until("ready")
        for n in range(6):
            message = scene.message(f"m-{n % 3}-{n}", "ordered")
            await producer.send(message, queue=scene.queue(n % 3))
        order = {"id": "o-1", "pieces": 3}
        for tag in ("order", "paid"):
            await producer.send(scene.message(json.dumps(order), tag, keys=["o-1"]))
        await producer.send(scene.message("again", "fails", properties={"shop": "7"}))
        reply = await producer.request(scene.message("why", "question"), timeout=30)
        heard = await application.finish()

    assert reply.body == b"re: why"
    assert len(listener_lines(heard, "all")) == 10
    assert listener_lines(heard, "answers")[0]["body"] == "why"
    assert [(line["id"], line["pieces"]) for line in listener_lines(heard, "orders")] == [
        ("o-1", 3)
    ] * 2
    assert by_shard(listener_lines(heard, "ordered")) == {str(n): [n, n + 3] for n in SHARDS}
    (paid,) = (line for line in listener_lines(heard, "all") if line["tags"] == "paid")
    assert paid["keys"] == "o-1"
    (again,) = (line for line in listener_lines(heard, "all") if line["tags"] == "fails")
    assert (again["body"], again["reconsumeTimes"]) == ("again", 1)
    assert again["properties"]["shop"] == "7"
    assert [line["body"] for line in heard.of("failed")] == ["again"]


def bodies(messages: Iterable[Received], tag: str) -> set[str]:
    """Those of a tag; a broker may deliver once more what it asked about twice."""
    return {message.body.decode() for message in messages if message.tags == tag}


def listener_lines(lines: Lines, listener: str) -> Lines:
    """What one of the application's listeners got."""
    return Lines(line for line in lines.messages if line["listener"] == listener)
