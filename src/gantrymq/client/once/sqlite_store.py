"""A store in an SQLite file, for a group whose members all run on one machine."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple, TypeVar, TypeVarTuple

from gantrymq.base.clock import SystemClock, WallClock
from gantrymq.base.offload import Offload, ThreadOffload
from gantrymq.client.once.store import TABLE, SharedStore, StoreUnusable, WorkState, checked_table

LOCKED_SECONDS_MAX: Final = 30.0
"""How long another process may hold the file before we give up."""
LOCKED_PAUSE_SECONDS: Final = 0.02


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class SqliteTransaction:
    """The open transaction that a handler gets; statements run on a thread."""

    def __init__(self, connection: sqlite3.Connection, offload: Offload) -> None:
        self._connection, self._offload = connection, offload

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Run one statement; returns its rows."""
        return await self._offload.run(lambda: self._connection.execute(sql, parameters).fetchall())

    async def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row."""
        every = list(rows)
        await self._offload.run(lambda: self._connection.executemany(sql, every))


class _OpenFile(NamedTuple):
    """The connection, and the thread that uses it."""

    db: sqlite3.Connection
    offload: Offload


class SqliteStore(SharedStore):
    """One file, one writer at a time: with `transaction=True` handlers run one after another."""

    one_host = True
    transaction_kind = SqliteTransaction

    def __init__(self, path: str, *, table: str = TABLE, offload: Offload | None = None) -> None:
        super().__init__()
        self._path, self._table = path, checked_table(table)
        self._own_offload = offload
        self._clock: WallClock = SystemClock()
        self._turn = asyncio.Lock()
        self._file: _OpenFile | None = None

    @property
    def _db(self) -> sqlite3.Connection:
        return self._opened.db

    @property
    def _offload(self) -> Offload:
        return self._opened.offload

    @property
    def _opened(self) -> _OpenFile:
        if self._file is None:
            raise StoreUnusable(f"{self._path} is not open: a consumer opens it when it starts")
        return self._file

    async def _open(self, clock: WallClock) -> None:
        self._clock = clock
        offload = self._own_offload or ThreadOffload(1)
        self._file = _OpenFile(await offload.run(self._connect), offload)
        # With a write-ahead log readers never hold up a commit.
        await self._patiently(self._db.execute, "PRAGMA journal_mode=WAL")
        # A message is acknowledged after its row is committed: a commit must survive a power cut.
        await self._patiently(self._db.execute, "PRAGMA synchronous=FULL")
        if not await self._patiently(self._has_table):
            await self._alone(self._make_table)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)

    def _has_table(self) -> bool:
        """Whether the table exists; a read does not wait for a writer, as creating it would."""
        found = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (self._table,))
        return found.fetchone() is not None

    def _make_table(self) -> None:
        table = self._table
        self._db.execute(
            f"CREATE TABLE IF NOT EXISTS {table} (member_group TEXT NOT NULL, work TEXT NOT NULL, "
            "holder TEXT NOT NULL, done INTEGER NOT NULL, until_ms INTEGER NOT NULL, "
            "PRIMARY KEY (member_group, work)) WITHOUT ROWID"
        )
        self._db.execute(f"CREATE INDEX IF NOT EXISTS {table}_until ON {table} (until_ms)")

    async def _close(self) -> None:
        async with self._turn:
            await self._offload.run(self._db.close)
        if isinstance(self._offload, ThreadOffload) and self._own_offload is None:
            self._offload.close()

    # one at a time

    async def _patiently(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Retry while the file is locked, without blocking: its holder may run on this loop."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LOCKED_SECONDS_MAX
        while True:
            try:
                return await self._offload.run(work, *args)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or loop.time() > deadline:
                    raise
            await asyncio.sleep(LOCKED_PAUSE_SECONDS)

    async def _alone(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run a whole transaction on the thread, so that a blocked loop cannot hold it open."""
        async with self._turn:
            return await self._patiently(self._whole, lambda: work(*args))

    def _whole(self, work: Callable[[], T]) -> T:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            result = work()
            self._db.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        return result

    def _roll_back(self) -> None:
        """Roll back; ignore errors, which would hide the first one."""
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    # claims

    async def claim(
        self, group: str, keys: Sequence[str], holder: str, lease: float
    ) -> dict[str, WorkState]:
        return await self._alone(self._take, group, keys, holder, False, int(lease * 1000))

    def _take(
        self, group: str, keys: Sequence[str], holder: str, done: bool, length_ms: int
    ) -> dict[str, WorkState]:
        now = self._clock.now_ms()
        verdicts = {}
        for key in keys:
            row = self._db.execute(
                f"SELECT holder, done, until_ms FROM {self._table} "
                "WHERE member_group = ? AND work = ?",
                (group, key),
            ).fetchone()
            if row is not None and row[2] > now and (row[1] or row[0] != holder):
                verdicts[key] = WorkState.DONE if row[1] else WorkState.BUSY
                continue
            self._put(group, key, holder, done, now + length_ms)
            verdicts[key] = WorkState.OURS
        return verdicts

    def _put(self, group: str, key: str, holder: str, done: bool, until_ms: int) -> None:
        self._db.execute(
            f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?, ?, ?, ?)",
            (group, key, holder, int(done), until_ms),
        )

    async def renew(self, group: str, keys: Sequence[str], holder: str, lease: float) -> None:
        await self._alone(self._renew, group, keys, holder, int(lease * 1000))

    def _renew(self, group: str, keys: Sequence[str], holder: str, lease_ms: int) -> None:
        until = self._clock.now_ms() + lease_ms
        self._db.executemany(
            f"UPDATE {self._table} SET until_ms = ? "
            "WHERE member_group = ? AND work = ? AND holder = ? AND NOT done",
            [(until, group, key, holder) for key in keys],
        )

    async def done(self, group: str, keys: Sequence[str], holder: str, keep: float) -> list[str]:
        return await self._alone(self._done, group, keys, holder, int(keep * 1000))

    def _done(self, group: str, keys: Sequence[str], holder: str, keep_ms: int) -> list[str]:
        lost = []
        for key in keys:
            row = self._db.execute(
                f"SELECT holder FROM {self._table} WHERE member_group = ? AND work = ?",
                (group, key),
            ).fetchone()
            if row is None or row[0] == holder:
                self._put(group, key, holder, True, self._clock.now_ms() + keep_ms)
            else:
                lost.append(key)
        return lost

    async def release(self, group: str, keys: Sequence[str], holder: str) -> None:
        await self._alone(self._release, group, keys, holder)

    def _release(self, group: str, keys: Sequence[str], holder: str) -> None:
        self._db.executemany(
            f"DELETE FROM {self._table} "
            "WHERE member_group = ? AND work = ? AND holder = ? AND NOT done",
            [(group, key, holder) for key in keys],
        )

    async def purge(self, count_max: int) -> int:
        return await self._alone(self._purge, count_max)

    def _purge(self, count_max: int) -> int:
        return self._db.execute(
            f"DELETE FROM {self._table} WHERE (member_group, work) IN (SELECT member_group, work "
            f"FROM {self._table} WHERE until_ms <= ? LIMIT ?)",
            (self._clock.now_ms(), count_max),
        ).rowcount

    # the user's transaction

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[SqliteTransaction]:
        async with self._turn:
            try:
                await self._patiently(self._db.execute, "BEGIN IMMEDIATE")
                yield SqliteTransaction(self._db, self._offload)
                await self._patiently(self._db.execute, "COMMIT")
            except BaseException:
                await asyncio.shield(self._offload.run(self._roll_back))
                raise

    async def mark(
        self, transaction: SqliteTransaction, group: str, keys: Sequence[str], keep: float
    ) -> dict[str, WorkState]:
        return await self._offload.run(self._take, group, list(keys), "", True, int(keep * 1000))
