"""Shared answers: asked once at a time, again when they are old, and never an error twice."""

import asyncio

import pytest

from gantrymq.console.cached import Cached
from gantrymq.testing.loop import simulate


def test_one_question_for_all_who_wait() -> None:
    """Requests that come together share one question; later ones its answer, until it is old."""

    async def work() -> tuple[list[int], int, int]:
        asked = 0

        async def ask(key: str) -> int:
            nonlocal asked
            asked += 1
            await asyncio.sleep(1)
            return asked

        cached = Cached(ask, 5.0)
        together = await asyncio.gather(cached.get("a"), cached.get("a"), cached.get("a"))
        await asyncio.sleep(3)
        soon = await cached.get("a")
        await asyncio.sleep(3)
        return list(together), soon, await cached.get("a")

    assert ([1, 1, 1], 1, 2) == simulate(work)


def test_errors_and_changes_are_not_kept() -> None:
    """After an error, and after a change, the next request asks again."""

    async def work() -> int:
        answers = iter([ValueError("no"), 1, 2])

        async def ask(key: str) -> int:
            found = next(answers)
            if isinstance(found, ValueError):
                raise found
            return found

        cached = Cached(ask)
        with pytest.raises(ValueError, match="no"):
            await cached.get("a")
        assert 1 == await cached.get("a")
        cached.forget("a")
        return await cached.get("a")

    assert 2 == simulate(work)


def test_who_leaves_does_not_end_the_question() -> None:
    """A reader who leaves is cancelled alone; the others get the answer."""

    async def work() -> int:
        async def ask(key: str) -> int:
            await asyncio.sleep(1)
            return 7

        cached = Cached(ask)
        first = asyncio.create_task(cached.get("a"))
        second = asyncio.create_task(cached.get("a"))
        await asyncio.sleep(0.1)
        first.cancel()
        return await second

    assert 7 == simulate(work)
