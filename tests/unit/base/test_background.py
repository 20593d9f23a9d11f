"""Background tasks end with their owner, and no failure of theirs is lost."""

import asyncio
import itertools

import pytest

from gantrymq.base.background import AGAIN_SECONDS, Background
from gantrymq.testing.loop import simulate


def test_what_fails_once_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """
    With the owner's name, at the moment it happens.
    """

    async def fail() -> None:
        raise ValueError("out of order")

    async def main() -> None:
        Background("client c").spawn(fail())
        await asyncio.sleep(0.1)

    simulate(main)

    assert "background work of client c ended" in caplog.text
    assert "out of order" in caplog.text


def test_periodic_work_goes_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """
    The next time comes after the same pause.
    """
    times = []

    async def work() -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            raise OSError("disk is away")

    async def main() -> None:
        background = Background("broker b")
        begun = asyncio.get_running_loop().time()
        background.every(10, work)
        await asyncio.sleep(35)
        await background.close()
        await asyncio.sleep(100)
        times[:] = [at - begun for at in times]

    simulate(main)

    assert [10, 20, 30] == pytest.approx(times)
    assert "periodic work of broker b failed; next in 10 s" in caplog.text


def test_a_service_that_fails_is_started_again() -> None:
    """
    After a rest; one that ends by itself is not.
    """
    begun = []

    async def service() -> None:
        begun.append(asyncio.get_running_loop().time())
        if len(begun) < 3:
            raise ValueError

    async def main() -> None:
        background = Background("broker b")
        background.keep_up(service)
        await asyncio.sleep(100)
        await background.close()

    simulate(main)

    assert [AGAIN_SECONDS] * 2 == pytest.approx([b - a for a, b in itertools.pairwise(begun)])
    assert 3 == len(begun)


def test_closing_waits_for_the_end_of_every_task() -> None:
    """
    What a task does when it is cancelled is done when `close` returns.
    """
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            await asyncio.sleep(1)
            ended.append(True)

    async def main() -> None:
        background = Background("client c")
        background.spawn(work())
        await asyncio.sleep(1)
        await background.close()
        assert [True] == ended

    simulate(main)


def test_a_task_may_close_its_owner() -> None:
    """
    It does not wait for itself.
    """

    async def main() -> None:
        background = Background("client c")
        task = background.spawn(background.close())
        await asyncio.wait_for(task, 5)
        assert not task.cancelled()

    simulate(main)


def test_an_interval_that_changes_holds_at_once() -> None:
    """
    A pause that is woken asks for its interval again; one that is longer then goes on.
    """
    times, seconds = [], [100.0]

    async def work() -> None:
        times.append(asyncio.get_running_loop().time() - begun[0])

    async def main() -> None:
        background = Background("broker b")
        begun.append(asyncio.get_running_loop().time())
        background.every(lambda: seconds[0], work, may_be_late=True)
        await asyncio.sleep(5)
        seconds[0] = 20.0
        background.wake()
        await asyncio.sleep(20)
        seconds[0] = 2.0
        background.wake()
        await asyncio.sleep(0)
        await asyncio.sleep(1)
        await background.close()

    begun: list[float] = []
    simulate(main)

    assert [20, 25] == pytest.approx(times)


def test_finishing_waits_for_the_round_under_way() -> None:
    """
    It is not cancelled, and no other round begins.
    """
    ended = []

    async def work() -> None:
        await asyncio.sleep(10)
        ended.append(True)

    async def main() -> None:
        background = Background("store s")
        background.every(1, work)
        await asyncio.sleep(2)
        await background.finish()
        assert [True] == ended
        await asyncio.sleep(100)

    simulate(main)

    assert [True] == ended
