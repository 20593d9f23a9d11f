"""A stream that begins at `latest` is killed with -9 in its first batches: nothing is lost."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from children import RUN_SECONDS_MAX, end_child, run_child, start_child
from sparkkit import Processes, numbered

KILLS = int(os.environ.get("GANTRY_KILLS", "1"))
"""How often; more by hand."""
pytestmark = pytest.mark.timeout(300 + 100 * KILLS)
ROWS, OLD_ROWS = 40, 5
CHILD = (sys.executable, Path(__file__).with_name("source_child.py"))


@pytest.mark.parametrize("kept", ["kept", "first-batch"])
def test_what_came_after_the_beginning_was_fixed_arrives_once(
    cluster: Processes, topic: str, tmp_path: Path, kept: str
) -> None:
    """
    Fixed it is by a file in the state folder, or without one by the empty first batch. From then on
    every message arrives exactly once in a table that Spark reads, whenever the driver dies.
    """
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [OLD_ROWS, OLD_ROWS])
    words = [*CHILD, cluster.namesrv, topic, str(tmp_path), kept]
    fixed = tmp_path / ("state/initial.json" if kept == "kept" else "checkpoint/offsets/0")
    moments, sent = random.Random(11), OLD_ROWS
    for _ in range(KILLS):
        child = start_child([*words, "on"], tmp_path, out=subprocess.DEVNULL)
        try:
            _await(fixed, child)
            cluster.fill(topic, [ROWS, ROWS], first=sent)
            sent += ROWS
            time.sleep(moments.uniform(0.0, 3.0))
            os.killpg(child.pid, signal.SIGKILL)
        finally:
            end_child(child)
        cluster.fill(topic, [1, 1], first=sent)
        sent += 1
    ended = run_child([*words, "now"], tmp_path)

    assert 0 == ended.code, ended.err[-2000:]
    found = sorted(line.split()[1] for line in ended.out.splitlines() if line.startswith("row "))
    new = sent - OLD_ROWS
    assert numbered([new, new], first=OLD_ROWS) == found


def _await(path: Path, child: "subprocess.Popen[str]") -> None:
    """Until the beginning is fixed."""
    end = time.monotonic() + RUN_SECONDS_MAX
    while not path.exists():
        assert child.poll() is None, f"the stream ended with {child.returncode}"
        assert time.monotonic() < end, f"no {path} in time"
        time.sleep(0.02)
