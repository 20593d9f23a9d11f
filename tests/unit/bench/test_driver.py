"""The process in which one client library does one work, with ours."""

import time
from collections.abc import Iterator

import pytest
from bench.programs import ProgramFailed, asked
from bench.python_clients.contenders import CONSUMES, SENDS, TASKS, Comparison, Contender
from bench.python_clients.servers import OurServer

COUNT = 1_500
OURS = [
    pytest.param(comparison, each, id=f"{comparison.work}-{each.name}")
    for comparison in (SENDS, TASKS, CONSUMES)
    for each in comparison.contenders
    if each.name in comparison.ours
]


@pytest.fixture(scope="module")
def server() -> Iterator[OurServer]:
    with OurServer() as running:
        yield running


@pytest.mark.parametrize(("comparison", "contender"), OURS)
def test_our_client_does_every_work(
    server: OurServer, comparison: Comparison, contender: Contender
) -> None:
    """
    It says when it is ready, and then what its work took of time and of its processor.
    """
    with asked(
        "python_clients.driver", contender.library, comparison.work, server.address,
        f"driven-{time.time_ns()}", COUNT, "--warm-up", 100, *contender.words,
    ) as driver:  # fmt: skip
        assert driver.ask() == {"ready": True}
        figures = driver.ask()

    assert figures["count"] == COUNT
    assert figures["seconds"] > 0
    assert 0 < figures["cpu_seconds"] < figures["seconds"] * 4


def test_a_driver_that_ends_early_is_told() -> None:
    """
    Nobody waits for an answer that does not come.
    """
    with (
        asked("python_clients.driver", "gantrymq", "pipelined", "127.0.0.1:1", "t", 1) as driver,
        pytest.raises(ProgramFailed, match="ended before it answered"),
    ):
        driver.ask()
