"""A replay is killed with -9 again and again: every message is sent once, in order."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest
from children import end_child, run_child, start_child
from sparkkit import Processes

from gantrymq import Message
from gantrymq.model.offset_ranges import OffsetRange
from gantrymq.pipelines.replay.journal import Journal
from gantrymq.spark.options.source_parser import parse_source_options
from gantrymq.spark.source.rows import open_rows

KILLS = int(os.environ.get("GANTRY_KILLS", "2"))
"""How often; more by hand."""
pytestmark = pytest.mark.timeout(300 + 100 * KILLS)
COUNT, KEYS = 200 * KILLS, 11


def test_a_killed_replay_goes_on_and_sends_each_message_once(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """
    The same command, however often it takes; consumers see no double, no gap and no key turned.
    """
    source, target = f"{topic}-from", f"{topic}-into"
    cluster.create_topic(source, 4)
    cluster.create_topic(target, 4)
    cluster.send(Message(source, f"{n}", keys=f"k{n % KEYS}") for n in range(COUNT))
    state, moments = tmp_path / "state", random.Random(11)
    gantry = [Path(sys.executable).with_name("gantry"), "pipeline", "replay", "--from"]
    words = [*gantry, f"topic:{source}", "--into", target, "--since", "2h ago", "--chunk", "40",
             "-n", cluster.namesrv, "--state", str(state), "--quiet", "-o", "jsonl"]  # fmt: skip
    for _ in range(KILLS):
        before = _done(state)
        child = start_child(words, tmp_path, out=subprocess.DEVNULL)
        try:
            _await_chunk(child, state, before)
            time.sleep(moments.uniform(0.0, 1.0))
            os.killpg(child.pid, signal.SIGKILL)
        finally:
            end_child(child)
    ended = run_child(words, tmp_path, seconds=400)

    assert (0, "") == (ended.code, ended.err)
    assert '"result": "done"' in ended.out
    rows = _rows(cluster, target)
    assert sorted(range(COUNT)) == sorted(int(body) for _, _, body, _ in rows)
    by_key: dict[str, set[int]] = defaultdict(set)
    by_origin: dict[tuple[str, str], list[int]] = defaultdict(list)
    for queue, key, _, origin in rows:
        by_key[key].add(queue)
        _, _, origin_queue, offset = origin.split("@")[1].split("/")
        by_origin[key, origin_queue].append(int(offset))
    assert {1} == {len(queues) for queues in by_key.values()}
    assert all(offsets == sorted(offsets) for offsets in by_origin.values())
    events = [line["event"] for line in Journal(state).history()]
    assert [*["begun"] * (KILLS + 1), "done"] == events


def _done(state: Path) -> str:
    return "".join(path.read_text() for path in sorted(state.glob("*/done")))


def _await_chunk(child: "subprocess.Popen[str]", state: Path, before: str) -> None:
    """Until the child has published a chunk more."""
    give_up = time.monotonic() + 240
    while _done(state) == before:
        assert child.poll() is None
        assert time.monotonic() < give_up
        time.sleep(0.02)


def _rows(cluster: Processes, topic: str) -> list[tuple[int, str, str, str]]:
    """Queue, key, body and origin of all messages, each queue in its order."""
    options = parse_source_options({"nameServer": cluster.namesrv, "topic": topic})
    found = []
    with open_rows(options) as rows:
        lows, highs = rows.bounds()
        for queue, high in sorted(highs.items()):
            wanted = OffsetRange(queue, lows[queue], high)
            for batch in rows.batches(wanted, ("keys", "body", "properties")):
                for row in batch.to_pylist():
                    origin = dict(row["properties"])["REPLAY_ORIGIN"]
                    found.append((queue.queue_id, row["keys"], row["body"].decode(), origin))
    return found
