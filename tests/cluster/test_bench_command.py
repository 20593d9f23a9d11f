"""`gantry bench` against a running cluster."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from gantrymq.cli.main import main


def run(namesrv: str, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, ["bench", *arguments, "--namesrv", namesrv])
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.parametrize("more", [[], ["--async"], ["--batch", "7"], ["--async", "--batch", "7"]])
def test_a_producer_run_is_one_line_of_json(gantry: Any, more: list[str]) -> None:
    """
    `bench producer` prints its count, rate and percentiles as one line of JSON.
    """
    gantry.create_topic("speed")
    row = run(
        gantry.namesrv, "producer", "--topic", "speed", "--count", "200", "--threads", "8",
        "--size", "64", *more,
    )  # fmt: skip

    assert row["failed"] == 0
    assert row["count"] == 200
    assert row["tps"] > 0
    assert row["p50_ms"] <= row["p99_ms"] <= row["p999_ms"]


@pytest.mark.parametrize("batch", ["1", "16"])
def test_a_consumer_run_ends_with_its_last_message(gantry: Any, batch: str) -> None:
    """
    `bench consumer` ends when it has received as many messages as it was told to wait for.
    """
    gantry.create_topic("speed")
    run(gantry.namesrv, "producer", "--topic", "speed", "--count", "300", "--batch", "50")
    row = run(gantry.namesrv, "consumer", "--topic", "speed", "--count", "300", "--batch", batch)

    assert row["failed"] == 0
    assert row["count"] == 300
    assert row["p50_ms"] <= row["p99_ms"] <= row["p999_ms"]


def test_a_consumer_that_waits_in_vain_says_how_many_are_missing(gantry: Any) -> None:
    """
    `bench consumer` ends after `--idle` seconds, exits with 1 and counts the missing messages
    as failed.
    """
    gantry.create_topic("speed")
    run(gantry.namesrv, "producer", "--topic", "speed", "--count", "10")
    arguments = ["bench", "consumer", "--topic", "speed", "--count", "15", "--idle", "1"]
    result = CliRunner().invoke(main, [*arguments, "--namesrv", gantry.namesrv])

    assert result.exit_code == 1
    assert json.loads(result.stdout)["failed"] == 5


def test_a_cluster_that_is_not_there_is_said_in_one_line() -> None:
    """
    An unreachable name server ends the command with exit code 1 and an error on standard error.
    """
    arguments = ["bench", "producer", "--count", "1", "--namesrv", "127.0.0.1:1"]
    result = CliRunner().invoke(main, arguments)

    assert result.exit_code == 1
    assert "error:" in result.stderr
