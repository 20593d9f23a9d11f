"""`gantry pipeline audit` on a real Spark."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sparkkit import Processes
from storekeeping import TOPIC, contents, flip, keep_store, message

from gantrymq.cli.pipeline.audit import audit

pytestmark = pytest.mark.timeout(240)


def asked(*words: str) -> Result:
    result: Result = CliRunner().invoke(audit, [*words, "--quiet"])
    return result


def fill(store: Path, count: int = 40) -> None:
    keep_store(
        store, [message(n % 2, f"{n}" * 80, keys=f"k{n}", unique=f"U{n}") for n in range(count)]
    )


def test_a_good_store_is_said_to_be_good(spark: Any, tmp_path: Path) -> None:
    """Exit code 0, what was covered, and not a byte changed."""
    fill(tmp_path)
    before = contents(tmp_path)

    result = asked(str(tmp_path), "-o", "json")

    said = json.loads(result.stdout)
    assert (0, True, []) == (result.exit_code, said["good"], said["findings"])
    assert 40 == said["covered"]["records"]
    assert before == contents(tmp_path)


def test_damage_is_listed_and_rebuilt(spark: Any, tmp_path: Path) -> None:
    """Exit code 1 with the finding; after a rebuild exit code 0."""
    store, page = tmp_path / "store", tmp_path / "audit.html"
    fill(store)
    path = sorted((store / "consumequeue" / TOPIC / "1").iterdir())[0]
    flip(path, 20 * 3 + 7)

    result = asked(str(store), "-o", "jsonl", "--report", str(page))

    finding = json.loads(result.stdout.splitlines()[0])
    assert 1 == result.exit_code
    assert ("entry-place", str(path), 60, TOPIC, 1, 3) == tuple(
        finding[name] for name in ("kind", "file", "byte", "topic", "queueId", "offset")
    )
    assert "1 thing is wrong" in result.stderr
    assert "entry-place" in page.read_text()

    again = asked(str(store), "--rebuild")
    assert (0, True) == (again.exit_code, "rebuilt 2 queues with 40 entries" in again.stderr)
    assert (store / "consumequeue.before").is_dir()


def test_a_running_brokers_store_is_audited(spark: Any, cluster: Processes, topic: str) -> None:
    """Its tail is left out, and that is said; a rebuild is refused."""
    cluster.create_topic(topic, queues=2)
    cluster.fill(topic, [30, 30])

    result = asked(str(cluster.store), "-o", "json")
    refused = asked(str(cluster.store), "--rebuild")

    said = json.loads(result.stdout)
    assert (0, []) == (result.exit_code, [f for f in said["findings"] if f["level"] == "wrong"])
    assert any("left out" in note for note in said["notes"])
    assert 1 == refused.exit_code
    assert "stop it first" in refused.stderr


def test_what_is_no_store_is_said_at_once(tmp_path: Path) -> None:
    """Before a Spark is started."""
    result = asked(str(tmp_path))

    assert 1 == result.exit_code
    assert "is no store" in result.stderr
