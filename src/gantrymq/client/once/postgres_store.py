"""A store in a PostgreSQL table, which all members share."""

import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from gantrymq.base.clock import WallClock
from gantrymq.client.once.store import TABLE, SharedStore, WorkState, checked_table, driver

if TYPE_CHECKING:
    from psycopg import AsyncConnection

POOL_SIZE: Final = 10
OPEN_SECONDS_MAX: Final = 10.0
MAKE_TABLE_LOCK: Final = 0x67616E74
"""Advisory lock under which one member makes the table; PostgreSQL itself lets two collide."""


class PostgresStore(SharedStore):
    """Give it a connection string, or your own `psycopg_pool.AsyncConnectionPool`.

    Leases and retention go by the server's clock, so the members' clocks need not agree.
    """

    one_host = False

    @property
    def transaction_kind(self) -> type | None:
        """The class that handlers annotate their transaction with; None without the driver."""
        kind: type | None = getattr(sys.modules.get("psycopg"), "AsyncConnection", None)
        return kind

    def __init__(self, source: Any, *, table: str = TABLE, pool_size: int = POOL_SIZE) -> None:
        super().__init__()
        self._table = checked_table(table)
        self._url = source if isinstance(source, str) else None
        self._pool_size = pool_size
        self._pool: Any = None if self._url else source

    async def _open(self, clock: WallClock) -> None:
        if self._url is not None:
            pools = driver("psycopg_pool", "postgres")
            driver("psycopg", "postgres")
            pool = pools.AsyncConnectionPool(
                self._url, min_size=1, max_size=self._pool_size, open=False
            )
            try:
                await pool.open(wait=True, timeout=OPEN_SECONDS_MAX)
            except BaseException:
                await pool.close()
                raise
            self._pool = pool
        async with self._pool.connection() as connection:
            await self._make_table(connection)

    async def _make_table(self, connection: Any) -> None:
        """Create the table if it is missing; a role without that right can use an existing one."""
        table = self._table
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MAKE_TABLE_LOCK,))
        found = await connection.execute("SELECT to_regclass(%s)", (table,))
        if (await found.fetchone())[0] is not None:
            return
        await connection.execute(
            f"CREATE TABLE {table} (member_group text NOT NULL, work text NOT NULL, "
            "holder text NOT NULL, done boolean NOT NULL, until timestamptz NOT NULL, "
            "PRIMARY KEY (member_group, work))"
        )
        await connection.execute(f"CREATE INDEX {table}_until ON {table} (until)")

    async def _close(self) -> None:
        if self._url is not None:
            await self._pool.close()

    # claims

    async def claim(
        self, group: str, keys: Sequence[str], holder: str, lease: float
    ) -> dict[str, WorkState]:
        async with self._pool.connection() as connection:
            return await self._take(connection, group, keys, holder, False, lease)

    async def _take(
        self,
        connection: Any,
        group: str,
        keys: Sequence[str],
        holder: str,
        done: bool,
        seconds: float,
    ) -> dict[str, WorkState]:
        """Take rows in sorted order, so that two members cannot deadlock."""
        table, wanted = self._table, sorted(keys)
        taken = await connection.execute(
            f"INSERT INTO {table} AS row (member_group, work, holder, done, until) "
            "SELECT %s, work, %s, %s, clock_timestamp() + make_interval(secs => %s) "
            "FROM unnest(%s::text[]) AS work "
            "ON CONFLICT (member_group, work) DO UPDATE SET holder = excluded.holder, "
            "done = excluded.done, until = excluded.until WHERE row.until <= clock_timestamp() "
            "OR (row.holder = excluded.holder AND NOT row.done) RETURNING work",
            (group, holder, done, seconds, wanted),
        )
        ours = {work for (work,) in await taken.fetchall()}
        others = [key for key in wanted if key not in ours]
        finished: set[str] = set()
        if others:
            rows = await connection.execute(
                f"SELECT work FROM {table} WHERE member_group = %s AND work = ANY(%s) AND done",
                (group, others),
            )
            finished = {work for (work,) in await rows.fetchall()}
        return {key: _verdict(key, ours, finished) for key in keys}

    async def renew(self, group: str, keys: Sequence[str], holder: str, lease: float) -> None:
        async with self._pool.connection() as connection:
            await connection.execute(
                f"UPDATE {self._table} SET until = clock_timestamp() + make_interval(secs => %s) "
                "WHERE member_group = %s AND work = ANY(%s) AND holder = %s AND NOT done",
                (lease, group, sorted(keys), holder),
            )

    async def done(self, group: str, keys: Sequence[str], holder: str, keep: float) -> list[str]:
        async with self._pool.connection() as connection:
            rows = await connection.execute(
                f"INSERT INTO {self._table} AS row (member_group, work, holder, done, until) "
                "SELECT %s, work, %s, true, clock_timestamp() + make_interval(secs => %s) "
                "FROM unnest(%s::text[]) AS work "
                "ON CONFLICT (member_group, work) DO UPDATE SET done = true, "
                "until = excluded.until WHERE row.holder = excluded.holder RETURNING work",
                (group, holder, keep, sorted(keys)),
            )
            kept = {work for (work,) in await rows.fetchall()}
        return [key for key in keys if key not in kept]

    async def release(self, group: str, keys: Sequence[str], holder: str) -> None:
        async with self._pool.connection() as connection:
            await connection.execute(
                f"DELETE FROM {self._table} "
                "WHERE member_group = %s AND work = ANY(%s) AND holder = %s AND NOT done",
                (group, sorted(keys), holder),
            )

    async def purge(self, count_max: int) -> int:
        table = self._table
        async with self._pool.connection() as connection:
            gone = await connection.execute(
                f"DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} "
                "WHERE until <= clock_timestamp() LIMIT %s FOR UPDATE SKIP LOCKED))",
                (count_max,),
            )
            return int(gone.rowcount)

    # the user's transaction

    @asynccontextmanager
    async def transaction(self) -> "AsyncIterator[AsyncConnection[Any]]":
        """A psycopg connection; the row of the work and the handler's writes commit together."""
        async with self._pool.connection() as connection, connection.transaction():
            yield connection

    async def mark(
        self, transaction: Any, group: str, keys: Sequence[str], keep: float
    ) -> dict[str, WorkState]:
        """Mark work; waits while another open transaction has the same work."""
        return await self._take(transaction, group, keys, "", True, keep)


def _verdict(key: str, ours: Iterable[str], finished: Iterable[str]) -> WorkState:
    if key in ours:
        return WorkState.OURS
    return WorkState.DONE if key in finished else WorkState.BUSY
