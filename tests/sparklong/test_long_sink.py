"""Drivers of the sink killed with -9, and tasks that fail: what was sent is there exactly once."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from children import end_child, run_child, start_child
from sparkkit import Processes, numbered

from gantrymq.model import Queue
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.plan import ranges
from gantrymq.spark.source.rows import open_rows

KILLS = int(os.environ.get("GANTRY_KILLS", "2"))
"""How often a driver is killed; more by hand."""
pytestmark = pytest.mark.timeout(400 + 60 * KILLS)

CHILD = Path(__file__).with_name("sink_child.py")
ROWS = 2_000
START_SECONDS_MAX = 200.0


def words(cluster: Processes, topic: str, folder: Path, how: str, master: str) -> list[str]:
    checkpoint = str(folder / "checkpoint")
    return [sys.executable, str(CHILD), cluster.namesrv, topic, f"{topic}-copy", checkpoint, how,
            master]  # fmt: skip


def bodies(cluster: Processes, topic: str) -> list[str]:
    """The bodies of a topic as sorted texts: a repeat is seen as well as a gap."""
    found: list[str] = []
    with open_rows(parse_source_options({"nameServer": cluster.namesrv, "topic": topic})) as rows:
        lows, highs = rows.bounds()
        starts: dict[Queue, int] = dict(lows)
        for wanted in ranges(starts, highs):
            for batch in rows.batches(wanted, ["body"]):
                found += [body.decode() for body in batch.column(0).to_pylist()]
    return sorted(found)


def await_batch(folder: Path, child: "subprocess.Popen[str]") -> None:
    """Until the child works on a micro-batch that none before it has begun."""
    log = folder / "checkpoint" / "offsets"
    before = len(list(log.glob("[0-9]*")))
    end = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < end and child.poll() is None:
        if len(list(log.glob("[0-9]*"))) > before:
            return
        time.sleep(0.02)
    raise AssertionError(f"no micro-batch by a child that ended with {child.poll()}")


def test_a_driver_killed_while_it_writes_loses_and_doubles_nothing(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Whenever it dies, the next run finishes or repeats its epoch; the copy is exact."""
    cluster.create_topic(topic, queues=2)
    cluster.create_topic(f"{topic}-copy", queues=3)
    moments, sent = random.Random(7), 0
    for _ in range(KILLS):
        cluster.fill(topic, [ROWS, ROWS], first=sent)
        sent += ROWS
        with (tmp_path / "said").open("w") as said:
            child = start_child(
                words(cluster, topic, tmp_path, "follow", "local[2]"), tmp_path, out=said
            )
            try:
                await_batch(tmp_path, child)
                time.sleep(moments.uniform(0.0, 3.0))
            finally:
                end_child(child)
    ended = run_child(words(cluster, topic, tmp_path, "all", "local[2]"), tmp_path, seconds=300)

    assert (0, "") == (ended.code, "" if ended.code == 0 else ended.err[-2000:])
    assert numbered([sent, sent]) == bodies(cluster, f"{topic}-copy")


def test_tasks_that_fail_and_are_tried_again_double_nothing(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """A task stages part of its rows, dies, and is run again: only one of its tries counts."""
    cluster.create_topic(topic, queues=2)
    cluster.create_topic(f"{topic}-copy", queues=3)
    cluster.fill(topic, [ROWS, ROWS])
    ended = run_child(words(cluster, topic, tmp_path, "all", "local[2,4]"), tmp_path, seconds=300)

    assert (0, "") == (ended.code, "" if ended.code == 0 else ended.err[-2000:])
    assert "a task that fails now and then" in ended.err + ended.out
    assert numbered([ROWS, ROWS]) == bodies(cluster, f"{topic}-copy")
