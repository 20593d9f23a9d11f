"""What Apache's Go client administers, our admin sees, and the other way round."""

import pytest
from clients import Line
from our_client import GO, Scene, eventually, on_servers_of_5, story

from gantrymq.model import GroupConfig

pytestmark = pytest.mark.timeout(240)


class TestTopics:
    @on_servers_of_5
    @story
    async def test_a_topic_has_the_queues_that_go_asked_for(self, scene: Scene) -> None:
        """Queues for reading and for writing, permission and order are as given."""
        wanted = {"readQueueNums": 6, "writeQueueNums": 3, "perm": 6, "order": True}
        await scene.java(GO, "create-topic", broker=scene.broker, **wanted)

        async with scene.admin() as admin:
            await eventually(admin.topics, lambda topics: scene.topic in topics)
            config = (await admin.topic_configs(scene.broker))[scene.topic]
        assert (config.read_queue_nums, config.write_queue_nums) == (6, 3)
        assert (config.perm, config.order) == (6, True)

    @on_servers_of_5
    @story
    async def test_go_lists_our_topic_and_the_queues_to_write_to(self, scene: Scene) -> None:
        """A topic that our admin made is in Go's list, with one line for each writable queue."""
        async with scene.admin() as admin:
            await admin.create_topic(scene.topic, read_queues=5, write_queues=3)

        assert scene.topic in (await scene.java(GO, "list-topics")).value
        queues: list[Line] = (await scene.java(GO, "publish-queues")).value
        assert sorted(queue["queueId"] for queue in queues) == [0, 1, 2]
        assert {(queue["topic"], queue["broker"]) for queue in queues} == {
            (scene.topic, "broker-a")
        }

    @pytest.mark.parametrize("named", [True, False], ids=["broker-named", "broker-found"])
    @on_servers_of_5
    @story
    async def test_a_topic_that_go_deletes_is_gone(self, scene: Scene, named: bool) -> None:
        """The name server lists it no more, and the broker does not know it."""
        await scene.create_topic()
        await scene.java(GO, "delete-topic", broker=scene.broker if named else "")

        async with scene.admin() as admin:
            assert scene.topic not in await admin.topics()
            assert scene.topic not in await admin.topic_configs(scene.broker)
        assert scene.topic not in (await scene.java(GO, "list-topics")).value


class TestGroups:
    @on_servers_of_5
    @story
    async def test_go_reads_the_settings_of_our_group(self, scene: Scene) -> None:
        """Every setting that Go knows has the value that our admin gave it."""
        async with scene.admin() as admin:
            await admin.put_group(
                scene.broker,
                GroupConfig(
                    group_name=scene.group,
                    consume_broadcast_enable=False,
                    retry_queue_nums=2,
                    retry_max_times=5,
                ),
            )

        found = (await scene.java(GO, "list-groups", broker=scene.broker)).value
        assert found["groups"][scene.group] == {
            "GroupName": scene.group,
            "ConsumeEnable": True,
            "ConsumeFromMinEnable": True,
            "ConsumeBroadcastEnable": False,
            "RetryMaxTimes": 5,
            "RetryQueueNums": 2,
            "BrokerId": 0,
            "WhichBrokerWhenConsumeSlowly": 1,
            "NotifyConsumerIdsChangedEnable": True,
        }
        assert found["version"]["Counter"] > 0
