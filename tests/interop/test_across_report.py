"""A report about RocketMQ's broker: traffic, lag, dead letters and the ledger, as about ours."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from our_client import Scene, eventually

from gantrymq import Delivery, Message
from gantrymq.cli.pipeline.group import pipeline
from gantrymq.model import dead_topic

pytestmark = [pytest.mark.timeout(240), pytest.mark.parametrize("where", ["5.3.3"])]

COUNT, UNREAD = 40, 6
DEATH_SECONDS_MAX = 30.0


def trade(scene: Scene) -> list[str]:
    """A traced producer and a traced group; every fourth order dies; some are not read at all."""

    async def consume() -> None:
        done = asyncio.Event()
        tried = 0
        async with scene.consumer(trace=True, max_retries=0) as consumer:

            @consumer.handler
            async def handle(message: Delivery) -> None:
                nonlocal tried
                tried += 1
                if tried == COUNT:
                    done.set()
                if message.body.endswith(b"="):
                    raise ValueError("an order without a price")

            consumer.subscribe(scene.topic)
            await done.wait()

    async def send(numbers: range) -> list[str]:
        async with scene.producer(trace=True) as producer:
            bodies = [f"price={'' if number % 4 == 3 else number}" for number in numbers]
            orders = [Message(scene.topic, body, keys=[f"order-{body}"]) for body in bodies]
            return [(await producer.send(order)).msg_id for order in orders]

    async def story() -> list[str]:
        await scene.create_topic(queues=2)
        sent = await send(range(COUNT))
        await consume()
        await scene.all_read()
        async with scene.admin() as admin:
            dead = dead_topic(scene.group)
            await eventually(admin.topics, lambda topics: dead in topics)
        return sent + await send(range(UNREAD))

    return asyncio.run(asyncio.wait_for(story(), DEATH_SECONDS_MAX))


def test_a_report_about_their_broker_tells_what_it_tells_about_ours(
    spark: Any, scene: Scene, tmp_path: Path
) -> None:
    """Every message is accounted for: acknowledged, dead, or waiting. Only causes are missing."""
    sent = trade(scene)
    into, dead = tmp_path / "report", COUNT // 4
    ended = CliRunner().invoke(
        pipeline,
        ["report", "--into", str(into), "-n", scene.namesrv, "--topic", scene.topic, "--quiet",
         "--zone", "UTC", "-o", "json"],
    )  # fmt: skip
    assert (0, None) == (ended.exit_code, ended.exception), ended.output
    told = json.loads(ended.stdout)
    tables = {path.stem: json.loads(path.read_text()) for path in (into / "tables").glob("*.json")}

    assert told["verdict"]["balanced"], told["verdict"]
    (topic,) = told["topics"]
    assert {"sent": len(sent), "stored": len(sent), "lost": 0}.items() <= topic.items()
    (group,) = told["groups"]
    assert {
        "group": scene.group, "basis": "trace", "acknowledged": COUNT - dead, "dead": dead,
        "waiting": UNREAD,
    }.items() <= group.items()  # fmt: skip
    assert len(sent) == told["figures"]["stored"]
    # Their broker makes the letter of the stored message, without what the consumer notes.
    silent = f"no cause is noted for {dead} dead letters"
    assert [silent] == [note.split(":")[0] for note in told["notes"]]
    assert UNREAD == sum(row["lag"] for row in tables["lag"] if row["topic"] == scene.topic)
    (cause,) = tables["causes"]
    assert (scene.group, dead, scene.topic) == (cause["group"], cause["letters"], cause["topics"])
    assert len(sent) == sum(
        row["messages"] for row in tables["traffic"] if row["direction"] == "in"
    )
    assert (into / "report.html").stat().st_size > 0
