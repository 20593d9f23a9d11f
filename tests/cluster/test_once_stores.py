"""The laws every store of finished work keeps, on real servers: PostgreSQL, Redis, SQLite."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import once_servers
import pytest

from gantrymq.base.clock import SystemClock
from gantrymq.client.once.postgres_store import PostgresStore
from gantrymq.client.once.redis_store import RedisStore
from gantrymq.client.once.sqlite_store import SqliteStore
from gantrymq.client.once.store import ClaimStore, StoreUnusable, TransactionStore, WorkState

OURS, DONE, BUSY = WorkState.OURS, WorkState.DONE, WorkState.BUSY
LONG = 60.0
NUMBERS = itertools.count()
Story = Callable[[ClaimStore, ClaimStore], Awaitable[None]]


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        yield {
            "postgres": stack.enter_context(once_servers.postgres()),
            "redis": stack.enter_context(once_servers.redis()),
        }


@pytest.fixture(params=["postgres", "redis", "sqlite"])
def two(
    request: pytest.FixtureRequest, servers: dict[str, str], tmp_path: Path
) -> Callable[[Story], None]:
    """Run a story with two stores that two members would have: same server, own connections."""
    kind, name = request.param, f"once_{next(NUMBERS)}"

    def make() -> ClaimStore:
        if kind == "postgres":
            return PostgresStore(servers["postgres"], table=name, pool_size=3)
        if kind == "redis":
            return RedisStore(servers["redis"], prefix=name)
        return SqliteStore(str(tmp_path / "once.db"))

    return lambda story: asyncio.run(_tell(story, make(), make()))


async def _tell(story: Story, first: ClaimStore, second: ClaimStore) -> None:
    clock = SystemClock()
    await asyncio.gather(first.open(clock), second.open(clock))
    try:
        async with asyncio.timeout(30):
            await story(first, second)
    finally:
        await first.close()
        await second.close()


def test_what_one_member_has_claimed_is_busy_for_another(two: Callable[[Story], None]) -> None:
    """
    A claim excludes others; other keys and other groups are free.
    """

    async def story(mine: ClaimStore, theirs: ClaimStore) -> None:
        assert {"a": OURS, "b": OURS} == await mine.claim("g", ["a", "b"], "me", LONG)
        assert {"c": OURS, "a": BUSY} == await theirs.claim("g", ["c", "a"], "you", LONG)
        assert {"a": OURS} == await theirs.claim("h", ["a"], "you", LONG)
        assert {"a": OURS} == await mine.claim("g", ["a"], "me", LONG)

    two(story)


def test_what_is_done_is_done_for_everybody(two: Callable[[Story], None]) -> None:
    """
    Also for the one who did it.
    """

    async def story(mine: ClaimStore, theirs: ClaimStore) -> None:
        await mine.claim("g", ["a", "b"], "me", LONG)
        assert [] == await mine.done("g", ["a", "b"], "me", LONG)
        assert {"a": DONE, "b": DONE} == await theirs.claim("g", ["a", "b"], "you", LONG)
        assert {"a": DONE} == await mine.claim("g", ["a"], "me", LONG)
        assert [] == await mine.done("g", ["a"], "me", LONG)
        assert ["a"] == await theirs.done("g", ["a"], "you", LONG)

    two(story)


def test_a_claim_given_up_is_free_at_once_but_nobody_elses(two: Callable[[Story], None]) -> None:
    """
    Only the holder can release, and never what is done.
    """

    async def story(mine: ClaimStore, theirs: ClaimStore) -> None:
        await mine.claim("g", ["a", "b"], "me", LONG)
        await theirs.release("g", ["a", "b"], "you")
        assert {"a": BUSY} == await theirs.claim("g", ["a"], "you", LONG)
        await mine.release("g", ["a"], "me")
        assert {"a": OURS, "b": BUSY} == await theirs.claim("g", ["a", "b"], "you", LONG)
        await mine.done("g", ["b"], "me", LONG)
        await mine.release("g", ["b"], "me")
        assert {"b": DONE} == await theirs.claim("g", ["b"], "you", LONG)

    two(story)


def test_the_claim_of_a_dead_member_lapses(two: Callable[[Story], None]) -> None:
    """
    Unless it is renewed; who comes back late learns that it was taken over.
    """

    async def story(mine: ClaimStore, theirs: ClaimStore) -> None:
        await mine.claim("g", ["dead", "alive"], "me", 1.0)
        await mine.renew("g", ["alive"], "me", LONG)
        verdicts = {}
        while verdicts.get("dead") is not OURS:
            await asyncio.sleep(0.05)
            verdicts = await theirs.claim("g", ["dead", "alive"], "you", LONG)
        assert BUSY is verdicts["alive"]
        await mine.renew("g", ["dead"], "me", LONG)
        assert ["dead"] == await mine.done("g", ["dead", "alive"], "me", LONG)
        assert [] == await theirs.done("g", ["dead"], "you", LONG)

    two(story)


def test_work_whose_claim_lapsed_unseen_still_counts_as_done(two: Callable[[Story], None]) -> None:
    """
    Nobody took it over: marking it late is no loss.
    """

    async def story(mine: ClaimStore, theirs: ClaimStore) -> None:
        await mine.claim("g", ["a"], "me", 0.05)
        await asyncio.sleep(0.1)
        await theirs.purge(100)
        assert [] == await mine.done("g", ["a"], "me", LONG)
        assert {"a": DONE} == await theirs.claim("g", ["a"], "you", LONG)

    two(story)


def test_what_was_done_long_ago_is_forgotten(two: Callable[[Story], None]) -> None:
    """
    Purging deletes in portions; forgotten work counts as new.
    """

    async def story(mine: ClaimStore, theirs: ClaimStore) -> None:
        old, fresh = [f"old-{n}" for n in range(5)], ["fresh"]
        await mine.claim("g", old + fresh, "me", LONG)
        await mine.done("g", fresh, "me", LONG)
        await mine.done("g", old, "me", 0.05)
        await asyncio.sleep(0.1)
        counts = [await theirs.purge(3) for _ in range(3)]
        assert counts in ([3, 2, 0], [0, 0, 0])  # Redis forgets by itself
        verdicts = await theirs.claim("g", ["old-0", "fresh"], "you", LONG)
        assert {"old-0": OURS, "fresh": DONE} == verdicts

    two(story)


def test_many_members_at_once_claim_each_key_once(two: Callable[[Story], None]) -> None:
    """
    Forty claims of overlapping keys in every order: one owner a key, nobody deadlocks.
    """

    async def story(mine: ClaimStore, theirs: ClaimStore) -> None:
        keys = [f"k{n}" for n in range(20)]
        orders = [keys, keys[::-1], keys[::2] + keys[1::2], keys[5:] + keys[:5]]
        claims = [
            store.claim("g", orders[number % 4], f"{name}-{number}", LONG)
            for number in range(20)
            for name, store in (("me", mine), ("you", theirs))
        ]
        answers = await asyncio.gather(*claims)
        owners = {key: [a[key] for a in answers].count(OURS) for key in keys}
        assert dict.fromkeys(keys, 1) == owners

    two(story)


# in the user's transaction

needs_transactions = pytest.mark.parametrize("two", ["postgres", "sqlite"], indirect=True)


@needs_transactions
def test_a_mark_lives_and_dies_with_its_transaction(two: Callable[[Story], None]) -> None:
    """
    Rolled back it never was; committed it is done for both strengths.
    """

    async def story(mine: TransactionStore, theirs: TransactionStore) -> None:
        async def fail() -> None:
            async with mine.transaction() as transaction:
                assert {"a": OURS} == await mine.mark(transaction, "g", ["a"], LONG)
                await transaction.execute("CREATE TABLE written (x int)")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with theirs.transaction() as transaction:
            await transaction.execute("CREATE TABLE written (x int)")
            assert {"a": OURS} == await theirs.mark(transaction, "g", ["a"], LONG)
        async with mine.transaction() as transaction:
            assert {"a": DONE} == await mine.mark(transaction, "g", ["a"], LONG)
            await transaction.execute("DROP TABLE written")
        assert {"a": DONE} == await mine.claim("g", ["a"], "me", LONG)
        await theirs.claim("g", ["b"], "you", LONG)
        async with mine.transaction() as transaction:
            assert {"b": BUSY} == await mine.mark(transaction, "g", ["b"], LONG)

    two(story)


@needs_transactions
@pytest.mark.parametrize("commits, expected", [(True, DONE), (False, OURS)])
def test_a_mark_waits_for_the_other_transaction_and_follows_its_end(
    two: Callable[[Story], None], commits: bool, expected: WorkState
) -> None:
    """
    Two members at the same work at the same moment: the second one knows only when the first ends.
    """

    async def story(mine: TransactionStore, theirs: TransactionStore) -> None:
        marked, go_on = asyncio.Event(), asyncio.Event()

        async def first() -> None:
            async with mine.transaction() as transaction:
                await mine.mark(transaction, "g", ["a"], LONG)
                marked.set()
                await go_on.wait()
                if not commits:
                    raise ZeroDivisionError

        async def second() -> dict[str, WorkState]:
            await marked.wait()
            async with theirs.transaction() as transaction:
                return await theirs.mark(transaction, "g", ["a"], LONG)

        one, two = asyncio.create_task(first()), asyncio.create_task(second())
        await marked.wait()
        _, waiting = await asyncio.wait([two], timeout=0.3)
        assert {two} == waiting
        go_on.set()
        assert {"a": expected} == await two
        await asyncio.gather(one, return_exceptions=True)

    two(story)


# set-up


def test_a_missing_driver_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The core needs no database driver; who wants one is told how to get it.
    """
    import sys

    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)

    async def main() -> None:
        with pytest.raises(StoreUnusable, match=r"pip install 'gantrymq\[postgres\]'"):
            await PostgresStore("postgresql://nowhere").open(SystemClock())
        with pytest.raises(StoreUnusable, match=r"pip install 'gantrymq\[redis\]'"):
            await RedisStore("redis://nowhere").open(SystemClock())

    asyncio.run(main())


def test_a_table_name_that_is_none_is_refused() -> None:
    """
    It goes into SQL as it is.
    """
    for name in ("x; drop table y", "", "1a", "a" * 60):
        with pytest.raises(StoreUnusable):
            PostgresStore("postgresql://x", table=name)


def test_the_users_own_pool_and_client_stay_open(servers: dict[str, str]) -> None:
    """
    What was passed in is used, not closed.
    """
    import psycopg_pool
    from redis.asyncio import Redis

    async def main() -> None:
        pool = psycopg_pool.AsyncConnectionPool(servers["postgres"], open=False, min_size=1)
        client = Redis.from_url(servers["redis"])
        await pool.open()
        for store in (PostgresStore(pool, table="own"), RedisStore(client, prefix="own")):
            await store.open(SystemClock())
            await store.claim("g", ["a"], "me", LONG)
            await store.close()
        async with pool.connection() as connection:
            rows = await connection.execute("SELECT count(*) FROM own")
            assert (1,) == await rows.fetchone()
        assert [b"own:g:a"] == await client.keys("own:*")
        await pool.close()
        await client.aclose()

    asyncio.run(main())
