"""Spark reads RocketMQ's servers as it reads ours, and RocketMQ's tools see how far it is."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
from clients import JavaClient
from our_client import NEW_JAVA, Scene, with_java

from gantrymq import Message, SendResult

pytestmark = pytest.mark.timeout(300)

END_SECONDS_MAX, REPORT_SECONDS_MAX = 120, 15.0
QUEUES, COUNT = 2, 40


def messages(topic: str, count: int = COUNT) -> list[Message]:
    """With everything a message can have."""
    return [
        Message(
            topic, f"body-{number}", tags=f"t{number % 4}", keys=[f"k{number}", "all"],
            properties={"number": str(number), "größe": "ü"}, flag=number,
        )
        for number in range(count)
    ]  # fmt: skip


def send(scene: Scene, wanted: list[Message]) -> list[SendResult]:
    async def sent() -> list[SendResult]:
        async with scene.producer() as producer:
            return [await producer.send(message) for message in wanted]

    return asyncio.run(sent())


def load(spark: Any, scene: Scene, **options: str) -> list[Any]:
    table = spark.read.format("rocketmq")
    table = table.options(nameServer=scene.namesrv, topic=scene.topic, **options).load()
    return list(table.collect())


def numbers(rows: list[Any]) -> list[int]:
    return sorted(row.flag for row in rows)


def test_every_column_is_what_was_sent(spark: Any, scene: Scene) -> None:
    """Both ids, places, times, tags, keys and properties, whoever keeps them."""
    asyncio.run(scene.create_topic(queues=QUEUES))
    wanted = messages(scene.topic)
    began = time.time()
    results = send(scene, wanted)
    rows = {row.msgId: row for row in load(spark, scene)}

    assert len(wanted) == len(rows)
    for message, result in zip(wanted, results, strict=True):
        row = rows[result.msg_id]
        assert (message.body, message.flag) == (bytes(row.body), row.flag)
        assert (message.tags, " ".join(message.keys)) == (row.tags, row.keys)
        assert message.properties.items() <= row.properties.items()
        assert (result.queue.queue_id, result.offset) == (row.queueId, row.queueOffset)
        assert result.offset_msg_id == row.offsetMsgId
        assert (scene.topic, result.queue.broker_name) == (row.topic, row.brokerName)
        assert 0 == row.reconsumeTimes
        assert began - 1 <= row.bornTimestamp.timestamp() <= row.storeTimestamp.timestamp() + 1
        assert row.storeHost == scene.broker


def test_messages_are_chosen_by_tag_key_condition_and_time(spark: Any, scene: Scene) -> None:
    """Brokers choose by tag and condition; their answers about times are looked into."""
    asyncio.run(scene.create_topic(queues=QUEUES))
    send(scene, messages(scene.topic))
    time.sleep(0.05)
    middle = int(time.time() * 1000)
    time.sleep(0.05)
    send(scene, messages(scene.topic))
    once, both = list(range(COUNT)), sorted([*range(COUNT)] * 2)

    assert [n for n in both if n % 4 in (1, 2)] == numbers(load(spark, scene, tags="t1 || t2"))
    assert [n for n in both if n > 30] == numbers(load(spark, scene, sqlFilter="number > 30"))
    assert [7, 7] == numbers(load(spark, scene, keyFilter="k7"))
    assert once == numbers(load(spark, scene, startingTimestamp=str(middle)))
    assert once == numbers(load(spark, scene, endingTimestamp=str(middle)))


@with_java
def test_the_tools_show_how_far_spark_is_behind(
    spark: Any, scene: Scene, java: JavaClient, tmp_path: Path
) -> None:
    """`mqadmin consumerProgress` knows the group, what it read and what it did not."""
    asyncio.run(scene.create_topic(queues=QUEUES))
    send(scene, messages(scene.topic))
    table = spark.readStream.format("rocketmq").options(
        nameServer=scene.namesrv, topic=scene.topic, group=scene.group, startingOffsets="earliest"
    )
    query = table.load().writeStream.format("noop")
    query = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(END_SECONDS_MAX)
    send(scene, messages(scene.topic, 6))

    async def seen() -> tuple[int, int]:
        printed = await scene.mqadmin(java, "consumerProgress", "-g", scene.group)
        rows = [line.split() for line in printed.splitlines() if line.startswith(scene.topic)]
        return sum(int(row[4]) for row in rows), sum(_diff(row) for row in rows)

    end = time.monotonic() + REPORT_SECONDS_MAX
    while (found := asyncio.run(seen())) != (COUNT, 6) and time.monotonic() < end:
        time.sleep(0.2)
    assert (COUNT, 6) == found
    assert NEW_JAVA is not java or scene.group in asyncio.run(
        scene.mqadmin(java, "consumerProgress")
    )


def _diff(row: list[str]) -> int:
    """Topic, broker, queue, broker's offset, consumer's offset, a client's address or none, lag."""
    return int(next(word for word in row[5:] if re.fullmatch(r"-?\d+", word)))
