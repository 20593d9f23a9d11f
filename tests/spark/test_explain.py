"""Our own words, found in what Spark makes of an error."""

import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sparkkit import Processes

from gantrymq.base.errors import ConfigError, GantryError
from gantrymq.spark.explain import HIDE, explain, one_line_errors, ours, unread_quietly
from gantrymq.spark.runtime.tasks import run_tasks

pytestmark = pytest.mark.timeout(240)

PLANNED = """\
[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback (most recent \
call last):
  File "source.py", line 9, in schema
    raise ConfigError("no column 'bdy'")
gantrymq.base.errors.ConfigError: no column 'bdy'; did you mean body?
 SQLSTATE: 38000"""

STREAMED = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_EXCEPTION] An \
exception was thrown from the Python worker: \
gantrymq.client.core.errors.NoRoute: topic T has no route
ask the name servers
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1, runId = 2]"""

CHAINED = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "a.py", line 1, in f
gantrymq.base.errors.ProtocolError: bytes that are no record

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 1, in g
gantrymq.base.errors.GantryError: file 0 is damaged at byte 17: run the audit SQLSTATE: 38000"""

THEIRS = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "udf.py", line 3, in half
ZeroDivisionError: division by zero
 SQLSTATE: 38000"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLANNED, "no column 'bdy'; did you mean body?"),
        (STREAMED, "topic T has no route\nask the name servers"),
        (CHAINED, "file 0 is damaged at byte 17: run the audit"),
        (THEIRS, "ZeroDivisionError: division by zero"),
        ("[PATH_NOT_FOUND] Path does not exist: x. SQLSTATE: 42K03", "[PATH_NOT_FOUND] Path does "
         "not exist: x."),
        ("An error occurred while calling o1.save.\n: java.io.IOException: disk full\n\tat x",
         "java.io.IOException: disk full"),
        ("", "Exception"),
    ],
)  # fmt: skip
def test_the_one_line_that_helps_is_found(text: str, expected: str) -> None:
    """Ours where there is one, the last of several; else what Spark or Python said."""
    assert expected == explain(Exception(text))


def test_only_our_own_errors_are_ours() -> None:
    """An error in a user's function is not mistaken for one."""
    assert ours(Exception(THEIRS)) is None
    assert ours(ConfigError("say what")) == "say what"


def test_outside_of_a_worker_tracebacks_stay() -> None:
    """The switch is one of the process: a program of the user's must not find it set."""
    code = (
        "import os\nfrom gantrymq.base.errors import GantryError\n"
        "from gantrymq.spark.explain import HIDE, one_line_errors\n"
        "try:\n    with one_line_errors(): raise GantryError('x')\n"
        "except GantryError: print(HIDE in os.environ)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert said.stdout == b"False\n"
    assert HIDE == "SPARK_HIDE_TRACEBACK"


def test_an_error_in_a_worker_is_told_in_a_line(spark: Any) -> None:
    """No traceback around it, and the next error of somebody else has one."""

    def refuse(task: int) -> Iterator[Any]:
        with one_line_errors():
            raise GantryError(f"task {task} has no route: create the topic")
        yield

    def divide(task: int) -> Iterator[Any]:
        yield 1 // task

    with pytest.raises(Exception) as refused:
        run_tasks(spark, [7], refuse, "a int").collect()
    with pytest.raises(Exception) as divided:
        run_tasks(spark, [0], divide, "a int").collect()

    assert explain(refused.value) == "task 7 has no route: create the topic"
    assert len(str(refused.value).splitlines()) == 2
    assert explain(divided.value).startswith("ZeroDivisionError")
    assert "Traceback" in str(divided.value)


def first_lines(
    spark: Any, cluster: Processes, topic: str, **options: str
) -> tuple[str, list[str]]:
    """What a query that must fail says: explained, and as Spark prints it."""
    reading = spark.read.format("rocketmq").options(nameServer=cluster.namesrv, topic=topic)
    with pytest.raises(Exception) as failed:
        reading.options(**options).load().collect()
    return explain(failed.value), str(failed.value).splitlines()


def test_a_query_that_fails_says_why_at_once(spark: Any, cluster: Processes, topic: str) -> None:
    """Whoever uses plain Spark reads our words in the first line, and no traceback after them."""
    said, lines = first_lines(spark, cluster, topic, startingOfsets="earliest")
    assert "did you mean startingOffsets?" in said
    assert said in lines[0]

    said, lines = first_lines(spark, cluster, topic)
    assert topic in said
    assert said in lines[0]
    assert len(lines) <= 2


def test_a_stream_that_fails_says_why_in_the_first_line(
    spark: Any, cluster: Processes, topic: str, tmp_path: Path
) -> None:
    """What follows is Spark's account of the query; there is no traceback in it."""
    rows = spark.readStream.format("rocketmq").options(nameServer=cluster.namesrv, topic=topic)
    query = (
        rows.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    with pytest.raises(Exception) as failed:
        query.awaitTermination(60)
    said = explain(failed.value)
    assert topic in said
    assert said in str(failed.value).splitlines()[0]
    assert "Traceback" not in str(failed.value)


def test_a_worker_that_nobody_reads_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After `limit` or `show` Spark hangs up; any other error of a worker is still printed."""
    monkeypatch.setattr(sys.modules[one_line_errors.__module__], "_is_worker", lambda: True)
    monkeypatch.setattr(traceback, "print_exc", traceback.print_exc)  # put back afterwards
    unread_quietly()
    said = []
    for error in (BrokenPipeError(32, "Broken pipe"), ValueError("a mistake")):
        try:
            raise error
        except (OSError, ValueError):
            traceback.print_exc()
        said.append(capsys.readouterr().err)

    assert "" == said[0]
    assert "ValueError: a mistake" in said[1]
