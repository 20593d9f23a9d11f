"""What a store of finished work must do. Write your own for a database that has none here."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from gantrymq.base.clock import WallClock
from gantrymq.base.errors import GantryError

TABLE: Final = "gantrymq_once"

if TYPE_CHECKING:
    # With a default `Consumer` and `Once` are types without a parameter, too; Python itself has
    # defaults from 3.13 on, type checkers know them in any version.
    from typing_extensions import TypeVar as Parameter

    Tx = Parameter("Tx", default=Any)
    Tx_co = Parameter("Tx_co", default=Any, covariant=True)
else:
    Tx, Tx_co = TypeVar("Tx"), TypeVar("Tx_co", covariant=True)
"""What a store's transaction is to a handler."""

_TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,50}\Z")


class WorkState(Enum):
    """What a store says of one piece of work."""

    OURS = "ours"
    DONE = "done"
    BUSY = "busy"


class StoreUnusable(GantryError):
    """The driver of a store is not installed, or its settings make no sense."""


def checked_table(name: str) -> str:
    """A table's name goes into SQL as it is, so it must be one."""
    if not _TABLE_NAME.match(name):
        raise StoreUnusable(f"{name!r} is no table name: letters, digits and _ only")
    return name


def driver(module: str, extra: str) -> Any:
    """Import a driver, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise StoreUnusable(
            f"the driver {module!r} is missing ({error}): pip install 'gantrymq[{extra}]'"
        ) from error


class ClaimStore(Protocol):
    """Remembers who works on what, and what is done. Rows belong to a group."""

    one_host: bool
    """Whether only members on one machine can share it."""

    async def open(self, clock: WallClock) -> None:
        """Connect, make the table. Each `open` is paired with a `close`."""

    async def close(self) -> None:
        """Let go."""

    async def claim(
        self, group: str, keys: Sequence[str], holder: str, lease: float
    ) -> dict[str, WorkState]:
        """Take what is free, lapsed or the holder's already, for `lease` seconds."""

    async def renew(self, group: str, keys: Sequence[str], holder: str, lease: float) -> None:
        """Hold on to claims."""

    async def done(self, group: str, keys: Sequence[str], holder: str, keep: float) -> list[str]:
        """Remember for `keep` seconds that it is done; returns what another has claimed since."""

    async def release(self, group: str, keys: Sequence[str], holder: str) -> None:
        """Give claims up: the work failed and may be done by anybody."""

    async def purge(self, count_max: int) -> int:
        """Delete up to so many rows whose time is over; how many there were."""


class TransactionStore(ClaimStore, Protocol[Tx_co]):
    """A database in which the user's own writes happen as well."""

    def transaction(self) -> AbstractAsyncContextManager[Tx_co]:
        """What the handler is given; committed at the end, rolled back by an exception."""

    async def mark(
        self, transaction: Any, group: str, keys: Sequence[str], keep: float
    ) -> dict[str, WorkState]:
        """Write `done` rows as part of the transaction; only those that were free are OURS."""


class SharedOpening:
    """Several consumers may share a store: the first one opens it, the last one closes it."""

    def __init__(self) -> None:
        self._users = 0
        self._opening = asyncio.Lock()

    async def open(self, clock: WallClock) -> None:
        async with self._opening:
            if self._users == 0:
                await self._open(clock)
            self._users += 1

    async def close(self) -> None:
        async with self._opening:
            if self._users:
                self._users -= 1
                if self._users == 0:
                    await self._close()

    async def _open(self, clock: WallClock) -> None:
        raise NotImplementedError

    async def _close(self) -> None:
        raise NotImplementedError
