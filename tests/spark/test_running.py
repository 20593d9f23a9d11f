"""The frame around every pipeline: the session, errors, Ctrl-C and progress."""

import io
import os
import signal
from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner

from gantrymq.base.errors import GantryError
from gantrymq.cli.pipeline.spark_run import Run, spark_options
from gantrymq.pipelines.common.progress import Lines, ProgressBar, Silent, progress_on
from gantrymq.pipelines.common.spark_run import RunFailed, spark_run, stop_on_signal
from gantrymq.spark.runtime.tasks import run_tasks

pytestmark = pytest.mark.timeout(240)


@click.command()
@spark_options
def show(run: Run) -> None:
    """Print what it was given."""
    click.echo((run.master, dict(run.settings), run.quiet, run.verbose))


def test_every_command_takes_the_same_options() -> None:
    """Where, with which settings, how loud."""
    words = ["--master", "local[1]", "--conf", "spark.a=b=c", "--driver-memory", "2g", "--quiet"]

    result = CliRunner().invoke(show, words)

    settings = {"spark.driver.memory": "2g", "spark.a": "b=c"}
    assert result.output == f"{('local[1]', settings, True, False)}\n"


@pytest.mark.parametrize("word", ["spark.a", "a=b", ""])
def test_a_setting_must_be_one_of_sparks(word: str) -> None:
    """A slip is told before Spark starts."""
    result = CliRunner().invoke(show, ["--conf", word])
    assert result.exit_code == 2
    assert "is not spark.KEY=VALUE" in result.output


def test_an_open_session_is_used_and_stays_open(spark: Any) -> None:
    """Who has a session keeps it."""
    with spark_run("other") as same:
        assert same is spark
    assert spark.range(3).count() == 3


def test_what_a_worker_says_is_what_the_command_says(
    spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr, exit code 1; no word of Spark's."""

    def refuse(task: int) -> Iterator[Any]:
        raise GantryError(f"queue {task} was deleted: begin at earliest")
        yield

    with pytest.raises(SystemExit) as ended, Run().session("test") as session:
        run_tasks(session, [3], refuse, "a int").collect()

    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: queue 3 was deleted: begin at earliest\n"


def test_what_spark_says_is_told_as_sparks(spark: Any) -> None:
    """Not ours: the first line, and that it is Spark's."""
    told = r"^Spark failed: .*PATH_NOT_FOUND.*/none"
    with pytest.raises(RunFailed, match=told) as failed, spark_run("test") as session:
        session.read.parquet("/none").count()
    assert len(str(failed.value).splitlines()) == 1


def test_a_mistake_in_code_keeps_its_name(spark: Any) -> None:
    """What is neither ours nor Spark's is a bug, and looks like one."""
    with pytest.raises(ZeroDivisionError), spark_run("test"):
        _ = 1 // 0


def test_ctrl_c_ends_a_command_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    """And says that nothing is lost."""
    with pytest.raises(SystemExit) as ended, Run().ending():
        signal.raise_signal(signal.SIGINT)
    assert ended.value.code == 130
    assert "goes on from here" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_loop_ends_between_two_steps(number: signal.Signals) -> None:
    """The first signal is a question: the step that runs is finished, and a pause ends."""
    steps: list[object] = []

    def run() -> None:
        with stop_on_signal() as stop:
            while not stop.asked:
                os.kill(os.getpid(), number)
                steps.append(stop.pause(60))
            steps.append("summary")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert steps == [True, "summary"]


def test_the_second_ctrl_c_waits_for_nothing() -> None:
    """Who asks twice is in a hurry."""
    steps, before = [], signal.getsignal(signal.SIGINT)

    def run() -> None:
        with stop_on_signal() as stop:
            signal.raise_signal(signal.SIGINT)
            steps.append(stop.asked)
            signal.raise_signal(signal.SIGINT)
            steps.append(False)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert steps == [True]
    assert signal.getsignal(signal.SIGINT) is before


def test_without_a_terminal_progress_is_a_line_now_and_then() -> None:
    """Nobody wants ten thousand lines in a log."""
    out, now = io.StringIO(), [0.0]
    progress = Lines(out, every=10, now=lambda: now[0])

    progress.start(1000, "rows")
    for now[0] in (4.0, 9.0, 12.0, 20.0):
        progress.advance(100)
    progress.note("queue 3 is idle")
    progress.done()
    progress.done()

    assert out.getvalue().splitlines() == [
        "300 of 1,000 rows (30%) in 12 s, 25/s",
        "queue 3 is idle",
        "400 of 1,000 rows (40%) in 20 s, 20/s",
    ]


def test_a_step_of_minutes_is_a_line_every_ten_seconds() -> None:
    """Whoever looks at Spark tells twice a second, also before anything is counted."""
    out, now = io.StringIO(), [0.0]
    progress = Lines(out, every=10, now=lambda: now[0])

    for now[0] in (5.0, 10.0, 15.0, 20.0):
        progress.working("Spark: 1 of 8 tasks" if now[0] < 20 else "", 0.1)
    progress.start(14, "tables")
    progress.advance(3)
    for now[0] in (25.0, 30.0, 35.0):
        progress.working("Spark: 2 of 8 tasks", 0.2)
    progress.done()

    assert out.getvalue().splitlines() == [
        "Spark: 1 of 8 tasks, for 10 s",
        "working, for 20 s",
        "3 of 14 tables (21%) in 10 s, 0/s; Spark: 2 of 8 tasks",
        "3 of 14 tables (21%) in 15 s, 0/s",
    ]


def test_a_run_without_an_end_in_sight_is_counted() -> None:
    """A stream has no total."""
    out = io.StringIO()
    progress = Lines(out, every=0, now=iter([0.0, 0.0, 2.0, 2.0]).__next__)
    progress.start(None, "rows")
    progress.advance(5)
    assert out.getvalue() == "5 rows in 2 s, 2/s\n"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_at_a_terminal_progress_is_a_bar() -> None:
    """It draws itself, notes stay above it, and it can be begun again."""
    out = Terminal()
    progress = progress_on(out)
    assert isinstance(progress, ProgressBar)
    for unit in ("rows", "files"):
        progress.start(10, unit)
        progress.advance(10)
        progress.note(f"all [{unit}]")
        progress.done()
    assert "all [rows]" in out.getvalue()
    assert "10 of 10" in out.getvalue()


def test_quiet_means_quiet() -> None:
    """With `quiet` a run shows no progress at all."""
    assert isinstance(progress_on(io.StringIO(), quiet=True), Silent)
