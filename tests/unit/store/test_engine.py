"""What goes in comes out: puts, pulls, filters, batches, times, topics."""

import asyncio
from random import Random

import pytest
from storekit import (
    FOREVER,
    START_MS,
    ManualClock,
    message,
    open_store,
    pull,
    put,
    read_queue,
    run,
    tiny,
)

from gantrymq.base.disk import Disk
from gantrymq.kernel import java_hash
from gantrymq.protocol.ids import encode_host
from gantrymq.protocol.record import (
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    decode_record,
    decode_records,
)
from gantrymq.store import PutStatus, ReadResult, ReadStatus
from gantrymq.testing.disk import MemoryDisk

OK, FOUND = PutStatus.PUT_OK, ReadStatus.FOUND
BOTH = pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])


@BOTH
def test_messages_come_out_as_they_went_in(place: tuple[Disk, str], flush: str) -> None:
    """Across many files, in order, with every field."""
    disk, directory = place

    async def body() -> None:
        store = await open_store(disk, tiny(directory, flush=flush))
        random = Random(3)
        sent = [random.randbytes(random.randint(0, 2000)) for _ in range(60)]
        for start in range(0, 60, 5):
            batch = [
                message("orders", n % 2, sent[n], tags="t", flag=n, reconsume_times=2)
                for n in range(start, start + 5)
            ]
            assert {one.status for one in await put(store, *batch)} == {OK}
        for queue_id in (0, 1):
            found = await read_queue(store, "orders", queue_id)
            assert [one.body for one in found] == sent[queue_id::2]
            assert [one.queue_offset for one in found] == list(range(30))
            assert {one.topic for one in found} == {"orders"}
            assert [one.flag for one in found] == list(range(queue_id, 60, 2))
            assert found[0].born_host == ("10.0.0.2", 50000)
            assert found[0].store_host == ("127.0.0.1", 10911)
            assert (found[0].born_ms, found[0].store_ms) == (START_MS - 5, START_MS)
            assert found[0].reconsume_times == 2
        await store.close()

    run(body)


def test_the_answer_tells_where_the_message_lies() -> None:
    """
    A put returns the queue offset and the log offset, at which the record can be read.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk())
        first, second, other = await put(
            store, message(queue_id=1), message(queue_id=1), message(queue_id=2)
        )
        assert (first.queue_offset, second.queue_offset, other.queue_offset) == (0, 1, 0)
        assert second.physical_offset == first.physical_offset + first.size
        record = await store.reads.message_at(second.physical_offset)
        assert record is not None
        assert decode_record(record).queue_offset == 1
        assert second.store_ms == START_MS
        for wrong in (second.physical_offset + 1, store.log_max, 1 << 40, -1):
            assert await store.reads.message_at(wrong) is None
        await store.close()

    run(body)


def test_a_put_is_never_answered_before_it_returns() -> None:
    """
    The reply of a put comes after `put` has returned, also from a closed store.
    """

    async def body() -> None:
        for closed in (False, True):
            store = await open_store(MemoryDisk(), tiny(flush="ASYNC_FLUSH"))
            if closed:
                await store.close()
            answers: list[PutStatus] = []
            append = message(reply=lambda one, answers=answers: answers.append(one.status))
            store.put(append)
            assert answers == []
            await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            assert answers == [PutStatus.SERVICE_NOT_AVAILABLE if closed else OK]
            await store.close()

    run(body)


def test_what_can_never_be_stored_is_refused_and_leaves_no_hole() -> None:
    """
    Messages that break a limit are refused, and take no queue offset.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk(), tiny(max_message_bytes=3000))
        good, long, props, zero, name, after = await put(
            store,
            message(),
            message(body=b"x" * 3001),
            message(properties=b"a\x01" + b"x" * 32766),
            message(properties=b"a\x01\0"),
            message("../escape"),
            message(),
        )
        assert (good.status, after.status) == (OK, OK)
        assert after.queue_offset == 1
        assert long.status is zero.status is name.status is PutStatus.MESSAGE_ILLEGAL
        assert props.status is PutStatus.PROPERTIES_SIZE_EXCEEDED
        assert "3001" in long.error
        assert [one.queue_offset for one in await read_queue(store, "orders", 0)] == [0, 1]
        assert store.queues.topics() == ["orders"]
        await store.close()

    run(body)


def test_properties_may_fill_their_length_to_the_last_byte() -> None:
    """
    Properties of exactly 32,767 bytes are stored.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk(), tiny(segment_bytes=1 << 16))
        raw = b"a\x01" + "ü".encode() * 16382 + b"x"
        assert len(raw) == 32767
        (stored,) = await put(store, message(properties=raw))
        assert stored.status is OK
        (found,) = await read_queue(store, "orders", 0)
        assert found.raw_properties == raw
        await store.close()

    run(body)


def test_a_batch_lies_together_with_consecutive_offsets() -> None:
    """
    The messages of a batch are adjacent in the log and have consecutive queue offsets.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk())
        await put(store, message())
        items = [(n, bytes([n]) * 900, b"UNIQ_KEY\x01u%d" % n) for n in range(5)]
        (batch,) = await put(store, message(batch=items))
        (after,) = await put(store, message())
        assert (batch.queue_offset, after.queue_offset) == (1, 6)
        assert len(batch.physical_offsets) == 5
        assert batch.physical_offset == batch.physical_offsets[0]
        found = (await read_queue(store, "orders", 0))[1:6]
        assert [one.physical_offset for one in found] == batch.physical_offsets
        assert [(one.flag, one.body, one.raw_properties) for one in found] == items
        # The whole batch moves to the next file when it does not fit into this one.
        (rolled,) = await put(store, message(batch=items))
        assert rolled.physical_offsets[0] == 8192
        await store.close()

    run(body)


