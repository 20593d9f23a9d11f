"""A job is killed with -9 while it replaces a period: the old rows are there, or the new ones."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from children import end_child, start_child
from deltalake import DeltaTable
from sparkkit import Processes

KILLS = int(os.environ.get("GANTRY_KILLS", "2"))
"""How often; more by hand."""
pytestmark = pytest.mark.timeout(300 + 100 * KILLS)
ROWS = (150, 150)


def test_a_period_is_replaced_as_a_whole_or_not_at_all(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """
    Whenever the driver dies, the table has every row once, and all of one version. The next run
    goes on with it.
    """
    cluster.create_topic(topic, len(ROWS))
    cluster.fill(topic, ROWS)
    table, moments = tmp_path / "t", random.Random(7)
    seen: list[int] = []
    for kill in range(KILLS):
        first = 1000 * kill
        code = [sys.executable, Path(__file__).with_name("again_child.py")]
        child = start_child([*code, cluster.namesrv, topic, str(table), str(first)], tmp_path)
        try:
            _await_version(child, first + 1 + kill % 2)
            time.sleep(moments.uniform(0.0, 2.5))
            os.killpg(child.pid, signal.SIGKILL)
        finally:
            end_child(child)
        rows = DeltaTable(table).to_pyarrow_table().to_pylist()
        places = sorted((row["queueId"], row["queueOffset"]) for row in rows)
        assert [(queue, at) for queue, n in enumerate(ROWS) for at in range(n)] == places
        [version] = {row["version"] for row in rows}
        seen.append(version)

    assert sorted(seen) == seen
    assert KILLS == len(seen)


def _await_version(child: "subprocess.Popen[str]", version: int) -> None:
    """Until the child is at work on a version."""
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == str(version):
            return
    raise AssertionError(f"the job ended with {child.wait()}")
