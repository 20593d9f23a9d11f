"""Which conditions are asked while messages are stored, and when their bits mean something."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from gantrymq.base.files import save_text
from gantrymq.base.offload import InlineOffload
from gantrymq.broker.settings.config import BrokerConfig
from gantrymq.broker.subscriptions.consumer_filters import FilterTable
from gantrymq.protocol.subscription import subscription
from gantrymq.store.queues.queueext import Mark
from gantrymq.testing.disk import MemoryDisk

HOUR = 3_600_000
START_MS = 1_700_000_000_000
PATH = "root/config/consumerFilter.json"
CHEAP, DEAR = b"price\x011\x02", b"price\x0199\x02"


class Clock:
    ms = START_MS

    def now_ms(self) -> int:
        return self.ms


class World:
    """A disk and a clock that outlive the table."""

    def __init__(self) -> None:
        self.disk, self.clock, self.log_end = MemoryDisk(), Clock(), 1_000

    def table(self, **settings: Any) -> FilterTable:
        config = BrokerConfig(store_path_root_dir="root", **settings)
        made = FilterTable(config, self.disk, InlineOffload(), self.clock)
        made.log_end = lambda: self.log_end
        return made

    def saved(self) -> dict[str, Any]:
        file = self.disk.open_read(PATH)
        found: dict[str, Any] = json.loads(file.pread(file.size(), 0))
        return found


def hear(table: FilterTable, sql: str, *, group: str = "g", version: int = 1) -> None:
    table.hear(group, [subscription("orders", sql, "SQL92", version)])


def run(body: Callable[[World], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(World()), 20))  # type: ignore[arg-type]


def is_marked(table: FilterTable, properties: bytes, group: str = "g", sql: str = "") -> bool:
    """Whether the bits of the group's condition are set for such a message."""
    bitmap = table.marker(b"orders", properties)
    mark = table.mark(group, "orders", sql)
    assert bitmap is not None
    assert mark is not None
    return int.from_bytes(bitmap, "little") & mark.mask == mark.mask


def test_a_message_has_the_bits_of_the_conditions_it_matches() -> None:
    """
    As soon as the condition is on disk; a topic without conditions has no bitmap.
    """

    async def body(world: World) -> None:
        table = world.table()
        hear(table, "price > 10")
        before = is_marked(table, CHEAP, sql="price > 10")
        await table.save()

        assert before, "until it is saved everything counts as matching"
        assert [False, True] == [
            is_marked(table, properties, sql="price > 10") for properties in (CHEAP, DEAR)
        ]
        assert table.marker(b"bills", DEAR) is None

    run(body)


def test_bits_count_from_where_the_log_ended_when_the_condition_came() -> None:
    """
    Time may go back, the log does not; a new condition begins anew.
    """

    async def body(world: World) -> None:
        table = world.table()
        hear(table, "price > 10")
        first = table.mark("g", "orders", "price > 10")
        world.log_end, world.clock.ms = 5_000, START_MS + 7
        hear(table, "price > 20", version=2)
        second = table.mark("g", "orders", "price > 20")

        assert first is not None
        assert first == Mark(first.mask, 14, START_MS, 1_000)
        assert second == Mark(first.mask, 14, START_MS + 7, 5_000)
        assert table.mark("g", "orders", "price > 10") is None

    run(body)


def test_the_file_has_rocketmqs_shape() -> None:
    """
    With one member of ours that RocketMQ passes over.
    """

    async def body(world: World) -> None:
        table = world.table()
        hear(table, "price > 10", group="audit", version=42)
        await table.save()

        expected = {
            "bloomFilterData": {"bitNum": 112, "bitPos": [97, 13, 70]},
            "bornOffset": 1_000,
            "bornTime": START_MS,
            "clientVersion": 42,
            "consumerGroup": "audit",
            "dead": False,
            "deadTime": 0,
            "expression": "price > 10",
            "expressionType": "SQL92",
            "topic": "orders",
        }
        groups = {"groupFilterData": {"audit": expected}, "topic": "orders"}
        assert {"filterDataByTopic": {"orders": groups}} == world.saved()

    run(body)


def test_conditions_outlive_a_restart_and_their_members() -> None:
    """
    For a day messages are asked for them although nobody is there; then they are dropped.
    """

    async def body(world: World) -> None:
        table = world.table()
        hear(table, "price > 10")
        table.leave("g")
        await table.save()
        world.clock.ms += 23 * HOUR
        table = world.table()
        assert not is_marked(table, CHEAP, sql="price > 10")
        world.clock.ms += 2 * HOUR
        await table.save()

        assert table.marker(b"orders", CHEAP) is None
        assert {} == world.saved()["filterDataByTopic"]

    run(body)


def test_who_comes_back_in_time_finds_its_bits() -> None:
    """
    The same condition lives on with its first birthday.
    """

    async def body(world: World) -> None:
        table = world.table()
        hear(table, "price > 10")
        await table.save()
        world.clock.ms += 20 * HOUR
        table = world.table()
        hear(table, "price > 10", version=2)
        world.clock.ms += 20 * HOUR
        await table.save()
        mark = table.mark("g", "orders", "price > 10")

        assert mark is not None
        assert (START_MS, 1_000) == (mark.born_ms, mark.born_position)
        assert 0 == world.saved()["filterDataByTopic"]["orders"]["groupFilterData"]["g"]["deadTime"]

    run(body)


def test_bitmaps_of_another_size_make_everything_new() -> None:
    """
    The settings changed: what is on disk means other bits.
    """

    async def body(world: World) -> None:
        table = world.table()
        hear(table, "price > 10")
        await table.save()
        table = world.table(expect_consumer_num_use_filter=64)

        assert table.mark("g", "orders", "price > 10") is None

    run(body)


def test_a_condition_that_cannot_be_read_takes_the_old_one_away() -> None:
    """
    Its pulls are refused; the old bits must not answer for it.
    """

    async def body(world: World) -> None:
        table = world.table()
        hear(table, "price > 10")
        hear(table, "price >", version=2)

        assert table.marker(b"orders", DEAR) is None

    run(body)


def test_an_older_heartbeat_changes_nothing() -> None:
    """
    Members that were not restarted yet still say the old condition.
    """

    async def body(world: World) -> None:
        table = world.table()
        hear(table, "price > 20", version=2)
        hear(table, "price > 10", version=1)

        assert table.mark("g", "orders", "price > 20") is not None
        assert table.mark("g", "orders", "price > 10") is None

    run(body)


def test_a_damaged_file_is_no_reason_not_to_start() -> None:
    """
    Conditions come with the next heartbeats.
    """

    async def body(world: World) -> None:
        save_text(world.disk, PATH, '{"filterDataByTopic": 5}')
        table = world.table()

        assert table.marker(b"orders", DEAR) is None

    run(body)