def test_pull_says_where_the_reader_stands() -> None:
    """
    A pull answers with the status and the next offset that fit its position in the queue.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk())
        nothing = await pull(store, "orders", 0, 0)
        assert nothing.status is ReadStatus.NO_MATCHED_LOGIC_QUEUE
        await put(store, *[message() for _ in range(10)])
        expected = [
            (0, FOUND, 10),
            (9, FOUND, 10),
            (10, ReadStatus.OFFSET_OVERFLOW_ONE, 10),
            (11, ReadStatus.OFFSET_OVERFLOW_BADLY, 10),
            (-1, ReadStatus.OFFSET_TOO_SMALL, 0),
        ]
        for offset, status, next_offset in expected:
            answer = await pull(store, "orders", 0, offset)
            assert (answer.status, answer.next_offset) == (status, next_offset)
            assert (answer.min_offset, answer.max_offset) == (0, 10)
        await store.close()

    run(body)


def test_limits_hold_but_the_first_message_always_comes() -> None:
    """
    A pull stops at its limits of messages and bytes, but returns at least one message.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk())
        appends = await put(store, *[message(body=b"x" * 500) for _ in range(6)])
        size = appends[0].size
        assert (await pull(store, "orders", 0, 0, max_count=4)).count == 4
        assert (await pull(store, "orders", 0, 0, max_bytes=3 * size)).count == 3
        assert (await pull(store, "orders", 0, 0, max_bytes=3 * size - 1)).count == 2
        one = await pull(store, "orders", 0, 2, max_bytes=1)
        assert (one.count, one.next_offset, len(one.body)) == (1, 3, size)
        await store.close()

    run(body)


@pytest.mark.parametrize("written", [False, True])
def test_tags_filter_by_hash_and_move_the_reader_on(written: bool) -> None:
    """Entries from memory and from files are filtered alike."""

    async def body() -> None:
        store = await open_store(MemoryDisk())
        await put(store, *[message(tags="ab"[n % 2], body=b"%d" % n) for n in range(6)])
        if written:
            await store.upkeep.checkpoint()
        answer = await pull(store, "orders", 0, 0, tag_codes=frozenset({java_hash("b")}))
        assert [one.body for one in decode_records(answer.body)] == [b"1", b"3", b"5"]
        assert (answer.next_offset, answer.count) == (6, 3)
        none = await pull(store, "orders", 0, 0, tag_codes=frozenset({5}))
        assert (none.status, none.next_offset) == (ReadStatus.NO_MATCHED_MESSAGE, 6)
        await store.close()

    run(body)


@pytest.mark.parametrize("cold", ["consumequeue", "commitlog", "store"])
def test_cold_data_is_awaited_and_equals_warm_data(cold: str) -> None:
    """
    A pull of data that is not in memory is awaited, and returns the same as one of data that
    is.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await put(store, *[message(body=b"%d" % n) for n in range(20)])
        await store.upkeep.checkpoint()
        warm = [store.reads.pull("orders", 0, offset, 5, 1 << 20, None) for offset in range(20)]
        assert all(isinstance(answer, ReadResult) for answer in warm)
        disk.is_cold = lambda path, at: cold in path
        for offset in range(20):
            answer = store.reads.pull("orders", 0, offset, 5, 1 << 20, None)
            assert not isinstance(answer, ReadResult)
            assert await answer == warm[offset]
        assert await store.reads.message_at(0) is not None
        assert await store.reads.earliest_store_ms("orders", 0) == START_MS
        await store.close()

    run(body)


def test_delayed_messages_carry_their_due_time_in_the_queue() -> None:
    """In place of the tag's hash, and only in the topic where they wait."""

    async def body() -> None:
        store = await open_store(MemoryDisk())
        await put(
            store,
            message("SCHEDULE_TOPIC_XXXX", 2, delay=3, tags="a"),
            message("SCHEDULE_TOPIC_XXXX", 2, delay=99),
            message("orders", 0, delay=3, tags="a"),
        )

        def code(topic: str, queue_id: int, offset: int) -> int:
            queue = store.queues.get(topic, queue_id)
            assert queue is not None
            entry = queue.entry(offset)
            assert entry is not None
            return entry[2]

        assert code("SCHEDULE_TOPIC_XXXX", 2, 0) == START_MS + 10_000
        assert code("SCHEDULE_TOPIC_XXXX", 2, 1) == START_MS + 7_200_000
        assert code("orders", 0, 0) == java_hash("a")
        await store.close()

    run(body)


