"""`gantry doctor` and `gantry monitor` against RocketMQ's brokers."""

import pytest
from expect import bodies
from our_client import Scene, on_real_servers, story, take_and_ack

from gantrymq.client import Monitor, MonitorRound, OffsetMovedEvent, Problem, examine, take_snapshot

pytestmark = pytest.mark.timeout(240)


@on_real_servers
@story
async def test_a_round_has_the_figures_of_a_group(scene: Scene, where: str) -> None:
    """
    What waits for it, in all and in the worst queue, as the brokers tell.
    """
    seen: list[MonitorRound] = []

    async def on_round(found: MonitorRound, problems: list[Problem]) -> None:
        seen.append(found)

    async def on_moved(event: OffsetMovedEvent) -> None:
        raise AssertionError(event.text)

    await scene.create_topic(queues=1)
    await scene.introduce_group()
    async with scene.consumer() as consumer:
        consumer.subscribe(scene.topic)
        await consumer.wait_assigned(1)
        await scene.send("read")
        await take_and_ack(consumer, 1)
    await scene.send(*bodies(3))
    async with scene.admin() as admin:
        await Monitor(admin, on_round=on_round, on_moved=on_moved).run(1, rounds=1)
    (found,) = seen
    (row,) = [row for row in found.rows() if row["group"] == scene.group]
    assert () == found.unknown
    assert (3, 3) == (row["waiting"], row["worstWaiting"])


@on_real_servers
@story
async def test_findings_are_those_of_our_own_brokers(scene: Scene, where: str) -> None:
    """
    Every server answers, no clock differs, and a topic with too few read queues is found.
    """
    async with scene.admin() as admin:
        await admin.create_topic(scene.topic, read_queues=1, write_queues=2)
        snapshot = await take_snapshot(admin)
    found = examine(snapshot)
    assert [] == [each for each in found if each.check in ("address", "master", "clock", "raft")]
    assert [] == [each for each in snapshot.left_out if "progress" in each]
    mine = [each for each in found if each.where == f"{scene.topic} on broker-a"]
    assert ["queue-counts"] == [each.check for each in mine]
