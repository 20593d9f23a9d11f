"""A group's progress is moved back by RocketMQ's tools and by ours, while it runs and while not."""

import asyncio
import contextlib
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
    long_story,
    nothing_more,
    on_real_servers,
    story,
    take_and_ack,
    texts,
    with_java,
)

pytestmark = pytest.mark.timeout(240)


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


async def go_back(scene: Scene, java: JavaClient, group: str, moment: int) -> str:
    return await scene.mqadmin(
        java, "resetOffsetByTime", "-g", group, "-t", scene.topic, "-s", str(moment)
    )


class TestByRocketMQsTools:
    @pytest.mark.parametrize(
        "where, kinds",
        [
            pytest.param(OURS, {"old": NEW_JAVA, "new": OLD_JAVA, "go": NEW_JAVA}, id=OURS),
            pytest.param("4.9.7", {"old": OLD_JAVA}, id="4.9.7"),
            # Java's members take most of a minute there.
            pytest.param("5.3.3", {}, id="5.3.3"),
        ],
    )
    @long_story
    async def test_running_groups_of_every_kind_go_back(
        self, scene: Scene, where: str, kinds: dict[str, JavaClient]
    ) -> None:
        """Java's members, Go's and ours, moved by the tools of either release, read once more."""
        moment = await send_around_now(scene)
        clients = {"old": OLD_JAVA, "new": NEW_JAVA, "go": GO}
        async with contextlib.AsyncExitStack() as stack:
            members = [
                await stack.enter_async_context(
                    scene.beside(
                        clients[kind], "consume-concurrently",
                        group=f"{scene.group}_{kind}", expected=15, persistMs=500, timeout=120,
                    )
                )
                for kind in kinds
            ]  # fmt: skip
            consumer = await stack.enter_async_context(scene.consumer())
            consumer.subscribe(scene.topic)
            await take_and_ack(consumer, 10)
            await consumer.commit()
            ours = OLD_JAVA if where == "4.9.7" else NEW_JAVA
            for suffix, tool in {"": ours, **{f"_{kind}": kinds[kind] for kind in kinds}}.items():
                await scene.all_read(f"{scene.group}{suffix}")
                await go_back(scene, tool, f"{scene.group}{suffix}", moment)
            again = texts(await take_and_ack(consumer, 5))
            lines = [(await member.finish()).bodies for member in members]

        assert sorted(again) == bodies(5, "after")
        for got in lines:
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
        """RocketMQ's broker takes our word for it, and the next member reads from there."""
        moment = await send_around_now(scene)
        await scene.java(OLD_JAVA, "consume-concurrently", expected=10)
        async with scene.admin() as admin:
            to = datetime.fromtimestamp(moment / 1000, UTC)
            rows = await admin.reset(scene.group, scene.topic, to)
            assert sum(row.again for row in rows) == 5
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            got = texts(await take_and_ack(consumer, 5))

        assert sorted(got) == bodies(5, "after")
