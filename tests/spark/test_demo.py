"""The demonstration's checks must be able to fail: each is shown what it looks for."""

from pathlib import Path
from typing import Any

import pytest
from demo.proof import Archive, prove
from demo.readers import AsTheyCome, InOrder
from demo.shop import STEPS, events_of, split_id
from sparkkit import BROKER, Processes

from gantrymq import Message, Queue

pytestmark = pytest.mark.timeout(240)


class Delivered:
    """As much of a delivery as the readers look at."""

    def __init__(self, event_id: str) -> None:
        self.keys = (event_id,)


def test_a_customers_events_are_numbered_in_the_order_of_the_steps() -> None:
    """Every order is created, paid and shipped before the next one."""
    events = list(events_of("c1", 2))

    assert [event.step for event in events] == [*STEPS, *STEPS]
    assert [split_id(event.id) for event in events] == [("c1", number) for number in range(1, 7)]


def test_readers_notice_what_is_early_and_what_comes_again() -> None:
    """Number 3 before number 2 is a skip, a number seen before is a repeat."""
    ordered, plain = InOrder(), AsTheyCome()
    for event_id in ("a/1", "b/1", "a/3", "a/2", "b/1"):
        ordered.take(Delivered(event_id))  # type: ignore[arg-type]
        plain.take(Delivered(event_id))  # type: ignore[arg-type]

    assert (ordered.seen, ordered.skips, ordered.repeats) == (3, 1, 2)
    assert (plain.seen, plain.repeats) == (4, 1)


def test_the_archive_shows_what_went_wrong(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Lost, doubled, strange and misplaced events are all counted."""
    cluster.create_topic(topic, queues=2)
    for queue_id, stored in enumerate((["a/1", "a/2", "a/2", "b/2", "b/1"], ["c/1", "a/3"])):
        cluster.send(
            [Message(topic, b"x", keys=[event_id]) for event_id in stored],
            Queue(topic, BROKER, queue_id),
        )
    acknowledged = ["a/1", "a/2", "a/3", "b/1", "b/2", "d/1"]

    found = prove(spark, cluster.namesrv, topic, acknowledged, tmp_path)

    assert found == Archive(rows=7, lost=1, strangers=1, repeats=1, misplaced=2, second_run=0)