def test_prepared_and_rollback_records_are_in_the_log_but_in_no_queue() -> None:
    """
    Half messages and rollbacks are in the log, but have no queue entry.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk())
        kinds = [0, TRANSACTION_PREPARED, TRANSACTION_COMMIT, TRANSACTION_ROLLBACK, 0]
        appends = await put(
            store, *[message(sys_flag=kind, unique=f"u{n}") for n, kind in enumerate(kinds)]
        )
        assert [one.queue_offset for one in appends] == [0, 0, 1, 0, 2]
        assert [one.queue_offset for one in await read_queue(store, "orders", 0)] == [0, 1, 2]
        assert await store.reads.message_at(appends[1].physical_offset) is not None
        found = [
            len((await store.reads.query("orders", f"u{n}", 9, 0, FOREVER)).records)
            for n in range(5)
        ]
        assert found == [1, 1, 1, 0, 1], "only rollback records are not indexed"
        await store.close()

    run(body)


def test_hosts_may_be_ipv6() -> None:
    """
    Born host and store host may be IPv6 addresses.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk(), host=encode_host("::1", 10911))
        append = message(unique="u")
        append.born_host = encode_host("2001:db8::5", 77)
        await put(store, append, message())
        first, second = await read_queue(store, "orders", 0)
        assert (first.born_host, first.store_host) == (("2001:db8::5", 77), ("::1", 10911))
        assert second.born_host == ("10.0.0.2", 50000)
        assert await store.reads.store_ms_at("orders", 0, 0) == START_MS
        await store.close()

    run(body)


def test_store_times_never_fall_even_if_the_clock_does() -> None:
    """
    Store times in the log never decrease, also when the clock does or after a restart.
    """

    async def body() -> None:
        clock, disk = ManualClock(), MemoryDisk()
        store = await open_store(disk, clock=clock)
        for ms in (START_MS, START_MS - 1000, START_MS + 5):
            clock.ms = ms
            await put(store, message())
        await store.close()
        clock.ms = START_MS - 9999
        store = await open_store(disk, clock=clock)
        await put(store, message())
        times = [one.store_ms for one in await read_queue(store, "orders", 0)]
        assert times == [START_MS, START_MS, START_MS + 5, START_MS + 5]
        await store.close()

    run(body)


def test_a_time_is_found_as_a_linear_search_would() -> None:
    """With doubled times, gaps, and times outside the queue."""

    async def body() -> None:
        clock = ManualClock()
        store = await open_store(MemoryDisk(), clock=clock)
        random = Random(5)
        times = sorted(START_MS + random.randint(0, 30) for _ in range(40))
        for ms in times:
            clock.ms = ms
            await put(store, message())
        for ms in range(START_MS - 2, START_MS + 34):
            lower = next((n for n, one in enumerate(times) if one >= ms), len(times))
            upper = max([n for n, one in enumerate(times) if one <= ms], default=0)
            assert await store.reads.offset_by_time("orders", 0, ms) == lower
            assert await store.reads.offset_by_time("orders", 0, ms, "UPPER") == upper
        assert await store.reads.offset_by_time("unknown", 0, START_MS) == 0
        assert await store.reads.earliest_store_ms("orders", 0) == times[0]
        assert await store.reads.earliest_store_ms("unknown", 0) == -1
        assert await store.reads.store_ms_at("orders", 0, 40) == -1
        await store.close()

    run(body)


def test_a_long_poll_wakes_when_its_message_is_visible() -> None:
    """
    `arrivals` wakes a waiter when the offset it waits for can be read.
    """

    async def body() -> None:
        store = await open_store(MemoryDisk())
        mark = store.queues.arrivals("orders", 3)
        assert store.queues.get("orders", 3) is None
        woken = asyncio.create_task(mark.reach(2))
        await put(store, message(queue_id=3))
        assert not woken.done()
        await put(store, message(queue_id=3))
        await asyncio.wait_for(woken, 5)
        assert (await pull(store, "orders", 3, 1)).status is FOUND
        await store.close()

    run(body)


def test_a_deleted_topic_is_gone_and_begins_again_at_zero() -> None:
    """
    A deleted topic has no queues, and starts again at offset 0.
    """

    async def body() -> None:
        disk = MemoryDisk()
        store = await open_store(disk)
        await put(store, *[message("gone", 1) for _ in range(20)], message("stays", 0))
        assert (store.queues.topics(), store.queues.ids("gone")) == (["gone", "stays"], [1])
        await store.upkeep.checkpoint()
        store.delete_topic("gone")
        store.delete_topic("never was")
        assert store.queues.topics() == ["stays"]
        assert (await pull(store, "gone", 1, 0)).status is ReadStatus.NO_MATCHED_LOGIC_QUEUE
        (again,) = await put(store, message("gone", 1, b"new"))
        assert again.queue_offset == 0
        await store.upkeep.write_derived()
        assert disk.list("store/trash") == []
        await store.close()
        store = await open_store(disk)
        assert [one.body for one in await read_queue(store, "gone", 1)] == [b"new"]
        await store.close()

    run(body)
