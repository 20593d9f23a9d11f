"""`gantry bench`: measure how fast a cluster stores and delivers messages.

It works with any RocketMQ cluster, so that two can be compared by one program. The result is one
JSON line.
"""

from collections.abc import Coroutine
from typing import Any

import click

from gantrymq.base.errors import GantryError
from gantrymq.cli.common.output import Row, fail, namesrv_option, print_line
from gantrymq.cli.load import Load, SendLoad, consume, run_fast
from gantrymq.model import BENCHMARK_TOPIC


@click.group("bench")
def bench() -> None:
    """Measure sending or consuming; the result is one JSON line."""


def _load_options(function: Any) -> Any:
    """Add the options that `producer` and `consumer` share."""
    above_0 = click.IntRange(1)
    for option in (
        namesrv_option,
        click.option("--topic", default=BENCHMARK_TOPIC, show_default=True),
        click.option(
            "--size", default=128, show_default=True, type=above_0, help="Bytes of a body."
        ),
        click.option("--count", default=100_000, show_default=True, type=above_0, help="Messages."),
        click.option(
            "--threads", default=64, show_default=True, type=above_0, help="Senders or handlers."
        ),
        click.option(
            "--batch", default=1, show_default=True, type=above_0, help="Messages of one request."
        ),
    ):
        function = option(function)
    return function


@bench.command("producer")
@_load_options
@click.option("--group", default="benchmark_producer", show_default=True)
@click.option("--async", "pipelined", is_flag=True, help="Send without waiting for answers.")
def producer(pipelined: bool, **load: Any) -> None:
    """Send COUNT messages of SIZE bytes with THREADS senders, or with --async without waiting."""
    run = SendLoad(Load(**load))
    _report(run.pipelined() if pipelined else run.waiting())


@bench.command("consumer")
@_load_options
@click.option("--group", default="benchmark_consumer", show_default=True)
@click.option("--async", "pipelined", is_flag=True, help="No effect: consuming never waits.")
@click.option(
    "--idle", default=10.0, show_default=True, help="Stop after so many seconds without a message."
)
def consumer(pipelined: bool, idle: float, **load: Any) -> None:
    """Consume COUNT messages, from the first one on if the group is new. SIZE has no effect."""
    _report(consume(Load(**load), idle))


def _report(work: Coroutine[Any, Any, Row]) -> None:
    try:
        row = run_fast(work)
    except GantryError as error:
        fail(error)
    print_line(row)
    if row["failed"]:
        raise SystemExit(1)
