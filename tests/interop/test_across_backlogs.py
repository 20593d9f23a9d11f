"""Backlogs and group settings where clients or servers are RocketMQ's."""

import asyncio

import pytest
from clients import JavaClient
from expect import bodies
from our_client import (
    Scene,
    eventually,
    long_story,
    on_real_servers,
    story,
    with_java,
)

from gantrymq.client.admin.groups.group_settings import change_settings, settings
from gantrymq.client.admin.groups.lag import Backlog
from gantrymq.client.admin.topics.spread import Spread

pytestmark = pytest.mark.timeout(240)


class TestLag:
    @with_java
    @long_story
    async def test_a_queue_is_in_the_hands_of_a_java_member(
        self, scene: Scene, where: str, java: JavaClient
    ) -> None:
        """It tells which queues it holds, through its broker; when it is gone nobody does."""
        await scene.create_topic(queues=2)
        await scene.introduce_group()
        await scene.send(*bodies(4))
        async with (
            scene.admin() as admin,
            scene.beside(
                java, "consume-concurrently", expected=5, persistMs=500, timeout=120
            ) as it,
        ):
            backlog = Backlog(admin)

            async def holders() -> set[tuple[str, ...]]:
                found = await backlog.of(scene.group, topic=scene.topic)
                return {row.holders for topic in found.topics for row in topic.queues}

            (held,) = await eventually(holders, lambda found: len(found) == 1 and () not in found)
            (member,) = (await admin.consumers(scene.group)).connection_set
            await scene.all_read()
            await scene.send("the last one")
            await it.finish()
            assert held == (member.client_id,)

    @on_real_servers
    @story
    async def test_a_backlog_on_their_servers(self, scene: Scene, where: str) -> None:
        """Numbers, age and holder are found there as well."""
        await scene.create_topic(queues=1)
        async with scene.admin() as admin, scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            await scene.send(*bodies(5))
            messages = [await anext(consumer) for _ in range(5)]
            found = await Backlog(admin).of(scene.group, topic=scene.topic)
            (row,) = found.topics[0].queues
            assert (row.lag, row.holders) == (5, (consumer.instance.client_id,))
            assert row.oldest_ms == messages[0].store_ms


class TestSpread:
    @on_real_servers
    @story
    async def test_a_backlog_is_spread_on_their_servers(self, scene: Scene, where: str) -> None:
        """Cut off and taken up again: everything once, each key in its order."""
        await scene.create_topic(queues=2)
        keys = [f"key-{number}" for number in range(5)]
        async with scene.consumer() as consumer:
            consumer.subscribe(scene.topic)
            await consumer.wait_assigned(2)
            await consumer.commit()
        messages = [
            scene.message(f"{keys[number % 5]} {number}", sharding_key=keys[number % 5])
            for number in range(60)
        ]
        await scene.send(*messages)
        wide = f"{scene.topic}_wide"
        async with scene.admin() as admin:
            copying = Spread(admin, scene.topic, group=scene.group, to=wide, queues=6, rate=20)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.5):
                    await copying.run()
            copying = Spread(admin, scene.topic, group=scene.group, to=wide, queues=6)
            rows = await copying.run()
            assert 0 < sum(row.moved for row in rows) < 60
            found = await Backlog(admin).of(scene.group, topic=scene.topic)
            assert found.lag == 0
        numbers: dict[str, list[int]] = {}
        for message in await scene.stored(60, wide):
            key, number = message.body.decode().split()
            numbers.setdefault(key, []).append(int(number))
        assert numbers == {key: list(range(at, 60, 5)) for at, key in enumerate(keys)}


class TestSettings:
    @with_java
    @story
    async def test_either_tool_sees_what_the_other_has_set(
        self, scene: Scene, where: str, java: JavaClient
    ) -> None:
        """RocketMQ's writes the whole row; ours leaves the rest alone."""
        tool = ("updateSubGroup", "-c", "DefaultCluster", "-g", scene.group)
        await scene.mqadmin(java, *tool, "-r", "3", "-q", "2")
        async with scene.admin() as admin:
            await change_settings(admin, scene.group, {"notify_consumer_ids_changed_enable": False})
            (found,) = (await settings(admin))[scene.group].values()
            assert (found.retry_max_times, found.retry_queue_nums) == (3, 2)
            assert (found.consume_from_min_enable, found.consume_broadcast_enable) == (False, False)
            assert not found.notify_consumer_ids_changed_enable
