"""Work that several callers wait for, in virtual time."""

import asyncio

import pytest

from gantrymq.client.core.shared_work import SharedWork
from gantrymq.testing import simulate


def test_callers_of_one_key_share_an_attempt_that_outlives_them() -> None:
    """
    A second caller gets the first one's result; a cancelled caller does not take it from the other.
    """
    begun = []

    async def work() -> int:
        begun.append(None)
        await asyncio.sleep(1)
        return len(begun)

    async def story() -> None:
        shared: SharedWork[int] = SharedWork("test")
        first = asyncio.create_task(shared.run("a", work))
        second = asyncio.create_task(shared.run("a", work))
        await asyncio.sleep(0.5)
        first.cancel()
        assert 1 == await second
        assert 2 == await shared.run("a", work)

    simulate(story)


def test_a_failure_is_told_to_all_and_the_next_call_tries_again() -> None:
    """
    An error of the attempt reaches every caller, and is not kept for later ones.
    """

    async def fail() -> int:
        await asyncio.sleep(0)
        raise OSError("away")

    async def succeed() -> int:
        return 7

    async def story() -> None:
        shared: SharedWork[int] = SharedWork("test")
        found = await asyncio.gather(
            shared.run("a", fail), shared.run("a", fail), return_exceptions=True
        )
        assert ["away", "away"] == [str(each) for each in found]
        assert 7 == await shared.run("a", succeed)

    simulate(story)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_closing_leaves_no_caller_waiting(turns: int) -> None:
    """
    Callers are cancelled with the attempt, also with one that had not begun.
    """

    async def story() -> None:
        shared: SharedWork[int] = SharedWork("test")
        caller = asyncio.create_task(shared.run("a", asyncio.Event().wait))  # type: ignore[arg-type]
        for _ in range(turns):
            await asyncio.sleep(0)
        await shared.close()
        with pytest.raises(asyncio.CancelledError):
            await caller

    simulate(story)
