"""Finds where a slave's log and its master's part, and tells the operator what to do.

The master may have lost messages that the slave has: in a power cut what was not flushed, or all
since a backup that it was restored from. The slave then has the last copy of messages whose sends
were answered. Nothing of that is dropped here: the operator makes the slave the master, or orders
the cut.

A record names its place, its queue offset and its times, so two logs that have the same record at
one place are the same before it. The last common one is found by bisection, first over the files,
then over the records of one file; the master tells checksums (COMPARE_LOG).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from gantrymq.base.errors import GantryError
from gantrymq.base.plurals import counted
from gantrymq.broker.copies.master_link import MasterLink
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.protocol import calls as c
from gantrymq.protocol.headers.copies import CompareLogRequest, CompareLogResponse
from gantrymq.store.reading.log_records import LogRecords, Stretch

COMPARED_BYTES_MAX: Final = 8 << 20
"""What a master reads for one answer; of a longer record the beginning is compared."""

T = TypeVar("T")


async def count_common(items: Sequence[T], is_common: Callable[[T], Awaitable[bool]]) -> int:
    """How many items at the beginning are common; none behind the first other one is."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if await is_common(items[middle]):
            low = middle + 1
        else:
            high = middle
    return low


class SlaveTail(NamedTuple):
    """What only the slave has."""

    start: int
    """Up to here both logs are the same."""
    bytes: int
    messages: int


class LogComparison:
    """Compares a slave's log with its master's."""

    def __init__(self, config: BrokerConfig, link: MasterLink, records: LogRecords) -> None:
        self._config, self._link, self._records = config, link, records
        self._told: tuple[object, int, str] | None = None

    async def advice(self) -> str:
        """What the operator can do about a slave whose log is not its master's.

        The logs are compared once for each connection to the master, not with every try.
        """
        connection, end = await self._link.connect(), self._records.end
        if self._told is None or self._told[:2] != (connection, end):
            self._told = (connection, end, await self._advise())
        return self._told[2]

    async def _advise(self) -> str:
        root = self._config.store_path_root_dir
        empty = f"Make the slave the master, or move its store {root} away and start it empty"
        try:
            tail = await self.tail()
        except (GantryError, OSError) as error:
            return f"The logs could not be compared ({error}). {empty}"
        if tail is None:
            return f"The two logs have no record in common. {empty}"
        command = f"gantry store cut {root} --at {tail.start}"
        if self._config.store_path_commit_log:
            command += f" --commit-log {self._config.store_path_commit_log}"
        return (
            f"Up to offset {tail.start} both logs are the same; the slave alone has "
            f"{counted(tail.messages, 'message')} ({counted(tail.bytes, 'byte')}) behind it. To "
            "keep them, make the slave the master. To follow this master without them, stop the "
            f"slave, run `{command}`, which saves them beside the store, and start the slave again"
        )

    async def tail(self) -> SlaveTail | None:
        """What only the slave has; None if the logs have no record in common."""
        records, first = self._records, (await self._ask(0, 0)).log_min
        files = [base for base in records.files if base >= first]
        common = await count_common(files, self._begins_alike)
        if not common:
            return None
        stretches = await records.of_file(files[common - 1])
        position, size = stretches[await count_common(stretches, self._is_same) - 1]
        start = position + size
        messages = sum(each >= start for each, _ in stretches)
        if common < len(files):
            messages += await records.count_from(files[common])
        return SlaveTail(start, records.end - start, messages)

    async def _begins_alike(self, base: int) -> bool:
        stretch = await self._records.first_of(base)
        return stretch is not None and await self._is_same(stretch)

    async def _is_same(self, stretch: Stretch) -> bool:
        position, size = stretch[0], min(stretch[1], COMPARED_BYTES_MAX)
        found = await self._ask(position, size)
        own = await self._records.checksum(position, size)
        return (found.size, found.crc) == (size, own)

    async def _ask(self, position: int, size: int) -> CompareLogResponse:
        request = CompareLogRequest(position=position, size=size)
        answer = await self._link.call(c.COMPARE_LOG.code, request.to_ext())
        return CompareLogResponse.parse(answer.ext)
