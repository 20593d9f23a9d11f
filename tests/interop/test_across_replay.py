"""Messages replayed into a topic of RocketMQ's broker: chosen, marked, in order, and gone on with.

There a replay is sent at least once: a chunk whose end nobody wrote down is sent again.
"""

import asyncio
import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from clusters import OURS, Clusters
from our_client import Scene, by_key

from gantrymq import Message, Received
from gantrymq.base.errors import GantryError
from gantrymq.cli.pipeline.group import pipeline
from gantrymq.pipelines.replay import Replay, ReplayRequest
from gantrymq.pipelines.replay.chunk_publisher import SinkPublisher
from gantrymq.pipelines.replay.journal import Journal, ReplayPlan
from gantrymq.pipelines.replay.request import Origin

pytestmark = [pytest.mark.timeout(240), pytest.mark.parametrize("where", ["5.3.3"])]

COUNT, KEYS, CHUNK = 300, 7, 80
QUEUES, TARGET_QUEUES = 4, 3
INTERRUPTED, ARRIVAL_SECONDS_MAX = 130, 20.0


def target_of(scene: Scene) -> Scene:
    """The topic beside it that messages are replayed into."""
    target = Scene(scene.namesrv, scene.broker, f"{scene.topic}_again", scene.group)
    asyncio.run(target.create_topic(queues=TARGET_QUEUES))
    return target


def fill(scene: Scene) -> None:
    """Numbered messages; those of one key lie in one queue."""
    asyncio.run(scene.create_topic(queues=QUEUES))

    async def send() -> None:
        async with scene.producer() as producer:
            for number in range(COUNT):
                message = Message(
                    scene.topic, str(number), tags="ab"[number % 2], keys=[f"k{number % KEYS}"],
                    sharding_key=f"k{number % KEYS}", properties={"number": str(number)},
                )  # fmt: skip
                await producer.send(message)

    asyncio.run(send())


def arrived(target: Scene, count: int) -> list[Received]:
    return asyncio.run(asyncio.wait_for(target.stored(count), ARRIVAL_SECONDS_MAX))


def in_order(numbers: Sequence[int]) -> dict[str, list[str]]:
    """The bodies of each key, as they were sent."""
    found: dict[str, list[str]] = defaultdict(list)
    for number in numbers:
        found[f"k{number % KEYS}"].append(str(number))
    return dict(found)


def check_marks(rows: Sequence[Received], replay: str, topic: str) -> None:
    """Which replay, which original, and all that the original had."""
    origins = set()
    for row in rows:
        number = int(row.body)
        assert ("ab"[number % 2], [f"k{number % KEYS}"]) == (row.tags, list(row.keys))
        assert (replay, str(number)) == (row.properties["REPLAY_ID"], row.properties["number"])
        msg_id, place = row.properties["REPLAY_ORIGIN"].split("@")
        assert f"{topic}/broker-a" == place.rsplit("/", 2)[0]
        assert row.msg_id != msg_id
        born, stored = (int(row.properties[f"REPLAY_{word}"]) for word in ("BORN", "STORED"))
        assert born - 1000 <= stored <= row.store_ms
        origins.add(place)
    assert len({row.body for row in rows}) == len(origins)


