"""A group's progress is moved back by RocketMQ's tools and by ours, while it runs and while not."""

import asyncio
import contextlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from clients import JavaClient
from clusters import OURS
from expect import bodies
from our_client import (
    GO,
    NEW_JAVA,
    OLD_JAVA,
    Scene,
    eventually,
    long_story,
    nothing_more,
    on_real_servers,
    story,
    take_and_ack,
    texts,
    with_java,
)

pytestmark = pytest.mark.timeout(240)

LONG = {"timeout": 120}


async def send_around_now(scene: Scene) -> int:
    """Five messages, a pause, five more; returns when the later ones were stored.

    RocketMQ 4.9 takes the message next to a time on either side: the pause is before it only.
    """
    await scene.create_topic(queues=2)
    await scene.send(*bodies(5, "before"))
    await asyncio.sleep(0.5)
    await scene.send(*bodies(5, "after"))
    stored = await scene.stored(10)
    return min(message.store_ms for message in stored if message.body.startswith(b"after"))


async def all_read(scene: Scene, group: str) -> None:
    """Until the broker knows that a group has read all ten messages."""
    async with replace(scene, group=group).reader() as reader:
        for n in range(2):
            queue = scene.queue(n)
            end = await reader.max_offset(queue)
            await eventually(
                lambda queue=queue: reader.committed(queue),
                lambda offset, end=end: offset == end,
            )


async def go_back(scene: Scene, java: JavaClient, group: str, moment: int) -> str:
    return await scene.mqadmin(
        java, "resetOffsetByTime", "-g", group, "-t", scene.topic, "-s", str(moment)
    )


class TestByRocketMQsTools:
    @with_java
    @long_story
    async def test_running_groups_of_every_kind_go_back(
        self, scene: Scene, where: str, java: JavaClient
    ) -> None:
        """Java's members, Go's and ours, side by side, read the later messages once more."""
        moment = await send_around_now(scene)
        kinds = {"old": OLD_JAVA, "new": NEW_JAVA, "go": GO} if where == OURS else {"java": java}
        groups = {kind: f"{scene.group}_{kind}" for kind in kinds}
        async with contextlib.AsyncExitStack() as stack:
            members = {
                kind: await stack.enter_async_context(
                    scene.beside(
                        client, "consume-concurrently",
                        group=groups[kind], expected=15, persistMs=500, **LONG,
                    )
                )
                for kind, client in kinds.items()
            }  # fmt: skip
            consumer = await stack.enter_async_context(scene.consumer())
            consumer.subscribe(scene.topic)
            await take_and_ack(consumer, 10)
            await consumer.commit()
            for group in (*groups.values(), scene.group):
                await all_read(scene, group)
                await go_back(scene, java, group, moment)
            again = texts(await take_and_ack(consumer, 5))
            lines = {kind: (await member.finish()).bodies for kind, member in members.items()}

        assert sorted(again) == bodies(5, "after")
        for got in lines.values():
            assert sorted(got) == sorted([*bodies(5, "before"), *bodies(5, "after") * 2])

    @with_java
    @story
    async def test_a_group_that_is_not_running_goes_back(
        self, scene: Scene, java: JavaClient
    ) -> None:
        """Whoever joins next begins there."""
        moment = await send_around_now(scene)
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            await take_and_ack(consumer, 10)
        await go_back(scene, java, scene.group, moment)
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            got = texts(await take_and_ack(consumer, 5))
            assert await nothing_more(consumer)

        assert sorted(got) == bodies(5, "after")


class TestByOurs:
    @on_real_servers
    @story
    async def test_a_java_group_that_is_not_running_goes_back(self, scene: Scene) -> None:
        """RocketMQ's broker takes our word for it, and Java reads from there."""
        moment = await send_around_now(scene)
        await scene.java(OLD_JAVA, "consume-concurrently", expected=10)
        async with scene.admin() as admin:
            to = datetime.fromtimestamp(moment / 1000, UTC)
            rows = await admin.reset(scene.group, scene.topic, to)
            assert sum(row.again for row in rows) == 5
        got = await scene.java(OLD_JAVA, "consume-concurrently", expected=5, lingerMs=500)

        assert sorted(got.bodies) == bodies(5, "after")
