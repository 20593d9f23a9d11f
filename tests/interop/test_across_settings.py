"""RocketMQ's own command line changes settings of running servers, ours and its own."""

import pytest
from clients import JavaClient
from our_client import Scene, story, with_java

from gantrymq.client.core.errors import ClientError

pytestmark = pytest.mark.timeout(240)


async def change(scene: Scene, java: JavaClient, key: str, value: str) -> str:
    words = ("updateBrokerConfig", "-b", scene.broker, "-k", key, "-v", value)
    return await scene.mqadmin(java, *words)


@with_java
@story
async def test_a_setting_is_in_force_when_it_is_answered(scene: Scene, java: JavaClient) -> None:
    """A body that was small enough is too large, and then small enough again."""
    await scene.create_topic(queues=1)
    async with scene.producer() as producer:
        await producer.send(scene.message("x" * 2000))
        said = await change(scene, java, "maxMessageSize", "1000")
        try:
            printed = await scene.mqadmin(java, "getBrokerConfig", "-b", scene.broker)
            with pytest.raises(ClientError):
                await producer.send(scene.message("x" * 2000))
        finally:
            await change(scene, java, "maxMessageSize", str(4 * 1024 * 1024))
        await producer.send(scene.message("x" * 2000))

    assert "update broker config success" in said
    (line,) = [line for line in printed.splitlines() if line.startswith("maxMessageSize")]
    assert line.split("=")[1].strip() == "1000"


@with_java
@story
async def test_a_setting_that_nobody_knows_is_no_error(scene: Scene, java: JavaClient) -> None:
    """And is not among the settings afterwards."""
    said = await change(scene, java, "maxMesageSize", "1000")
    printed = await scene.mqadmin(java, "getBrokerConfig", "-b", scene.broker)

    assert "update broker config success" in said
    assert "maxMesageSize" not in printed


@with_java
@story
async def test_a_name_servers_setting_changes(scene: Scene, java: JavaClient) -> None:
    """What is asked for afterwards is the new value."""
    name_server = ("-n", scene.namesrv)
    for value in ("true", "false"):
        words = ("updateNamesrvConfig", "-k", "orderMessageEnable", "-v", value)
        await scene.mqadmin(java, *words, *name_server)
        printed = await scene.mqadmin(java, "getNamesrvConfig", *name_server)
        (line,) = [line for line in printed.splitlines() if line.startswith("orderMessageEnable")]
        assert line.split("=")[1].strip() == value