def test_a_replay_that_is_stopped_goes_on_with_the_same_command(
    spark: Any, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends it behind a whole chunk; what is sent then is the rest, each message once."""
    fill(scene)
    target = target_of(scene)
    publish, stops = SinkPublisher.publish, [1]

    def interrupted(sink: SinkPublisher, frame: Any, plan: ReplayPlan, number: int) -> None:
        publish(sink, frame, plan, number)
        if number in stops:
            stops.remove(number)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SinkPublisher, "publish", interrupted)
    words = ["replay", "--from", f"topic:{scene.topic}", "--into", target.topic, "--all"]
    how = ["--chunk", str(CHUNK), "-n", scene.namesrv, "--state", str(tmp_path), "-o", "json"]

    def gantry(*more: str) -> Any:
        return CliRunner().invoke(pipeline, [*words, *how, *more, "--quiet"])

    counted = json.loads(gantry("--dry-run").stdout)
    broken_off = gantry()
    [part] = json.loads(broken_off.stdout)
    so_far = arrived(target, part["sent"])
    done = gantry()
    [rest] = json.loads(done.stdout)
    rows = arrived(target, COUNT)

    assert COUNT == sum(row["messages"] for row in counted)
    assert (INTERRUPTED, "stopped") == (broken_off.exit_code, part["result"])
    assert "the same command goes on" in broken_off.stderr
    assert (0, "done", part["replay"]) == (done.exit_code, rest["result"], rest["replay"])
    assert 0 < len(so_far) == part["sent"] < COUNT == part["sent"] + rest["sent"]
    assert in_order(range(COUNT)) == by_key(rows)
    assert COUNT == len({row.msg_id for row in rows})
    check_marks(rows, rest["replay"], scene.topic)


def test_a_chunk_that_was_not_written_down_is_sent_again_with_its_ids(
    spark: Any, scene: Scene, tmp_path: Path
) -> None:
    """A crash behind a chunk doubles that one and no other; its order is kept both times."""
    fill(scene)
    target = target_of(scene)

    class Crashing(SinkPublisher):
        def publish(self, frame: Any, plan: ReplayPlan, number: int) -> None:
            super().publish(frame, plan, number)
            if number == 1:
                raise GantryError("the power is gone")

    request = ReplayRequest(
        origin=Origin("topic", scene.topic), topic=scene.topic, into=target.topic,
        sql="number BETWEEN 20 AND 279",
    )  # fmt: skip
    journal = Journal(tmp_path)

    def replay(publisher: SinkPublisher) -> Replay:
        return Replay(spark, scene.namesrv, journal, publisher=publisher, chunk_rows=CHUNK)

    with pytest.raises(GantryError, match="the power is gone"):
        replay(Crashing()).run(request)
    report = replay(SinkPublisher()).run(request)
    plan = journal.load(report.id)
    rows = arrived(target, plan.messages + plan.chunks[1].rows)

    assert ("done", True, 260) == (report.result, report.resumed, plan.messages)
    assert plan.messages + plan.chunks[1].rows == len(rows)
    bodies = {row.msg_id: row.body for row in rows}
    assert plan.messages == len(bodies) == len(set(bodies.values()))
    assert all(bodies[row.msg_id] == row.body for row in rows)
    first: dict[str, list[str]] = defaultdict(list)
    for key, found in by_key(rows).items():
        first[key] = list(dict.fromkeys(found))
    assert in_order(range(20, 280)) == first
    check_marks(rows, report.id, scene.topic)


def test_messages_of_our_store_come_to_their_broker(
    spark: Any, scene: Scene, clusters: Clusters, tmp_path: Path
) -> None:
    """From the files of one cluster into a topic of another, whoever made it."""
    ours = clusters.of(OURS)
    origin = Scene(ours.namesrv, ours.broker_addr, scene.topic, scene.group)
    fill(origin)
    target = target_of(scene)
    request = ReplayRequest(
        origin=Origin("store", str(ours.store_dir / "broker-a" / "store")), topic=origin.topic,
        into=target.topic, tags="b", order="queue",
    )  # fmt: skip
    work, end = Replay(spark, scene.namesrv, Journal(tmp_path), chunk_rows=CHUNK), time.monotonic()
    end += ARRIVAL_SECONDS_MAX  # files of a running broker are a second old
    while work.preview(request).messages < COUNT // 2 and time.monotonic() < end:
        time.sleep(0.2)
    report = work.run(request)
    assert ("done", COUNT // 2) == (report.result, report.messages)
    rows = arrived(target, COUNT // 2)

    assert in_order(range(1, COUNT, 2)) == by_key(rows)
    check_marks(rows, report.id, origin.topic)
