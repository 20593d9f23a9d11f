"""Archives by the command, with a Spark of their own: killed with -9, and stopped."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from children import end_child, run_child, start_child
from sparkkit import Processes

from gantrymq.pipelines.lake import open_table
from gantrymq.pipelines.lake.files import doubled

pytestmark = pytest.mark.timeout(400 + 60 * int(os.environ.get("GANTRY_KILLS", "2")))

KILLS = int(os.environ.get("GANTRY_KILLS", "2"))
"""How often a driver is killed; more by hand."""
GANTRY = Path(sys.executable).with_name("gantry")
ROWS = 4000


def command(cluster: Processes, topic: str, table: Path, form: str, *more: str) -> list[str]:
    """An archive that commits often, so that there are many moments to be killed at."""
    return [
        str(GANTRY), "pipeline", "archive", "--topic", topic, "--into", str(table), "--format",
        form, "--namesrv", cluster.namesrv, "--master", "local[2]", "-o", "json", *more,
    ]  # fmt: skip


def places_of(table: Path) -> list[tuple[int, int]]:
    """Queue and offset of every row: a repeat is seen as well as a gap."""
    found = open_table(table)
    assert [] == doubled(found.files())
    rows = ds.dataset([str(found.root / each.path) for each in found.files()]).to_table(
        columns=["queueId", "queueOffset"]
    )
    return sorted((row["queueId"], row["queueOffset"]) for row in rows.to_pylist())


def await_commits(table: Path, mark: str, child: "subprocess.Popen[str]", beyond: int) -> int:
    """Until the child has committed something; how many commits there are."""
    end = time.monotonic() + 200
    while time.monotonic() < end and child.poll() is None:
        count = len(list((table / mark).glob("*.json")))
        if count > beyond:
            return count
        time.sleep(0.02)
    raise AssertionError(f"no commit by a child that ended with {child.poll()}")


MARKS = {"delta": "_delta_log", "iceberg": "metadata", "parquet": "_gantrymq"}


FORMATS = ("delta", "iceberg", "parquet") if KILLS > 5 else ("delta",)
"""The other formats are killed by the dozen without Spark, in seconds."""


@pytest.mark.parametrize("form", FORMATS)
def test_a_driver_killed_while_it_archives_loses_and_doubles_nothing(
    form: str, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Whenever it dies, the same command goes on, and the table holds what was sent."""
    cluster.create_topic(topic, queues=2)
    table, moments = tmp_path / "t", random.Random(11)
    sent, commits = 0, 0
    for _ in range(KILLS if form == "delta" else KILLS // 5):
        cluster.fill(topic, [ROWS, ROWS], first=sent)
        sent += ROWS
        words = command(cluster, topic, table, form, "--follow", "--trigger", "0.1",
                        "--rows-per-commit", "200")  # fmt: skip
        with (tmp_path / "said").open("w") as said:
            child = start_child(words, tmp_path, out=said)
            try:
                commits = await_commits(table, MARKS[form], child, commits)
                time.sleep(moments.uniform(0.0, 2.0))
                os.killpg(child.pid, signal.SIGKILL)
            finally:
                end_child(child)
        commits = len(list((table / MARKS[form]).glob("*.json")))
    last = run_child(command(cluster, topic, table, form), tmp_path)

    assert last.code == 0, last.err
    assert [(queue, at) for queue in (0, 1) for at in range(sent)] == places_of(table)


def test_an_archive_that_is_stopped_has_ended_a_batch(
    cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """Ctrl-C ends a stream after the commit in hand, with its totals; the next run goes on."""
    cluster.create_topic(topic, queues=1)
    cluster.fill(topic, [ROWS])
    table = tmp_path / "t"
    words = command(cluster, topic, table, "delta", "--follow", "--trigger", "0.2")
    child = start_child(words, tmp_path)
    try:
        await_commits(table, MARKS["delta"], child, 1)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        end_child(child)

    assert child.returncode == 0, err
    (totals,) = json.loads(out)
    assert totals["rows"] == ROWS
    assert "stopping after this step" in err
    assert [(0, at) for at in range(ROWS)] == places_of(table)
