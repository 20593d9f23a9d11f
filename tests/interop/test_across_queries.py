"""RocketMQ's own command line finds our messages, on our servers and on its own."""

import pytest
from clients import JavaClient
from our_client import Scene, story, with_java

from gantrymq.model import dead_topic

pytestmark = pytest.mark.timeout(240)


@with_java
@story
async def test_every_way_of_asking_finds_our_message(scene: Scene, java: JavaClient) -> None:
    """By both ids, by key and by its place in the queue."""
    await scene.create_topic(queues=1)
    async with scene.producer() as producer:
        await producer.send(scene.message("other", keys=["green"]))
        sent = await producer.send(scene.message("sought", "t", keys=["red", "large"]))
    await scene.stored(2)
    by_key = await scene.mqadmin(java, "queryMsgByKey", "-t", scene.topic, "-k", "large")
    by_unique_key = await scene.mqadmin(
        java, "queryMsgByUniqueKey", "-t", scene.topic, "-i", sent.msg_id
    )
    by_place = await scene.mqadmin(
        java, "queryMsgByOffset", "-t", scene.topic, "-b", "broker-a", "-i", "0", "-o", "1"
    )
    id_of_broker = ["-i", sent.offset_msg_id]
    if java.version != "4.9.8":
        id_of_broker += ["-t", scene.topic]
    by_id = await scene.mqadmin(java, "queryMsgById", *id_of_broker)

    assert [line.split()[:3] for line in by_key.splitlines()[1:]] == [[sent.msg_id, "0", "1"]]
    for said in (by_unique_key, by_place, by_id):
        lines = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
        found = {name.strip(): value.strip() for name, value in lines.items()}
        assert (found["Topic"], found["Queue Offset"]) == (scene.topic, "1")
        assert found["Tags"] in ("t", "[t]")
        assert "red" in found["Keys"]


@with_java
@story
async def test_a_dead_letter_is_found_by_the_id_it_was_sent_with(
    scene: Scene, java: JavaClient
) -> None:
    """The tools ask for it in %DLQ%group."""
    await scene.create_topic(queues=1)
    async with scene.producer() as producer, scene.consumer() as consumer:
        consumer.subscribe(scene.topic)
        sent = await producer.send(scene.message("hopeless", keys="k"))
        await (await anext(consumer)).dead(reason="no use")
    dead = dead_topic(scene.group)
    await scene.stored(1, dead)
    said = await scene.mqadmin(java, "queryMsgByUniqueKey", "-t", dead, "-i", sent.msg_id)

    assert scene.topic in said
    assert sent.msg_id in said
