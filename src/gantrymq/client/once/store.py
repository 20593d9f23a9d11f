"""The interface of stores of finished work; implement it for another database."""

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
    """The state of one piece of work in a store."""

    OURS = "ours"
    DONE = "done"
    BUSY = "busy"


class StoreUnusable(GantryError):
    """A store cannot be used: its driver is missing, its settings are wrong, or it is not open."""


def checked_table(name: str) -> str:
    """Check a table name, because it becomes part of the SQL text."""
    if not _TABLE_NAME.match(name):
        raise StoreUnusable(f"{name!r} is no table name: letters, digits and _ only")
    return name


def driver(module: str, extra: str) -> Any:
    """Import a driver; the error says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise StoreUnusable(
            f"the driver {module!r} is missing ({error}): pip install 'gantrymq[{extra}]'"
        ) from error


class ClaimStore(Protocol):
    """Remembers which member works on what, and what is done. Rows belong to a group."""

    one_host: bool
    """Whether only members on one machine can share it."""

    async def open(self, clock: WallClock) -> None:
        """Connect, and create the table. Each `open` is paired with a `close`."""

    async def close(self) -> None:
        """Disconnect."""

    async def claim(
        self, group: str, keys: Sequence[str], holder: str, lease: float
    ) -> dict[str, WorkState]:
        """Claim work that is free, lapsed or already the holder's, for `lease` seconds."""

    async def renew(self, group: str, keys: Sequence[str], holder: str, lease: float) -> None:
        """Renew claims for `lease` seconds."""

    async def done(self, group: str, keys: Sequence[str], holder: str, keep: float) -> list[str]:
        """Mark work as done for `keep` seconds; returns keys that another member claimed since."""

    async def release(self, group: str, keys: Sequence[str], holder: str) -> None:
        """Release claims of failed work, so that any member may do it."""

    async def purge(self, count_max: int) -> int:
        """Delete up to `count_max` expired rows; returns how many were deleted."""


class TransactionStore(ClaimStore, Protocol[Tx_co]):
    """A store in the database of the handler's own writes."""

    def transaction(self) -> AbstractAsyncContextManager[Tx_co]:
        """The transaction that the handler gets; an exception rolls it back, else it commits."""

    async def mark(
        self, transaction: Any, group: str, keys: Sequence[str], keep: float
    ) -> dict[str, WorkState]:
        """Write `done` rows as part of the transaction; only those that were free are OURS."""


class SharedStore:
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
