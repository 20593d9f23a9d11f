"""The log read from an offset to its end, whatever lies in it."""

import pytest
from storekit import ManualClock, message, open_store, put, run, tiny

from gantrymq.store.log import scan as scanning
from gantrymq.testing.disk import MemoryDisk


@pytest.mark.parametrize("chunk", [256, 1 << 20])
def test_every_record_is_found_over_the_ends_of_files(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files end with blanks, and a record may be larger than what is read at once."""
    monkeypatch.setattr(scanning, "CHUNK_BYTES", chunk)

    async def body() -> None:
        store = await open_store(MemoryDisk(), tiny())
        appends = []
        for number in range(60):
            size = 3_000 if number % 10 == 3 else 40
            appends += await put(store, message("orders", number % 3, b"%d" % number * size))
        places = [append.physical_offset for append in appends]
        for first in (0, 13, 59):
            found = [
                record[3]
                async for data, base, records in store.reads.scan(places[first])
                for record in records
                if base <= record[3] and record[3] + record[4] <= base + len(data)
            ]
            assert places[first:] == found
        assert [] == [each async for each in store.reads.scan(store.log_max)]
        await store.close()

    run(body)


def test_what_retention_took_is_left_out() -> None:
    """A scan that begins below the log's beginning begins there."""

    async def body() -> None:
        clock = ManualClock()
        store = await open_store(MemoryDisk(), tiny(retention_hours=1), clock=clock)
        for number in range(400):
            await put(store, message("orders", 0, b"%d" % number * 40))
        clock.ms += 2 * 3_600_000
        await put(store, message("orders", 0, b"last"))
        await store.upkeep.checkpoint()
        assert await store.upkeep.delete_expired()
        async for _, base, _ in store.reads.scan(0):
            assert base >= store.log_min
        await store.close()

    run(body)
